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
    take_by(two, one, remote, |two, words| two.refrain(words))
}

fn take_by(two: &Sandbox, one: &Sandbox, remote: &str, run: impl Fn(&Sandbox, &[&str]) -> Run) -> Run {
    write(&two.root().join("home/.ssh/id"), "key\n");
    let records = one.journal("job");
    let key = records.iter().rev().find_map(|record| record["signature"]["key"].as_str()).unwrap();
    run(two, &["move", "job", "--from", remote, "--signer", key])
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

#[test]
fn a_loop_comes_to_a_machine_that_cannot_make_the_sandbox_of_its_user_and_only_resume_refuses() {
    let (Some(one), Some(two)) = (sandbox(), sandbox()) else { return };
    let remote = one.root().join("state.git").to_str().unwrap().to_owned();
    departed(&one, &remote);
    set(&two, "[sandbox]\nmode = \"on\"\n");
    let none = |two: &Sandbox, words: &[&str]| {
        let (refrain, words) = (env!("CARGO_BIN_EXE_refrain"), words.join(" "));
        let script = format!("echo 0 > /proc/sys/user/max_user_namespaces && exec {refrain} {words}");
        two.tool("unshare", &["-Ur", "sh", "-c", &script]).run()
    };
    let hook = two.project().join(".git/hooks/post-checkout");
    write(&hook, "#!/bin/sh\necho ran >> $NOTES/hook\n");
    std::fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let taken = take_by(&two, &one, &remote, none).with_code(0);
    let refused = none(&two, &["resume", "job", "-m", "2"]).with_code(1);
    let own_rights = "--no-sandbox continues it with your own rights";
    for run in [taken, refused] {
        for words in ["user.max_user_namespaces = 0", "sudo sysctl user.max_user_namespaces", own_rights] {
            assert!(run.stderr.contains(words), "{words:?} is not in {}", run.stderr);
        }
    }
    assert_eq!(two.note("hook"), "", "nothing runs without it");
    none(&two, &["resume", "job", "-m", "2", "--no-sandbox"]).with_code(10);
    assert_eq!(written(&two), "key\nx\n");
}
