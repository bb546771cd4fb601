//! Loops that wait for approval: who may give it, and who may not.

use serde_json::{Value, json};
use testkit::{Sandbox, eventually, write};

use crate::{CLAIM, plain_folder, sandbox};

/// Adds a line in every iteration, stores its prompt, and claims.
const WORK: &str =
    "echo \"line $REFRAIN_ITERATION\" >> work.txt\nprintf '%s' \"$1\" > $NOTES/told.$REFRAIN_ITERATION\n";

fn agent(sandbox: &Sandbox) -> String {
    sandbox.agent("agent", &format!("{WORK}{CLAIM}"))
}

/// A loop that waits: it claimed once, and its gate passed.
fn waiting(sandbox: &Sandbox, more: &[&str]) -> Value {
    let agent = agent(sandbox);
    let words =
        ["start", "--command", &agent, "--name", "job", "--require-approval", "--gate", "test -f work.txt"];
    let words: Vec<_> = words.into_iter().chain(more.iter().copied()).chain(["-p", "Write it."]).collect();
    let run = sandbox.refrain(&words).with_code(14);
    assert!(run.stdout.contains("your approval last"), "{}", run.stdout);
    sandbox.status("job")
}

fn commits(sandbox: &Sandbox) -> usize {
    sandbox.git(&["log", "--oneline"]).lines().count()
}

/// A yes that is typed as an answer would send the work back.
#[test]
fn an_answer_decides_no_approval() {
    let sandbox = sandbox();
    waiting(&sandbox, &[]);
    let refused = sandbox.refrain(&["answer", "job", "yes"]).with_code(17).stderr;
    assert!(refused.contains("job asks nothing: it waits for an approval"), "{refused}");
    assert!(refused.contains("refrain approve job; or send it back: refrain steer job TEXT"), "{refused}");
    assert_eq!(sandbox.status("job")["approval"]["state"], "awaited");
}

/// Its iterations are used up, so each command that sends it back grants more, and runs as it is shown.
#[test]
fn a_loop_of_an_exact_number_is_sent_back_by_the_command_that_is_shown() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", "echo more >> work.txt; echo working");
    let start = ["start", "--command", &agent, "--name", "job", "--exact", "2", "--require-approval"];
    let begun = sandbox.refrain(&[&start[..], &["--gate", "true", "p"]].concat()).with_code(14).stdout;
    assert!(
        begun.contains("the 2 iterations that were asked for are done, and every required gate"),
        "{begun}"
    );
    assert!(!begun.contains("claims to be done"), "{begun}");
    let shown = "then refrain resume job --max-iterations 4";
    assert!(begun.contains(shown), "{begun}");
    for words in [&["answer", "job", "more"][..], &["resume"]] {
        let refused = sandbox.refrain(words).with_code(17).stderr;
        assert!(refused.contains(shown), "{refused}");
    }
    sandbox.refrain(&["resume", "job", "--max-iterations", "22"]).with_code(14);
}

#[test]
fn proven_work_waits_for_approval() {
    let sandbox = sandbox();
    let before = commits(&sandbox);
    let status = waiting(&sandbox, &["--git-workflow", "commit"]);
    assert_eq!((&status["status"], &status["approval"]["state"]), (&json!("blocked"), &json!("awaited")));
    assert_eq!((&status["verified"], &status["tree"]), (&json!(false), &Value::Null));
    assert_eq!(commits(&sandbox), before, "nothing of it is committed");
    let needs = status["needs"].as_str().unwrap();
    // The printed command shows what the loop made, and lets it finish.
    assert!(
        needs.contains("see what it changed with refrain diff job, then refrain approve job;"),
        "{needs}"
    );
    // Nothing that an agent configured is run.
    let planted = ["diff.external", "core.pager", "core.fsmonitor", "diff.evil.textconv"];
    let evil = format!("touch {}; false", sandbox.root().join("fired").display());
    planted.iter().for_each(|key| drop(sandbox.git(&["config", key, &evil])));
    write(&sandbox.project().join(".git/info/attributes"), "* diff=evil\n");
    let diff = sandbox.refrain(&["diff", "job"]).with_code(0).stdout;
    assert!(diff.contains("+line 1"), "{diff}");
    assert!(!sandbox.root().join("fired").exists(), "{needs}");
    planted.iter().for_each(|key| drop(sandbox.git(&["config", "--unset", key])));
    std::fs::remove_file(sandbox.project().join(".git/info/attributes")).unwrap();
    assert!(needs.contains("refrain approve job; or send it back: refrain steer job TEXT"), "{needs}");
    sandbox.no_process_is_left();
    let run = sandbox.approve("job", &[]).with_code(0);
    assert!(run.stdout.contains("approved; it is looked at once more"), "{}", run.stdout);
    let status = sandbox.status("job");
    assert_eq!((&status["status"], &status["approval"]["state"]), (&json!("completed"), &json!("given")));
    assert_eq!(status["tree"], status["approval"]["tree"]);
    assert!(status["reason"].as_str().unwrap().ends_with("; a person approved it"), "{status}");
    assert_eq!(commits(&sandbox), before + 1);
    assert_eq!(sandbox.git(&["rev-parse", "HEAD^{tree}"]).trim(), status["tree"].as_str().unwrap());
    let gates = sandbox.event_names("job").iter().filter(|name| *name == "gate.started").count();
    assert_eq!(gates, 2, "the baseline and the claim: an approved candidate is not proven twice");
    let report = sandbox.refrain(&["report", "job"]).with_code(0).stdout;
    assert!(report.contains("A person approved this tree at"), "{report}");
    sandbox.refrain(&["verify", "job"]).with_code(0);
    let again = sandbox.refrain(&["approve", "job"]).with_code(17).stderr;
    assert!(again.contains("job cannot be approved: it is completed"), "{again}");
}

