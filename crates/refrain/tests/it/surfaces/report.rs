//! `report` and `verify`: what is compared with values of other commands, and what may not get out. All else is in
//! `scenarios/reports`.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use testkit::Sandbox;

use crate::{CLAIM, sandbox};

/// Claims in every iteration, and is done from the second on; the loop commits.
fn proven(sandbox: &Sandbox) {
    let script = format!(
        "echo \"try $REFRAIN_ITERATION\" > tries.txt\n[ $REFRAIN_ITERATION -lt 2 ] || echo good > work.txt\nrm -f README.md\n{CLAIM}"
    );
    let agent = sandbox.agent("agent", &script);
    let gate = "tests=grep -qs good work.txt && echo 12 passed || { echo work is bad; exit 1; }";
    sandbox
        .refrain(&[
            "start",
            "--command",
            &agent,
            "--name",
            "job",
            "-p",
            "Mend the work.",
            "--gate",
            gate,
            "--git-workflow",
            "commit",
            "--quiet",
        ])
        .with_code(0);
}

fn report(sandbox: &Sandbox, id: &str) -> Value {
    sandbox.refrain(&["report", id, "--json"]).with_code(0).json()
}

fn kept(sandbox: &Sandbox, path: &str) -> PathBuf {
    sandbox.loop_dir("job").join(path)
}

#[test]
fn a_report_states_the_goal_the_claim_and_the_proof() {
    let sandbox = sandbox();
    proven(&sandbox);
    let report = report(&sandbox, "job");
    let status = sandbox.status("job");
    for same in ["id", "status", "verified", "reason", "needs", "started_at", "ended_at"] {
        assert_eq!(report[same], status[same], "{same}");
    }
    assert_eq!((&report["verified"], &report["asked"]["prompt"]), (&json!(true), &json!("Mend the work.")));
    assert_eq!(report["claim"]["source"], "promise");
    assert_eq!((&report["claim"]["iteration"], &report["proof"]["iteration"]), (&json!(2), &json!(2)));
    assert_eq!(report["proof"]["tree"], status["tree"]);
    let refused = report["refused"].as_array().unwrap();
    assert_eq!(refused.len(), 1);
    assert_eq!(refused[0]["why"], json!(["gate tests failed: exit code 1"]));

    let gate = &report["proof"]["gates"][0];
    assert_eq!((&gate["passed"], &gate["failed_before"]), (&json!(true), &json!(true)));
    assert_eq!(
        (&gate["log"]["path"], &gate["log"]["end"]),
        (&json!("iterations/0002/gates/tests.log"), &json!("12 passed\n"))
    );
    assert_eq!(gate["log"]["seal"]["bytes"], 10);
    let seal = report["evidence"].as_array().unwrap().iter().find(|file| file["path"] == gate["log"]["path"]);
    assert_eq!(seal.unwrap()["seal"], gate["log"]["seal"]);
    let paths: Vec<_> =
        report["evidence"].as_array().unwrap().iter().map(|file| file["path"].as_str().unwrap()).collect();
    assert_eq!(
        paths,
        [
            "iterations/0000/gates/tests.log",
            "iterations/0001/prompt.md",
            "iterations/0001/output.log",
            "iterations/0001/gates/tests.log",
            "iterations/0002/prompt.md",
            "iterations/0002/output.log",
            "iterations/0002/gates/tests.log"
        ]
    );
    assert!(paths.iter().all(|path| kept(&sandbox, path).exists()));

    let files: Vec<_> = report["files"]["changed"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| {
            (
                file["change"].as_str().unwrap(),
                file["path"].as_str().unwrap(),
                file["added"].clone(),
                file["removed"].clone(),
            )
        })
        .collect();
    assert_eq!(
        files,
        [
            ("deleted", "README.md", json!(0), json!(1)),
            ("added", "tries.txt", json!(1), json!(0)),
            ("added", "work.txt", json!(1), json!(0)),
        ]
    );
    assert_eq!(report["commits"][0]["commit"], status["commits"][0]);
    assert_eq!(report["commits"][0]["tree"], status["tree"]);
    assert_eq!(report["base"]["commit"], sandbox.git(&["rev-parse", "HEAD~1"]).trim());
    assert_eq!(report["base"]["tree"], sandbox.git(&["rev-parse", "HEAD~1^{tree}"]).trim());
    let last = fs::read_to_string(kept(&sandbox, "journal.jsonl")).unwrap();
    assert!(
        last.trim_end().ends_with(&format!("\"hash\":\"{}\"}}", report["journal"]["hash"].as_str().unwrap()))
    );
    assert_eq!(report["journal"]["records"], sandbox.journal("job").len());
}

