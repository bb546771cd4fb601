//! Loops that start at the same moment in one repository, each in a worktree of its own.

use crate::{CLAIM, sandbox};

/// How many loops start at once.
const LOOPS: usize = 20;

/// Starts loops at once, `rounds` times.
fn start_at_once(rounds: usize) {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", &format!("echo x > $REFRAIN_LOOP_ID.txt\n{CLAIM}"));
    for round in 0..rounds {
        let names: Vec<String> = (0..LOOPS).map(|number| format!("r{round}-{number}")).collect();
        let start = |name: &String| {
            let words = ["start", "--command", &agent, "--name", name, "--auto-commit", "--worktree", "p"];
            (name.clone(), sandbox.spawn(&[&words[..], &["--quiet", "-m", "1"]].concat()))
        };
        let sessions: Vec<_> = names.iter().map(start).collect();
        for (name, session) in sessions {
            let run = session.wait();
            let events = sandbox.event_names(&name).join(" ");
            assert_eq!(run.code, 0, "{name}: {} {}\n{events}", run.stdout, run.stderr);
        }
        for name in &names {
            let branch = sandbox.status(name)["branch"].as_str().unwrap().to_owned();
            let files = sandbox.git(&["show", "--name-only", "--format=", &branch]);
            assert_eq!(files, format!("{name}.txt\n"));
        }
        assert!(!sandbox.git(&["worktree", "list"]).contains("locked"));
    }
}

#[test]
fn loops_that_start_at_once_each_get_their_worktree() {
    start_at_once(2);
}

#[test]
#[ignore = "20 rounds of 20 loops take minutes: .ci/nightly"]
fn loops_that_start_at_once_each_get_their_worktree_20_times() {
    start_at_once(20);
}