#[test]
fn work_edited_before_approval_is_proven_and_asked_about_again() {
    let sandbox = sandbox();
    let looked_at = waiting(&sandbox, &[])["approval"]["tree"].as_str().unwrap().to_owned();
    write(&sandbox.project().join("work.txt"), "mine\n");
    sandbox.refrain(&["approve", "job", "--tree", &looked_at[..10]]).with_code(14);
    let status = sandbox.status("job");
    let reason = status["reason"].as_str().unwrap();
    assert!(
        reason.starts_with(&format!("what was approved, tree {}, is another", &looked_at[..10])),
        "{reason}"
    );
    assert_ne!(status["approval"]["tree"], json!(looked_at));
    let other = sandbox.refrain(&["approve", "job", "--tree", &looked_at]).with_code(17).stderr;
    assert!(other.contains("waits for approval, not tree"), "{other}");
    // Work that fails its gate by now goes back to the agent, and no approval is asked.
    std::fs::remove_file(sandbox.project().join("work.txt")).unwrap();
    sandbox.approve("job", &[]).with_code(14);
    let told = sandbox.note("told.2");
    assert!(told.contains("CLAIM REFUSED: gate test failed"), "{told}");
    sandbox.approve("job", &[]).with_code(0);
}

#[test]
fn work_that_is_sent_back_is_kept_and_the_agent_gets_the_reason() {
    let sandbox = sandbox();
    waiting(&sandbox, &["--git-workflow", "commit", "--protect", "ci/**"]);
    sandbox.refrain(&["steer", "job", "Write one more line."]).with_code(0);
    for words in [&["resume"][..], &["resume", "--last"]] {
        let run = sandbox.refrain(words).with_code(17);
        assert!(run.stderr.contains("job waits for approval, and would be sent back"), "{}", run.stderr);
    }
    assert!(sandbox.refrain(&["resume", "--all"]).with_code(0).stdout.contains("Nothing to resume"));
    let run = sandbox.refrain(&["resume", "job"]).with_code(14);
    assert!(run.stdout.contains("without approval: it is sent back"), "{}", run.stdout);
    let told = sandbox.note("told.2");
    assert!(told.contains("CLAIM REFUSED: a person looked at your work and did not approve it"), "{told}");
    assert!(told.contains("STEERING:\nWrite one more line."), "{told}");
    sandbox.approve("job", &[]).with_code(0);
    // The commit contains the work from before the rejection too.
    assert_eq!(sandbox.git(&["show", "HEAD:work.txt"]), "line 1\nline 2\n");
    assert_eq!(sandbox.git(&["status", "--porcelain", "--", "work.txt"]), "");
}

#[test]
fn without_an_iteration_left_it_can_be_approved_and_not_sent_back() {
    let sandbox = sandbox();
    waiting(&sandbox, &["--max-iterations", "1"]);
    let refused = sandbox.refrain(&["resume", "job"]).with_code(17).stderr;
    assert!(refused.contains("refrain resume job --max-iterations"), "{refused}");
    sandbox.approve("job", &["--json"]).with_code(0);
}

#[test]
fn an_approval_survives_the_runner_that_was_to_finish_it() {
    let sandbox = sandbox();
    // The commit of the approved work is delayed.
    let held = sandbox.root().join("held");
    let hook = format!("#!/bin/sh\n[ -e '{0}' ] || {{ touch '{0}'; exec sleep 1000; }}\n", held.display());
    let path = sandbox.project().join(".git/hooks/pre-commit");
    write(&path, hook);
    sandbox.tool("chmod", &["+x", path.to_str().unwrap()]).run().with_code(0);
    waiting(&sandbox, &["--git-workflow", "commit"]);
    let tree = sandbox.waiting_tree("job");
    let session = sandbox.spawn(&["approve", "job", "--tree", &tree]);
    eventually("its commit is held up", || held.exists().then_some(()));
    session.kill();
    assert_eq!(sandbox.status("job")["status"], "crashed");
    sandbox.refrain(&["resume", "job"]).with_code(0);
    assert_eq!(sandbox.status("job")["approval"]["state"], "given");
    sandbox.no_process_is_left();
}

