//! Agents that remove Refrain's own folder while they work: the runner writes its journal back and takes its locks again at once, so
//! that its loop is found, and no other can start beside it.

use std::fs::{self, File};
use std::path::Path;

use serde_json::json;
use testkit::{Sandbox, eventually};

use crate::{CLAIM, sandbox};

/// Whether a lock file is there, and a process holds it.
fn is_held(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| file.try_lock_shared().is_err())
}

fn wait_for_lock(path: &Path) {
    eventually(&format!("{} is held", path.display()), || is_held(path).then_some(()));
}

/// Starts a loop whose agent runs this first, and then waits at the gate `go`.
fn started(sandbox: &Sandbox, removes: &str) -> testkit::Session {
    let script = format!(
        "echo $REFRAIN_ITERATION > $REFRAIN_ITERATION.txt\n{removes}\necho x > $NOTES/removed.$REFRAIN_ITERATION
read -r _ < $GATES/go\ntest $REFRAIN_ITERATION = 1 || {CLAIM}"
    );
    let agent = sandbox.agent("agent", &script);
    sandbox.spawn(&["start", "--command", &agent, "--name", "job", "--auto-commit", "--prompt", "p"])
}

#[test]
fn a_loop_with_a_removed_folder_is_found_and_not_doubled() {
    let sandbox = sandbox();
    let gate = sandbox.gate("go");
    let session = started(&sandbox, "rm -rf .git/refrain");
    sandbox.wait_for_note("removed.1");
    wait_for_lock(&sandbox.loop_dir("job").join("runner.lock"));
    let worktrees = sandbox.project().join(".git/refrain/worktrees");
    let is_locked = |entry: fs::DirEntry| entry.file_name() != "claims.lock" && is_held(&entry.path());
    eventually("the worktree is locked", || {
        fs::read_dir(&worktrees).ok()?.flatten().any(is_locked).then_some(())
    });
    let status = sandbox.wait_for_status("job", "running");
    assert_eq!((&status["iteration"], &status["runner"]["alive"]), (&json!(1), &json!(true)));

    let agent = sandbox.agent("other", CLAIM);
    let start = |name: &'static str| sandbox.refrain(&["start", "--command", &agent, "--name", name, "p"]);
    let taken = start("job").with_code(17);
    assert!(taken.stderr.contains("job"), "{}", taken.stderr);
    let beside = start("other").with_code(17);
    assert!(beside.stderr.contains("loop job works in"), "{}", beside.stderr);
    sandbox.refrain(&["steer", "job", "Mind the oak."]).with_code(0);

    gate.let_one_pass();
    sandbox.wait_for_note("removed.2");
    wait_for_lock(&sandbox.loop_dir("job").join("runner.lock"));
    gate.let_one_pass();
    let run = session.wait().with_code(0);
    assert!(run.stdout.contains("the journal had been deleted, and was written back"), "{}", run.stdout);
    let status = sandbox.status("job");
    let counted = (&status["charged"], &status["started"], status["commits"].as_array().unwrap().len());
    assert_eq!(counted, (&json!(2), &json!(2), 2));
    sandbox.refrain(&["verify", "job"]).with_code(0);
}

#[test]
fn a_lock_or_a_doorbell_that_was_removed_alone_is_made_again() {
    let sandbox = sandbox();
    let gate = sandbox.gate("go");
    let session = started(&sandbox, "cd .git/refrain/loops/job; rm -f runner.lock doorbell");
    sandbox.wait_for_note("removed.1");
    wait_for_lock(&sandbox.loop_dir("job").join("runner.lock"));
    sandbox.refrain(&["resume", "job"]).with_code(17);
    sandbox.refrain(&["pause", "job"]).with_code(0);
    gate.let_one_pass();
    session.wait().with_code(16);
}

#[test]
fn a_plan_with_a_removed_folder_is_found_and_continues() {
    let sandbox = sandbox();
    let gate = sandbox.gate("go");
    fs::create_dir_all(sandbox.project().join(".scud/tasks")).unwrap();
    let tasks =
        r#"{"tag": "x", "tasks": [{"id": 1, "title": "Do it", "status": "pending", "complexity": 1}]}"#;
    testkit::write(&sandbox.project().join(".scud/tasks/x.json"), tasks);
    sandbox.git(&["add", "-A"]);
    sandbox.git(&["commit", "-qm", "Begin"]);
    let agent = sandbox.agent(
        "worker",
        "echo one > one.txt\nrm -rf \"$(git rev-parse --git-common-dir)/refrain\"\necho x > $NOTES/removed
read -r _ < $GATES/go\necho TASK_COMPLETE",
    );
    let words = ["plan", "run", "--tag", "x", "--command", &agent, "--verify", "true", "--name", "fx"];
    let session = sandbox.spawn(&words);
    sandbox.wait_for_note("removed");
    let plan = sandbox.project().join(".git/refrain/plans/fx");
    wait_for_lock(&plan.join("runner.lock"));
    let view = eventually("the plan is found", || {
        let run = sandbox.refrain(&["plan", "status", "fx", "--json"]);
        serde_json::from_str::<serde_json::Value>(&run.stdout).ok().filter(|view| view["status"] == "running")
    });
    let id = view["current"][0]["loop"].as_str().unwrap().to_owned();
    wait_for_lock(&sandbox.loop_dir(&id).join("runner.lock"));
    sandbox.wait_for_status(&id, "running");
    sandbox.refrain(&words).with_code(17);
    gate.let_one_pass();
    session.wait().with_code(0);
    assert_eq!(sandbox.git(&["show", "HEAD:one.txt"]), "one\n");
    sandbox.refrain(&["verify", &id]).with_code(0);
}
