//! `resume --from`: a loop of another system takes every option of `start`, and what was checked there is checked here.

use rstest::rstest;
use serde_json::{Value, json};
use testkit::{Run, Sandbox, write};

use crate::{CLAIM, sandbox};

/// A state of Conclave: its tests failed last.
const CONCLAVE: &str = r#"{"task_id":"t","iteration":3,"max_iterations":5,"last_gate":"tests","exit_code":1,
"error_hash":"a3f2b7c1","stuck_count":2,"attempts":[]}"#;

const DESCARTES: &str = r#"{"version":"1.0","iteration":1,"config":{"command":"sh","prompt":"Mend it.",
"completion_promise":"COMPLETE","max_iterations":4},"completed":false,"exit_reason":{"type":"running"}}"#;

fn put(sandbox: &Sandbox, name: &str, text: &str) {
    write(&sandbox.project().join(name), text);
}

fn from(sandbox: &Sandbox, file: &str, more: &[&str]) -> Run {
    sandbox.refrain(&[&["resume", "--from", file], more].concat())
}

fn spec(sandbox: &Sandbox, id: &str) -> Value {
    sandbox.journal(id)[0]["event"]["data"]["spec"].clone()
}

/// A project whose tests pass once `work.txt` says good.
fn with_tests() -> Sandbox {
    let sandbox = sandbox();
    let test = "grep -q good work.txt && echo 1 passed || { echo 'FAILED test_work' >&2; exit 1; }";
    std::fs::rename(sandbox.agent("test.sh", test), sandbox.project().join("test.sh")).unwrap();
    put(&sandbox, "P.md", "Put the word good into work.txt.\n");
    put(&sandbox, ".ralph_state.json", CONCLAVE);
    sandbox.git(&["add", "-A"]);
    sandbox.git(&["commit", "-qm", "Task"]);
    sandbox.trust();
    sandbox
}

/// What seed 001 calls the file that a loop is shown in.
#[test]
fn a_state_file_names_its_loop() {
    let sandbox = sandbox();
    std::fs::create_dir(sandbox.project().join(".descartes")).unwrap();
    put(&sandbox, ".descartes/loop-state.json", DESCARTES);
    for verb in ["status", "resume"] {
        let run = sandbox.refrain(&["loop", verb]).with_code(2);
        assert!(run.stderr.contains("refrain resume --from .descartes/loop-state.json"), "{}", run.stderr);
    }
    std::fs::remove_dir_all(sandbox.project().join(".descartes")).unwrap();
    let agent = sandbox.agent("agent", "echo nothing yet");
    let file = ".descartes/loop-state.json";
    let words = ["start", "--command", &agent, "--name", "job", "-m", "1", "--mirror", "descartes", "p"];
    sandbox.refrain(&words).with_code(10);
    sandbox.refrain(&["start", "--command", &agent, "--name", "other", "-m", "1", "p"]).with_code(10);
    let shown = sandbox.refrain(&["loop", "status", "--state-file", file]).with_code(0).stdout;
    assert!(shown.contains("job") && shown.contains("iteration-cap"), "{shown}");
    let object = sandbox.refrain(&["status", "--state-file", file, "--json"]).with_code(0);
    assert_eq!(object.json(), sandbox.status("job"));
    let words = ["loop", "resume", "--state-file", file, "--max-iterations", "2"];
    sandbox.refrain(&words).with_code(10);
    assert_eq!(sandbox.status("job")["charged"], 2);
    let run = sandbox.refrain(&["loop", "cancel", "--state-file", file]).with_code(0);
    assert!(run.stdout.starts_with("job is cancelled"), "{}", run.stdout);

    // One that another system wrote itself.
    let theirs =
        "---\nmode: implement\niteration: 1\niterations: 4\ncompletion_promise: COMPLETE\n---\n\nMend it.\n";
    testkit::write(&sandbox.project().join("loop.local.md"), theirs);
    let before = sandbox.snapshot();
    let shown = sandbox.refrain(&["status", "--state-file", "loop.local.md"]).with_code(0).stdout;
    assert!(shown.contains("of Randroid") && shown.contains("1/4"), "{shown}");
    let run = sandbox.refrain(&["status", "--state-file", "loop.local.md", "--json"]).with_code(2);
    assert!(run.stderr.contains("a loop of Randroid, which has no status object"), "{}", run.stderr);
    let run = sandbox.refrain(&["cancel", "--state-file", "loop.local.md"]).with_code(17);
    assert!(run.stderr.contains("which Refrain does not drive"), "{}", run.stderr);
    let run = sandbox.refrain(&["status", "--state-file", "gone.json"]).with_code(2);
    assert!(run.stderr.contains("--state-file gone.json"), "{}", run.stderr);
    assert!(sandbox.snapshot() == before, "something was touched");
    let words = ["resume", "--state-file", "loop.local.md", "--command", &agent, "--prompt", "p"];
    sandbox.refrain(&words).with_code(10);
}

