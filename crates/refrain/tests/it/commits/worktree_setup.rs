//! `[worktrees] setup`: the command that prepares a new worktree, once.

use std::fs;

use testkit::{Sandbox, write};

use crate::plans::plan_verbs::{feature, run};
use crate::{CLAIM, sandbox};

fn configure(sandbox: &Sandbox, setup: &str) {
    let folder = sandbox.root().join("home/config/refrain");
    fs::create_dir_all(&folder).unwrap();
    write(&folder.join("config.toml"), format!("[worktrees]\nsetup = '{setup}'\n"));
}

fn start<'a>(agent: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let words = ["start", "--command", agent, "--name", "job", "--auto-commit", "-p", "Work."];
    words.into_iter().chain(more.iter().copied()).collect()
}

#[test]
fn a_new_worktree_is_prepared_once_before_the_agent_works() {
    let sandbox = sandbox();
    configure(&sandbox, "echo prepared >> $NOTES/setup; echo to both; echo streams >&2; echo x > ready.txt");
    write(&sandbox.project().join(".git/info/exclude"), "ready.txt\n");
    let agent = sandbox.agent("agent", &format!("[ -f ready.txt ] && echo x > work.txt && {CLAIM}"));
    sandbox.refrain(&start(&agent, &["--worktree", "--branch-template", "work"])).with_code(0);
    assert_eq!(sandbox.note("setup"), "prepared\n");
    assert_eq!(fs::read_to_string(sandbox.loop_dir("job").join("setup.log")).unwrap(), "to both\nstreams\n");
    assert_eq!(sandbox.git(&["show", "--name-only", "--format=%s", "work"]), "Work.\n\nwork.txt\n");
    // Without a worktree of its own there is nothing to prepare.
    let words = ["start", "--command", &agent, "--name", "here", "-m", "1", "-p", "Work."];
    sandbox.refrain(&words).with_code(10);
    assert_eq!(sandbox.note("setup"), "prepared\n");
    sandbox.no_process_is_left();
}

#[test]
fn a_setup_that_fails_blocks_the_loop_before_the_agent_runs() {
    let sandbox = sandbox();
    configure(&sandbox, "echo no such package; test -e $NOTES/mended || exit 3");
    let agent = sandbox.agent("agent", &format!("echo x >> $NOTES/ran; {CLAIM}"));
    let run = sandbox.refrain(&start(&agent, &["--worktree"])).with_code(14);
    for part in ["[worktrees] setup failed: echo no such package; ", ": exit code 3; ", "/setup.log has what"]
    {
        assert!(run.stdout.contains(part), "{part}: {}", run.stdout);
    }
    assert_eq!(sandbox.note("ran"), "");
    sandbox.refrain(&["resume", "job"]).with_code(14);
    write(&sandbox.root().join("notes/mended"), "");
    sandbox.refrain(&["resume", "job"]).with_code(0);
    assert_eq!(sandbox.note("ran"), "x\n");
}

#[test]
fn a_worktree_of_the_pool_is_prepared_for_its_first_task() {
    let (sandbox, agent) = feature();
    configure(&sandbox, "pwd >> $NOTES/setup");
    run(&sandbox, &format!("{agent} pine"), &["--quiet", "--jobs", "1"]).with_code(0);
    // The next task may begin in another worktree while the work of the last one is merged.
    let prepared = sandbox.note("setup");
    let folders: std::collections::BTreeSet<_> = prepared.lines().collect();
    assert!(folders.len() <= 2 && folders.len() == prepared.lines().count(), "{prepared}");
    assert!(!folders.is_empty());
}

#[test]
fn what_only_the_setup_made_keeps_no_worktree() {
    let sandbox = sandbox();
    configure(&sandbox, "mkdir -p deps && echo x > deps/one.txt");
    let work = |more: &str| sandbox.agent("agent", &format!("{more}echo x > work.txt; {CLAIM}"));
    let gates = ["--worktree", "--branch-template", "work-{loop}", "--gate", "test -f deps/one.txt"];
    let run = sandbox.refrain(&start(&work(""), &gates)).with_code(0);
    let line = "not in its commits: deps/one.txt (from [worktrees] setup); its gates saw that";
    assert!(run.stdout.contains(line) && run.stdout.contains("worktree removed"), "{}", run.stdout);
    assert_eq!(sandbox.git(&["worktree", "list"]).lines().count(), 1);
    sandbox.refrain(&["merge", "job"]).with_code(0);
    sandbox.refrain(&["archive", "job"]).with_code(0);
    sandbox.git(&["branch", "--delete", "work-job"]);
    // What the agent changed since may be nowhere else.
    let run =
        sandbox.refrain(&start(&work("echo more >> deps/one.txt; date > work2.txt; "), &gates)).with_code(0);
    assert!(run.stdout.contains("its worktree is kept"), "{}", run.stdout);
}
