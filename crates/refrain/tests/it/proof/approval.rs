//! Approval that needs a killed runner or a detached one. All else is in `scenarios/approval`.

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