/// The finding: such a loop was completed after its first attempt, with the tests failing.
#[test]
fn a_loop_of_conclave_never_ends_without_its_gates() {
    let sandbox = with_tests();
    let reviewer = sandbox.agent("content", "echo SPEC_PASS");
    let words = ["--prompt-file", "P.md", "--command", "true", "--reviewer", &reviewer];
    from(&sandbox, ".ralph_state.json", &words).with_code(10);
    let status = sandbox.status("t");
    assert_eq!((&status["charged"], &status["verified"]), (&json!(5), &json!(false)));
    let names: Vec<_> = status["gates"].as_array().unwrap().iter().map(|gate| gate["name"].clone()).collect();
    assert_eq!(names, ["tests"], "the reviewer is spared where the tests fail");
    let gates = spec(&sandbox, "t")["gates"].clone();
    assert_eq!((&gates[0]["name"], &gates[1]["name"]), (&json!("tests"), &json!("spec")), "{gates}");
    let spec = spec(&sandbox, "t");
    assert_eq!(spec["limits"]["timeout_ms"], 1_200_000, "as refrain run has it");
    assert_eq!(
        (&spec["stuck"]["by_failure"], &spec["mirrors"]),
        (&json!(true), &json!(["ralph"])),
        "likewise"
    );

    let other = with_tests();
    let (agent, reviewer) =
        (other.agent("able", "echo good > work.txt"), other.agent("content", "echo SPEC_PASS"));
    let words = ["--prompt-file", "P.md", "--command", &agent, "--reviewer", &reviewer];
    from(&other, ".ralph_state.json", &words).with_code(0);
    let status = other.status("t");
    assert_eq!((&status["iteration"], &status["verified"]), (&json!(4), &json!(true)));
}

#[test]
fn a_loop_of_conclave_is_refused_where_nothing_can_check_it() {
    let sandbox = sandbox();
    put(&sandbox, ".ralph_state.json", CONCLAVE);
    put(&sandbox, "P.md", "Do it.\n");
    let before = sandbox.snapshot();
    let refused =
        from(&sandbox, ".ralph_state.json", &["--prompt-file", "P.md", "--command", "true"]).with_code(2);
    assert!(
        refused.stderr.contains("nothing there says how to test it")
            && refused.stderr.contains("refrain resume --from .ralph_state.json --gate CMD"),
        "{}",
        refused.stderr
    );
    assert_eq!(sandbox.snapshot(), before, "nothing was begun");
    let gated = ["--prompt", "Do it.", "--command", "true", "--gate", "made=test -e made"];
    from(&sandbox, ".ralph_state.json", &gated).with_code(10);
    assert_eq!(sandbox.status("t")["verified"], false);
}

