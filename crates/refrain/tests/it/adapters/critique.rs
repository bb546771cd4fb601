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

fn prompt(sandbox: &Sandbox, iteration: u32) -> String {
    std::fs::read_to_string(sandbox.project().join(format!("prompt.{iteration}"))).unwrap()
}

fn critiques(sandbox: &Sandbox) -> Vec<Value> {
    let of = |record: &Value| {
        (record["event"]["type"] == "critique.finished").then(|| record["event"]["data"].clone())
    };
    sandbox.journal("job").iter().filter_map(of).collect()
}

#[test]
fn feedback_of_a_critic_reaches_the_agent_once() {
    let sandbox = sandbox();
    let run = start(
        &sandbox,
        "printf '%s\\n' \"$1\" > ../told.$REFRAIN_ITERATION\necho 'Two steps are done. Go on: count.'",
        "2",
    );
    let run = run.with_code(0);
    assert!(run.stdout.contains("the critic: Two steps are done. Go on: count."), "{}", run.stdout);
    let words = "REVIEWER FEEDBACK:\nTwo steps are done. Go on: count.";
    let has = |iteration| prompt(&sandbox, iteration).contains(words);
    assert_eq!([1, 2, 3, 4].map(has), [false, false, true, false]);
    let told = std::fs::read_to_string(sandbox.root().join("told.2")).unwrap();
    for words in ["Count to four.", "iteration 2 of 20", "iteration 1: ", "it said: step 2", "one suggestion"]
    {
        assert!(told.contains(words), "{words:?} in {told}");
    }
    assert_eq!(critiques(&sandbox).len(), 1, "the fourth iteration completes the loop");
    sandbox.refrain(&["verify", "job"]).with_code(0);
}

#[test]
fn no_failure_of_a_critic_harms_the_loop() {
    for (critic, error) in [
        ("exit 3", "it ended with exit code 3"),
        ("echo oops >&2; exit 1", "it ended with exit code 1: oops"),
        ("kill -9 $$", "it was ended by signal 9"),
        ("true", "it said nothing"),
        ("head -c 1500000 /dev/zero | tr '\\0' x", "it printed more than 1048576 bytes"),
    ] {
        let sandbox = sandbox();
        start(&sandbox, critic, "1").with_code(0);
        let all = critiques(&sandbox);
        assert_eq!(all.len(), 3, "{critic}");
        assert!(all[0]["feedback"].is_null(), "{critic}: {all:?}");
        assert!(all[0]["error"].as_str().unwrap_or_default().starts_with(error), "{critic}: {}", all[0]);
        assert!(!prompt(&sandbox, 2).contains("REVIEWER FEEDBACK"));
        assert_eq!(sandbox.status("job")["charged"], 4);
    }
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

#[test]
fn the_cost_of_a_critic_counts() {
    let sandbox = sandbox();
    let worker = worker(&sandbox);
    let stream = r#"cat > /dev/null
printf '{"type":"system","subtype":"init","session_id":"c%s","model":"claude-x"}\n' "$$"
printf '{"type":"assistant","message":{"id":"m","model":"claude-x","content":[{"type":"text","text":"Fine. Go on."}]}}\n'
printf '{"type":"result","subtype":"success","is_error":false,"num_turns":1,"session_id":"c%s","result":"Fine. Go on.","total_cost_usd":0.25,"usage":{"input_tokens":900,"output_tokens":50},"terminal_reason":"completed"}\n' "$$""#;
    let critic = sandbox.agent("claude", stream);
    let words = [
        "start",
        "--command",
        &worker,
        "--name",
        "job",
        "--critique-every",
        "2",
        "--critic",
        &critic,
        "-p",
        "p",
    ];
    let run = sandbox.refrain(&words).with_code(0);
    assert!(run.stdout.contains("the critic: Fine. Go on."), "{}", run.stdout);
    assert_eq!(sandbox.status("job")["usage"]["cost_usd"], json!(0.25));
}