#[test]
fn the_report_of_a_loop_whose_gates_were_not_asked_yet_says_so() {
    let sandbox = sandbox();
    let gate = sandbox.gate("go");
    let held = "tests=echo x > $NOTES/began; read -r _ < $GATES/go";
    let session =
        sandbox.spawn(&["start", "--command", "true", "--name", "job", "--gate", held, "--quiet", "p"]);
    sandbox.wait_for_note("began");
    let shown = sandbox.refrain(&["report", "job"]).with_code(0).stdout;
    assert!(shown.contains("No gate was asked yet."), "{shown}");
    sandbox.refrain(&["cancel", "job", "--now"]).with_code(0);
    session.wait().with_code(15);
    let shown = sandbox.refrain(&["report", "job"]).with_code(0).stdout;
    assert!(shown.contains("No gate was asked before it stopped."), "{shown}");
    drop(gate);
}

/// Texts that want to be something else than text.
const HOSTILE: &str = r#"<script>alert(1)</script> "><img src=x onerror=alert(1)>"#;

#[test]
fn a_page_is_whole_and_whatever_is_in_it_is_only_text() {
    let sandbox = sandbox();
    let script = format!(
        "printf 'x' > '<b>&\"bold\".txt'\nprintf '%s\\n' '{HOSTILE}'\n{CLAIM}\nprintf '\\033]0;title\\007\\033[31mred exe.\\342\\200\\256gnp %s\\n' '{HOSTILE}'"
    );
    let agent = sandbox.agent("agent", &script);
    let gate = format!(
        "tests=printf '%s\\n' '{HOSTILE}'; head -c 9000 /dev/zero | tr '\\0' x; printf '\\n\\033[1mbold\\033[0m \\342\\200\\256evil\\a\\n'"
    );
    let prompt = format!("</pre>{HOSTILE}</title>");
    sandbox
        .refrain(&[
            "start",
            "--command",
            &agent,
            "--name",
            "job",
            "-p",
            &prompt,
            "--gate",
            &gate,
            "--git-workflow",
            "commit",
            "--env",
            "TOKEN=hunter2hunter2",
            "--quiet",
        ])
        .with_code(0);
    sandbox.refrain(&["report", "job", "--html", "--output", "report.html"]).with_code(0);
    let page = fs::read_to_string(sandbox.project().join("report.html")).unwrap();
    assert_eq!(page, sandbox.refrain(&["report", "job", "--html"]).with_code(0).stdout);
    // It replaces what it wrote, in each format, also by another one, and nothing else.
    let file = "report.html";
    for format in [None, Some("--json"), Some("--html")] {
        sandbox.refrain(&["report", "job", "--html", "--output", file]).with_code(0);
        let words: Vec<_> = ["report", "job", "--output", file].into_iter().chain(format).collect();
        sandbox.refrain(&words).with_code(0);
        sandbox.refrain(&words).with_code(0);
        testkit::write(&sandbox.project().join(file), "mine");
        let refused = sandbox.refrain(&words).with_code(17).stderr;
        assert!(refused.contains(&format!("--output {file}: it is not Refrain's")), "{refused}");
        assert_eq!(fs::read_to_string(sandbox.project().join(file)).unwrap(), "mine");
        fs::remove_file(sandbox.project().join(file)).unwrap();
    }
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>"), "{page}");
    for never in [
        "<script",
        "<img",
        "<b>",
        "</title></",
        "http://",
        "https://",
        " src=\"",
        " onerror=\"",
        "\u{1b}",
        "\u{7}",
        "\u{202e}",
    ] {
        assert!(!page.to_lowercase().contains(never), "{never:?} is in\n{page}");
    }
    assert!(page.contains("exe.[U+202E]gnp") && page.contains("bold [U+202E]evil"), "{page}");
    assert_eq!(page.matches("</title>").count(), 1);
    assert_eq!((page.matches("<h1>").count(), page.matches("<main>").count()), (1, 1));
    let opened = |name: &str| page.matches(&format!("<{name}")).count();
    for name in ["table", "tr", "td", "section", "dl", "figure", "pre"] {
        let closed = page.matches(&format!("</{name}>")).count();
        // The style sheet speaks of elements, but has no angle brackets.
        assert_eq!(opened(&format!("{name}>")) + opened(&format!("{name} ")), closed, "{name}");
    }
    let shown = sandbox.refrain(&["report", "job"]).with_code(0).stdout;
    assert!(!shown.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{shown}");
}

#[test]
fn secrets_do_not_leave_with_it() {
    let sandbox = sandbox();
    let token = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
    let agent = sandbox.agent("agent", &format!("echo \"I use $TOKEN\"\n{CLAIM}\necho 'and {token}'"));
    sandbox
        .refrain(&[
            "start",
            "--command",
            &agent,
            "--name",
            "job",
            "-p",
            &format!("Say hunter2hunter2.\nUse {token}."),
            "--env",
            "TOKEN=hunter2hunter2",
            "--gate",
            &format!("tests=echo $TOKEN; echo {token}"),
            "--quiet",
        ])
        .with_code(0);
    for words in [["report", "job", "--json"], ["report", "job", "--html"], ["report", "job", "job"]] {
        let words = if words[2] == "job" { &words[..2] } else { &words };
        let told = sandbox.refrain(words).with_code(0).stdout;
        assert!(!told.contains("hunter2") && !told.contains(&token), "{told}");
        assert!(told.contains("[redacted"), "{told}");
    }
}

#[test]
fn a_report_that_was_changed_is_found() {
    let sandbox = sandbox();
    proven(&sandbox);
    let given = |name: &str, report: &Value| {
        let path = sandbox.root().join(name);
        testkit::write(&path, report.to_string());
        path
    };
    let verify = |path: &Path, code: i32| {
        sandbox.refrain(&["verify", "--report", path.to_str().unwrap()]).with_code(code)
    };
    let whole = report(&sandbox, "job");
    let agrees = verify(&given("whole.json", &whole), 0);
    assert!(agrees.stdout.contains("the report says what the journal says"), "{}", agrees.stdout);
    for (place, value, named) in [
        ("/reason", json!("all is well"), "reason"),
        ("/proof/tree", json!("1".repeat(40)), "proof.tree"),
        ("/proof/gates/0/command", json!("cargo test"), "proof.gates.0.command"),
        ("/proof/gates/0/log/end", json!("99 passed\n"), "proof.gates.0.log.end"),
        ("/refused", json!([]), "refused.0"),
        ("/files/changed/0/path", json!("other.md"), "files.changed.0.path"),
        ("/evidence/3/seal/bytes", json!(7), "evidence.3.seal.bytes"),
    ] {
        let mut forged = whole.clone();
        *forged.pointer_mut(place).unwrap() = value;
        let run = verify(&given("forged.json", &forged), 1);
        let says = format!("it says something else at {named}\n");
        assert!(run.stdout.contains(&says), "{place}: {}", run.stdout);
    }
    let mut otherwise_signed = whole.clone();
    otherwise_signed["signed"] = json!(null);
    let run = verify(&given("signed.json", &otherwise_signed), 0);
    assert!(
        run.stdout.contains("not checked: the report of") && run.stdout.contains("else at signed; "),
        "{}",
        run.stdout
    );
    let mut of_another = whole.clone();
    of_another["journal"]["hash"] = json!("0".repeat(32));
    let run = verify(&given("another.json", &of_another), 1);
    assert!(run.stdout.contains("another journal"), "{}", run.stdout);
    testkit::write(&sandbox.root().join("none.json"), "{}");
    let run = verify(&sandbox.root().join("none.json"), 2);
    assert!(
        run.stderr.contains("none.json") && run.stderr.contains("refrain report --json"),
        "{}",
        run.stderr
    );
    verify(&sandbox.root().join("missing.json"), 2);
}