#[rstest]
#[case::descartes("state.json", DESCARTES.replace("\"prompt\"", "\"verification_command\":\"touch owned\",\"prompt\""), "verification_command")]
#[case::randroid(
    "loop.local.md",
    "---\nmode: implement\niteration: 1\niterations: 4\nsuccess_command: touch owned\ncompletion_promise: COMPLETE\n---\n\nMend it.\n".to_owned(),
    "success_command"
)]
#[case::ralph(
    "ralph.md",
    "---\nactive: true\niteration: 1\nmax_iterations: 4\ngate: touch owned\ncompletion_promise: COMPLETE\n---\n\nMend it.\n".to_owned(),
    "gate"
)]
fn a_loop_with_a_foreign_check_needs_a_gate(#[case] name: &str, #[case] text: String, #[case] key: &str) {
    let sandbox = sandbox();
    put(&sandbox, name, &text);
    let agent = sandbox.agent("claims", CLAIM);
    let before = sandbox.snapshot();
    let refused = from(&sandbox, name, &["--command", &agent]).with_code(2);
    for part in [key, "--gate CMD", "the file names touch owned"] {
        assert!(refused.stderr.contains(part), "{part}: {}", refused.stderr);
    }
    assert_eq!(sandbox.snapshot(), before, "nothing was begun, and the command was not run");
    from(&sandbox, name, &["--command", &agent, "--gate", "true", "--name", "job"]).with_code(0);
    assert_eq!(sandbox.status("job")["verified"], true);
}

#[test]
fn a_foreign_loop_accepts_every_start_option() {
    let sandbox = sandbox();
    put(&sandbox, "state.json", DESCARTES);
    let agent = sandbox.agent("works", "echo \"$MARK\" >> made; echo DONE");
    let words = [
        "--command",
        &agent,
        "--name",
        "job",
        "--prompt",
        "Another task.",
        "--directions",
        "Slowly.",
        "--completion-promise",
        "DONE",
        "--env",
        "MARK=x",
        "--gate",
        "made=test -e made",
        "--gate-timeout",
        "9s",
        "--git-workflow",
        "commit",
        "--worktree",
        "--timeout",
        "30s",
        "--max-duration",
        "1h",
        "--stuck-threshold",
        "4",
        "--mirror",
        "synthex",
    ];
    from(&sandbox, "state.json", &words).with_code(0);
    let spec = spec(&sandbox, "job");
    assert!(spec["prompt"].as_str().unwrap().starts_with("Another task."), "{spec}");
    assert!(spec["prompt"].as_str().unwrap().contains("Slowly."), "{spec}");
    assert_eq!(spec["gates"][0]["timeout_ms"], 9_000);
    assert_eq!(
        (&spec["limits"]["timeout_ms"], &spec["limits"]["max_duration_ms"]),
        (&json!(30_000), &json!(3_600_000))
    );
    assert_eq!((&spec["stuck"]["threshold"], &spec["mirrors"]), (&json!(4), &json!(["synthex"])));
    assert_eq!(spec["git"]["workflow"], "commit");
    let status = sandbox.status("job");
    assert_eq!((&status["verified"], &status["iteration"]), (&json!(true), &json!(2)), "it counts on");
    assert!(!status["commits"].as_array().unwrap().is_empty());
}

#[rstest]
#[case::exactly(&["--exact", "3"], 0, 3, "completed")]
#[case::at_most(&["--iterations", "3"], 10, 3, "iteration-cap")]
fn the_iterations_of_a_foreign_loop_count_in_the_total(
    #[case] more: &[&str],
    #[case] code: i32,
    #[case] charged: u32,
    #[case] word: &str,
) {
    let sandbox = sandbox();
    put(&sandbox, "state.json", DESCARTES);
    let agent = sandbox.agent("silent", "echo x >> made");
    from(&sandbox, "state.json", &[&["--command", &agent, "--name", "job"], more].concat()).with_code(code);
    let status = sandbox.status("job");
    assert_eq!((&status["charged"], &status["status"]), (&json!(charged), &json!(word)));
    assert_eq!(status["started"], charged - 1, "one was counted there");
}

#[test]
fn a_limit_of_a_loop_is_raised_and_not_taken_away() {
    let sandbox = sandbox();
    let agent = sandbox.agent("silent", "echo x");
    sandbox.refrain(&["start", "--command", &agent, "--name", "job", "-m", "1", "p"]).with_code(10);
    let refused = sandbox.refrain(&["resume", "job", "--max-duration", "none"]).with_code(2);
    assert!(refused.stderr.contains("--max-duration none: accepted: a total"), "{}", refused.stderr);
}