#[test]
fn a_claim_whose_gates_fail_is_never_asked_about() {
    let sandbox = sandbox();
    let agent = agent(&sandbox);
    let words = ["start", "--command", &agent, "--name", "job", "--require-approval", "--gate", "false"];
    let words: Vec<_> = words.into_iter().chain(["--max-iterations", "2", "-p", "Write it."]).collect();
    sandbox.refrain(&words).with_code(10);
    assert_eq!(sandbox.status("job")["approval"], Value::Null);
    let refused = sandbox.refrain(&["approve", "job"]).with_code(17).stderr;
    assert!(refused.contains("it does not wait for approval: it is iteration-cap"), "{refused}");
}

#[test]
fn no_agent_approves_or_refuses() {
    let sandbox = sandbox();
    waiting(&sandbox, &[]);
    for words in [&["approve", "job"][..], &["resume", "job"]] {
        let inside = sandbox.command(words).env("REFRAIN_LOOP_ID", "other").run().with_code(17);
        assert!(inside.stderr.contains("from inside an attempt"), "{words:?}: {}", inside.stderr);
        let status = sandbox.status("job");
        assert_eq!((&status["status"], &status["approval"]["state"]), (&json!("blocked"), &json!("awaited")));
    }
}

#[test]
fn without_a_repository_and_without_gates_it_is_asked_about_too() {
    let sandbox = plain_folder();
    let agent = agent(&sandbox);
    write(&sandbox.project().join("refrain.toml"), "[start]\nrequire-approval = true\n");
    sandbox.trust();
    sandbox.refrain(&["start", "--command", &agent, "--name", "job", "-p", "Write it."]).with_code(14);
    let status = sandbox.status("job");
    assert_eq!(
        (&status["approval"]["state"], &status["approval"]["tree"]),
        (&json!("awaited"), &Value::Null)
    );
    sandbox.approve("job", &["--detach"]).with_code(0);
    let status = sandbox.wait_for_status("job", "completed");
    assert_eq!(status["verified"], Value::Null);
}

#[test]
fn approval_options_that_cannot_apply_are_refused() {
    let sandbox = sandbox();
    write(&sandbox.project().join("refrain.toml"), "[start]\nrequire-approval = true\n");
    sandbox.trust();
    let before = sandbox.snapshot();
    for (words, code, why) in [
        (
            &["start", "--command", "true", "--infinite", "--require-approval", "-p", "x"][..],
            2,
            "without an end",
        ),
        (
            &["start", "--command", "true", "--infinite", "-p", "x"],
            2,
            "start.require-approval: a loop without",
        ),
        (
            &["tick", "begin", "/refrain:loop", "--args", "Do it. --require-approval"],
            1,
            "--require-approval: a session waits",
        ),
        (&["approve", "job", "--tree", "no"], 2, "at least 4 hexadecimal digits"),
        (&["approve", "job"], 3, "no loop job"),
        (&["approve"], 2, "this project has no loops"),
    ] {
        let run = sandbox.refrain(words).with_code(code);
        assert!(run.stderr.contains(why), "{words:?}: {}", run.stderr);
    }
    assert_eq!(sandbox.snapshot(), before, "nothing was touched");
}

#[test]
fn configured_approval_is_ignored_by_sessions_and_plans() {
    let sandbox = sandbox();
    let key = "[start]\nrequire-approval = true\n";
    write(&sandbox.project().join("refrain.toml"), key);
    sandbox.trust();
    let begun = ["tick", "begin", "/refrain:loop", "--session-id", "s", "--name", "job", "--args", "Do it."];
    let run = sandbox.refrain(&begun).with_code(0);
    assert!(run.stderr.contains("start.require-approval does not count here: a session"), "{}", run.stderr);
    let tasks = r#"{"tag": "x", "tasks": [{"id": 1, "title": "Write it", "status": "pending"}]}"#;
    std::fs::create_dir_all(sandbox.project().join(".scud/tasks")).unwrap();
    write(&sandbox.project().join(".scud/tasks/x.json"), tasks);
    let check = ["plan", "check", "--tag", "x", "--command", "true", "--verify", "true"];
    let run = sandbox.refrain(&check);
    assert!(run.stderr.contains("start.require-approval does not count here: the tasks"), "{}", run.stderr);
    let run = sandbox.refrain(&[&check[..], &["--require-approval"]].concat()).with_code(2);
    assert!(
        run.stderr.contains("--require-approval: the tasks of a plan wait for no person"),
        "{}",
        run.stderr
    );
}
