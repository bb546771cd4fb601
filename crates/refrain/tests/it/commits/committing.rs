//! Commits of a loop whose runner is killed, whose hook hangs, or that runs detached. All else is in `scenarios/commits`.

use std::fs;

use testkit::Sandbox;

use crate::{CLAIM, sandbox};

/// Writes one file an iteration; claims in its second.
fn writer(sandbox: &Sandbox) -> String {
    sandbox.agent(
        "writer",
        &format!(
            r#"echo "part $REFRAIN_ITERATION" > "part-$REFRAIN_ITERATION.txt"
cp "$REFRAIN_STATE_FILE" "$NOTES/state" 2>/dev/null
pwd > "$NOTES/where"
[ "$REFRAIN_ITERATION" = 1 ] || {CLAIM}"#
        ),
    )
}

fn start<'a>(agent: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut words =
        vec!["start", "--command", agent, "--name", "job", "-m", "4", "--prompt", "Do all parts."];
    words.extend(more);
    words
}

const COMMIT: &[&str] = &["--git-workflow", "commit"];

fn executable(sandbox: &Sandbox, path: &str, script: &str) {
    let path = sandbox.project().join(path);
    let made = sandbox.agent("a-hook", script);
    fs::rename(made, path).unwrap();
}

#[test]
fn a_commit_that_was_made_when_its_runner_died_is_found_again() {
    let sandbox = sandbox();
    executable(
        &sandbox,
        ".git/hooks/post-commit",
        r#"[ -e "$NOTES/killed" ] || { echo yes > "$NOTES/killed"; kill -9 "$(cat "$NOTES/runner")"; }"#,
    );
    let agent = writer(&sandbox);
    let args = start(&agent, COMMIT);
    // The shell's number becomes the runner's.
    let words: Vec<String> = args.iter().map(|word| format!("'{word}'")).collect();
    let program = env!("CARGO_BIN_EXE_refrain");
    let script = format!("echo $$ > \"$NOTES/runner\"; exec {program} {}", words.join(" "));
    let _killed = sandbox.tool("sh", &["-c", &script]).run();
    assert_eq!(sandbox.note("killed"), "yes\n");
    assert_eq!(sandbox.status("job")["status"], "crashed");

    sandbox.refrain(&["resume", "job"]).with_code(0);
    assert_eq!(sandbox.git(&["log", "--format=%s"]), "Do all parts.\nDo all parts.\nBegin\n");
    assert_eq!(sandbox.status("job")["commits"].as_array().unwrap().len(), 2);
    assert_eq!(sandbox.git(&["status", "--porcelain"]), "");
}

#[test]
fn a_hook_that_hangs_is_ended_with_a_pause_and_the_commit_made_later() {
    let sandbox = sandbox();
    let _gate = sandbox.gate("hook");
    executable(
        &sandbox,
        ".git/hooks/pre-commit",
        r#"[ -e "$NOTES/held" ] || { echo held > "$NOTES/held"; read -r _ < "$GATES/hook"; }"#,
    );
    let agent = writer(&sandbox);
    let session = sandbox.spawn(&start(&agent, COMMIT));
    sandbox.wait_for_note("held");
    sandbox.refrain(&["pause", "job", "--now"]).with_code(0);
    session.wait().with_code(16);
    sandbox.no_process_is_left();
    assert_eq!(sandbox.git(&["log", "--format=%s"]), "Begin\n");

    sandbox.refrain(&["resume", "job"]).with_code(0);
    assert_eq!(sandbox.git(&["log", "--format=%s"]), "Do all parts.\nDo all parts.\nBegin\n");
}

#[test]
fn a_loop_that_commits_can_be_handed_to_a_process_of_its_own() {
    let sandbox = sandbox();
    let agent = writer(&sandbox);
    for (name, more) in [("apart", &["--worktree"][..]), ("here", &[])] {
        let mut words =
            vec!["start", "--command", &agent, "--name", name, "-p", "x", "--auto-commit", "--detach"];
        words.extend(more);
        sandbox.refrain(&words).with_code(0);
        assert_eq!(sandbox.wait_for_status(name, "completed")["commits"].as_array().unwrap().len(), 2);
    }
}

#[test]
fn a_loop_without_a_runner_is_cancelled_despite_uncommitted_work() {
    let sandbox = sandbox();
    let _gate = sandbox.gate("hook");
    executable(&sandbox, ".git/hooks/pre-commit", r#"echo held > "$NOTES/held"; read -r _ < "$GATES/hook""#);
    let agent = writer(&sandbox);
    let session = sandbox.spawn(&start(&agent, COMMIT));
    sandbox.wait_for_note("held");
    session.kill();
    sandbox.refrain(&["cancel", "job"]).with_code(0);
    assert_eq!(sandbox.status("job")["status"], "cancelled");
    sandbox.no_process_is_left();
}
