//! A critic reviews the progress now and then: its text reaches the agent once, and no failure of it harms the loop.

use serde_json::{Value, json};
use testkit::{Sandbox, Signal};

use crate::{CLAIM, sandbox};

/// Keeps each prompt, and claims in its fourth iteration.
fn worker(sandbox: &Sandbox) -> String {
    let script = format!(
        "printf '%s\\n' \"$1\" > prompt.$REFRAIN_ITERATION\necho $REFRAIN_ITERATION > work.txt\necho \"step $REFRAIN_ITERATION\"\n[ $REFRAIN_ITERATION -lt 4 ] || {CLAIM}"
    );
    sandbox.agent("worker", &script)
}

fn start(sandbox: &Sandbox, critic: &str, every: &str) -> testkit::Run {
    let (worker, critic) = (worker(sandbox), sandbox.agent("critic", critic));
    let words =
        ["start", "--command", &worker, "--name", "job", "--critique-every", every, "--critic", &critic];
    sandbox.refrain(&[&words[..], &["-p", "Count to four."]].concat())
}

fn critiques(sandbox: &Sandbox) -> Vec<Value> {
    let of = |record: &Value| {
        (record["event"]["type"] == "critique.finished").then(|| record["event"]["data"].clone())
    };
    sandbox.journal("job").iter().filter_map(of).collect()
}

#[test]
fn feedback_of_a_critic_is_bounded_text() {
    let sandbox = sandbox();
    start(&sandbox, "printf '\\033]0;owned\\007Go on.\\n'; head -c 100000 /dev/zero | tr '\\0' y", "1")
        .with_code(0);
    let said = critiques(&sandbox)[0]["feedback"].as_str().unwrap().to_owned();
    assert!(said.starts_with("Go on.\nyyy") && said.len() <= 2 << 10, "{} {said:.20}", said.len());
}

#[test]
fn a_pause_does_not_wait_for_the_critic_and_a_resume_does_not_ask_again() {
    let sandbox = sandbox();
    let (worker, critic) = (worker(&sandbox), sandbox.agent("critic", ": > ../critic.begun\nexec sleep 600"));
    let words = [
        "start",
        "--command",
        &worker,
        "--name",
        "job",
        "--critique-every",
        "3",
        "--critic",
        &critic,
        "-p",
        "p",
    ];
    let session = sandbox.spawn(&words);
    sandbox.wait_for_event("job", "critique.started");
    sandbox.refrain(&["pause", "job"]).with_code(0);
    session.wait().with_code(16);
    sandbox.no_process_is_left();
    sandbox.refrain(&["resume", "job"]).with_code(0);
    let started = sandbox.event_names("job").iter().filter(|name| *name == "critique.started").count();
    assert_eq!((started, &sandbox.status("job")["charged"]), (1, &json!(4)));
}

#[test]
fn a_runner_that_is_killed_with_it_loses_nothing() {
    let sandbox = sandbox();
    let (worker, critic) = (worker(&sandbox), sandbox.agent("critic", "exec sleep 600"));
    let words = [
        "start",
        "--command",
        &worker,
        "--name",
        "job",
        "--critique-every",
        "3",
        "--critic",
        &critic,
        "-p",
        "p",
    ];
    let session = sandbox.spawn(&words);
    sandbox.wait_for_event("job", "critique.started");
    session.signal_group(Signal::KILL);
    session.wait();
    sandbox.no_process_is_left();
    sandbox.refrain(&["resume", "job"]).with_code(0);
    assert_eq!(sandbox.status("job")["charged"], 4);
}
