//! The sandbox of a loop that moves to another machine.

use testkit::{Run, Sandbox};

use crate::setup::sandbox::{sandbox, write};

/// The user's own configuration.
fn set(machine: &Sandbox, text: &str) {
    write(&machine.root().join("home/config/refrain/config.toml"), text);
}

/// A loop on machine one that ended at its cap, without a sandbox, and left for a remote. The agent tries to read a key of the user.
fn departed(one: &Sandbox, remote: &str) {
    one.git(&["init", "--quiet", "--bare", remote]);
    set(one, "");
    let agent =
        one.agent("agent", "cat $HOME/.ssh/id > file$REFRAIN_ITERATION; echo x >> file$REFRAIN_ITERATION");
    let words =
        ["start", "--command", &agent, "--name", "job", "-m", "1", "--worktree", "--auto-commit", "p"];
    one.refrain(&words).with_code(10);
    one.refrain(&["move", "job", "--to", remote]).with_code(0);
}

/// What its agent wrote there.
fn written(two: &Sandbox) -> String {
    let worktree = two.status("job")["worktree"].as_str().unwrap().to_owned();
    std::fs::read_to_string(std::path::Path::new(&worktree).join("file2")).unwrap()
}

fn take(two: &Sandbox, one: &Sandbox, remote: &str) -> Run {
    write(&two.root().join("home/.ssh/id"), "key\n");
    let records = one.journal("job");
    let key = records.iter().rev().find_map(|record| record["signature"]["key"].as_str()).unwrap();
    two.refrain(&["move", "job", "--from", remote, "--signer", key])
}

#[test]
fn a_loop_gets_the_sandbox_that_the_user_of_the_other_machine_asks_for() {
    let (Some(one), Some(two)) = (sandbox(), sandbox()) else { return };
    let remote = one.root().join("state.git").to_str().unwrap().to_owned();
    departed(&one, &remote);
    set(&two, "[sandbox]\nmode = \"on\"\n");
    let run = take(&two, &one, &remote).with_code(0);
    assert!(
        run.stderr.contains("it runs in the sandbox that your [sandbox] mode asks for"),
        "{}",
        run.stderr
    );
    let events = two.journal("job");
    let moved = events.iter().find(|record| record["event"]["type"] == "loop.moved").unwrap();
    assert!(moved["event"]["data"]["sandbox"].is_object(), "{moved}");
    two.refrain(&["resume", "job", "-m", "2"]).with_code(10);
    assert_eq!(written(&two), "x\n", "the sandbox hides the key");
}

#[test]
fn a_loop_without_a_sandbox_stays_without_one_where_the_user_asks_for_none() {
    let (Some(one), Some(two)) = (sandbox(), sandbox()) else { return };
    let remote = one.root().join("state.git").to_str().unwrap().to_owned();
    departed(&one, &remote);
    set(&two, "");
    let run = take(&two, &one, &remote).with_code(0);
    assert!(!run.stderr.contains("sandbox"), "{}", run.stderr);
    two.refrain(&["resume", "job", "-m", "2"]).with_code(10);
    assert_eq!(written(&two), "key\nx\n");
}
