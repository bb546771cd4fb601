//! How the prompt reaches the agent, and what else it receives: its environment, its state file.

use crate::{CLAIM, sandbox};

#[test]
fn a_loop_in_a_loop_runs_and_one_more_is_refused() {
    let sandbox = sandbox();
    let refrain = env!("CARGO_BIN_EXE_refrain");
    let inner = sandbox.agent(
        "inner",
        &format!("echo \"$REFRAIN_DEPTH\" > $NOTES/depth\n{refrain} start --command true --name c --share-worktree p 2> $NOTES/refused\necho $? > $NOTES/code\n{CLAIM}"),
    );
    let outer = sandbox.agent(
        "outer",
        &format!(
            "{refrain} start --command {inner} --name b --share-worktree p > $NOTES/log 2>&1 || exit\n{CLAIM}"
        ),
    );
    sandbox.refrain(&["start", "--command", &outer, "--name", "a", "-m", "1", "p"]).with_code(0);
    assert_eq!((sandbox.note("depth"), sandbox.note("code")), ("2\n".to_owned(), "17\n".to_owned()));
    assert!(!sandbox.loop_dir("c").exists(), "nothing was touched");
    assert_eq!(sandbox.status("b")["status"], "completed");
}
