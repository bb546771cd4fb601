//! `refrain run` with questions at a terminal, and with locks of dead processes. All else is in `scenarios/tasks`.

use std::fs;

use serde_json::json;
use testkit::{Sandbox, write};

use crate::sandbox;
use crate::surfaces::terminal::Terminal;

/// A project whose test looks for a word, and the task to put it there.
fn project() -> Sandbox {
    let sandbox = sandbox();
    let test = "#!/bin/sh\ngrep -q good work.txt && echo 1 passed || { echo 'FAILED test_work: no good' >&2; exit 1; }\n";
    fs::rename(sandbox.agent("test.sh", test), sandbox.project().join("test.sh")).unwrap();
    write(&sandbox.project().join("task.md"), "Put the word good into work.txt.\n");
    sandbox.git(&["add", "-A"]);
    sandbox.git(&["commit", "-qm", "Task"]);
    sandbox.trust();
    sandbox
}

/// A reviewer that finds the specification met.
fn content(sandbox: &Sandbox) -> String {
    sandbox.agent("content", "echo SPEC_PASS")
}

/// Puts the word there in the given iteration.
fn able_in(sandbox: &Sandbox, iteration: u32) -> String {
    let script = format!(
        "echo try $REFRAIN_ITERATION >> tries.txt\n[ $REFRAIN_ITERATION -lt {iteration} ] || echo good > work.txt"
    );
    sandbox.agent("worker", &script)
}

fn words<'a>(agent: &'a str, reviewer: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut words = vec!["run", "add-auth", "task.md", "--command", agent, "--reviewer", reviewer];
    words.extend(more);
    words
}

/// `-n` is the total, also if an earlier run continues.
#[test]
fn the_number_of_iterations_is_a_total_where_an_earlier_run_continues() {
    let sandbox = project();
    let (agent, reviewer) = (able_in(&sandbox, 3), content(&sandbox));
    sandbox.refrain(&words(&agent, &reviewer, &["-n", "2"])).with_code(10);
    let again = |total: &str| {
        let mut terminal = Terminal::open(&sandbox, &words(&agent, &reviewer, &["-n", total]), &[]);
        terminal.wait_for("[y/N]");
        terminal.type_keys("y\n");
        terminal.wait()
    };
    let (code, text) = again("2");
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("has used 2 iterations, and -n is the total"), "{text}");
    let (code, text) = again("4");
    assert_eq!(code, 0, "{text}");
    let status = sandbox.status("add-auth");
    assert_eq!((&status["charged"], &status["max_iterations"]), (&json!(3), &json!(4)));
}

#[test]
fn an_earlier_run_continues_with_its_own_options_or_not_at_all() {
    let sandbox = project();
    let (agent, reviewer) = (able_in(&sandbox, 3), content(&sandbox));
    sandbox.refrain(&words(&agent, &reviewer, &["-n", "2"])).with_code(10);
    let other = sandbox.agent("other", "true");
    for (agent, reviewer, more, option) in [
        (&other, &reviewer, None, "--command"),
        (&agent, &other, None, "--reviewer"),
        (&agent, &reviewer, Some("--require-approval"), "--require-approval"),
    ] {
        let more: Vec<_> = ["-n", "4"].into_iter().chain(more).collect();
        let mut terminal = Terminal::open(&sandbox, &words(agent, reviewer, &more), &[]);
        terminal.wait_for("[y/N]");
        terminal.type_keys("y\n");
        let (code, text) = terminal.wait();
        assert_eq!(code, 2, "{text}");
        assert!(
            text.contains(&format!("{option}: the earlier run of add-auth continues as it was started")),
            "{text}"
        );
    }
    assert_eq!(sandbox.status("add-auth")["charged"], 2);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a process that its parent does not wait for is wanted")]
fn a_lock_whose_process_has_ended_is_stale() {
    let sandbox = project();
    let (agent, reviewer) = (able_in(&sandbox, 1), content(&sandbox));
    let lock = sandbox.project().join(".ralph.lock");
    // This process is younger than the lock: its number was another's then.
    write(&lock, format!("{}\n", std::process::id()));
    let long_ago = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    fs::File::options().write(true).open(&lock).unwrap().set_modified(long_ago).unwrap();
    sandbox.refrain(&words(&agent, &reviewer, &[])).with_code(0);
    // One that is dead, and that its parent has not waited for.
    let mut dead = std::process::Command::new("true").spawn().unwrap();
    let stat = format!("/proc/{}/stat", dead.id());
    while !fs::read_to_string(&stat).unwrap().contains(") Z ") {
        std::thread::yield_now();
    }
    write(&lock, format!("{}\n", dead.id()));
    sandbox.refrain(&words(&agent, &reviewer, &[])).with_code(0);
    dead.wait().unwrap();
}
