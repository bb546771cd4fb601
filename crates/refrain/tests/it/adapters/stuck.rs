//! Loops that make no progress: what the agent receives, what happens to the loop, and what is recorded of failures.

use serde_json::{Value, json};
use testkit::{Sandbox, write};

use crate::{CLAIM, sandbox};

/// A gate whose failure differs only in insignificant details, and quotes `work.txt`.
const TESTS: &str = "tests=echo \"ran at $(date +%s.%N) in /tmp/run-$$ (pid $$)\"; w=$(cat work.txt 2>/dev/null); \
                     [ \"$w\" = good ] || { echo \"FAILED test_work - AssertionError: assert '$w' == 'good'\"; exit 1; }";

fn start<'a>(agent: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut words =
        vec!["start", "--command", agent, "--name", "job", "-p", "Mend the work.", "--gate", TESTS];
    words.extend(more);
    words
}

/// Tries something in each iteration that does not help.
fn helpless(sandbox: &Sandbox) -> String {
    sandbox
        .agent("helpless", &format!("echo $REFRAIN_ITERATION >> tries.txt\necho I tried once more\n{CLAIM}"))
}

fn configure(sandbox: &Sandbox, text: &str) {
    let folder = sandbox.root().join("home/config/refrain");
    std::fs::create_dir_all(&folder).unwrap();
    write(&folder.join("config.toml"), text);
}

fn prompt(sandbox: &Sandbox, iteration: u32) -> String {
    sandbox.kept_text("job", &format!("{iteration:04}"), "prompt.md")
}

#[test]
fn the_same_failure_shifts_the_strategy_and_then_ends_stuck() {
    let sandbox = sandbox();
    let agent = helpless(&sandbox);
    let run = sandbox.refrain(&start(&agent, &[])).with_code(13);
    let status = sandbox.status("job");
    assert_eq!(
        (&status["status"], &status["iteration"], &status["verified"]),
        (&json!("stuck"), &json!(5), &json!(false))
    );
    assert_eq!(
        (&status["last_failure"]["gate"], &status["last_failure"]["count"]),
        (&json!("tests"), &json!(5))
    );
    assert!(status["last_failure"]["fingerprint"].as_str().is_some_and(|it| it.len() == 16), "{status}");
    let reason = status["reason"].as_str().unwrap();
    assert!(reason.starts_with("gate tests failed in the same way 5 times in a row"), "{reason}");
    assert!(run.stdout.contains("refrain resume job"), "{}", run.stdout);

    for (iteration, shifts) in [(1, false), (2, false), (3, false), (4, true), (5, true)] {
        assert_eq!(prompt(&sandbox, iteration).contains("STRATEGY SHIFT:"), shifts, "iteration {iteration}");
    }
    let told = prompt(&sandbox, 5);
    let shift = &told[told.find("STRATEGY SHIFT:").unwrap()..];
    for words in [
        "the same failure came 4 times in a row",
        "What fails, says gate tests:",
        "test_work",
        "- iteration 4: claimed; gate tests failed: exit code 1",
        "fundamentally different",
    ] {
        assert!(shift.contains(words), "{words} is not in {shift}");
    }
    // A resumed stuck loop counts anew.
    sandbox.refrain(&["resume"]).with_code(13);
    assert_eq!(sandbox.status("job")["iteration"], 10);
    assert!(!prompt(&sandbox, 6).contains("STRATEGY SHIFT:"));
}

#[test]
fn a_different_failure_is_progress() {
    let sandbox = sandbox();
    let agent = sandbox.agent("slow", &format!("echo $REFRAIN_ITERATION > work.txt\n{CLAIM}"));
    sandbox.refrain(&start(&agent, &["--max-iterations", "7"])).with_code(10);
    let status = sandbox.status("job");
    assert_eq!(status["last_failure"]["count"], 1);
    assert!(!prompt(&sandbox, 7).contains("STRATEGY SHIFT:"));
}

#[test]
fn runs_that_change_nothing_are_seen_though_the_gates_pass() {
    let sandbox = sandbox();
    write(&sandbox.project().join("work.txt"), "good");
    let agent = sandbox.agent("idle", "echo I thought about it, and all is well");
    sandbox.refrain(&start(&agent, &[])).with_code(13);
    let status = sandbox.status("job");
    assert_eq!((&status["iteration"], &status["last_failure"]), (&json!(5), &Value::Null));
    assert!(prompt(&sandbox, 4).contains("3 runs in a row changed nothing in the work"));
}

#[test]
fn the_threshold_is_the_persons() {
    let sandbox = sandbox();
    let agent = helpless(&sandbox);
    sandbox.refrain(&start(&agent, &["--stuck-threshold", "1"])).with_code(13);
    assert_eq!(sandbox.status("job")["iteration"], 3);
    assert!(prompt(&sandbox, 2).contains("STRATEGY SHIFT:"));
}

#[test]
fn a_person_is_asked_where_that_is_wanted() {
    let sandbox = sandbox();
    let agent = helpless(&sandbox);
    sandbox.refrain(&start(&agent, &["--on-stuck", "ask"])).with_code(14);
    let status = sandbox.status("job");
    assert_eq!((&status["status"], &status["iteration"]), (&json!("blocked"), &json!(5)));
    let needs = status["needs"].as_str().unwrap();
    assert!(needs.contains("refrain answer job TEXT"), "{needs}");
    sandbox.refrain(&["steer", "job", "write good into work.txt"]).with_code(0);
    sandbox.refrain(&["resume", "job", "--max-iterations", "6"]).with_code(10);
    assert!(prompt(&sandbox, 6).contains("STEERING:\nwrite good into work.txt"));
}

#[test]
fn a_stuck_loop_switches_its_agent_once() {
    let sandbox = sandbox();
    let agent = helpless(&sandbox);
    let able = sandbox.agent("able", &format!("echo good > work.txt\n{CLAIM}"));
    configure(&sandbox, &format!("[agents.able]\ncommand = \"{able}\"\n"));
    let run = sandbox.refrain(&start(&agent, &["--on-stuck", "agent=able"])).with_code(0);
    assert!(run.stdout.contains("the loop is stuck; from here on it runs"), "{}", run.stdout);
    let status = sandbox.status("job");
    assert_eq!((&status["verified"], &status["iteration"]), (&json!(true), &json!(6)));
    assert!(!prompt(&sandbox, 6).contains("STRATEGY SHIFT:"), "it has tried nothing yet");

    sandbox.refrain(&["archive", "job"]).with_code(0);
    write(&sandbox.project().join("work.txt"), "bad");
    configure(&sandbox, &format!("[agents.able]\ncommand = \"{agent}\"\n"));
    sandbox.refrain(&start(&agent, &["--on-stuck", "agent=able"])).with_code(13);
    assert_eq!(sandbox.status("job")["iteration"], 10, "that one is stuck, too");
}

#[test]
fn an_agent_that_fails_in_the_same_way_is_stuck_without_any_gate() {
    let sandbox = sandbox();
    // Not at once: that is churn.
    let script = "sleep 2.1; echo \"error: cannot find module 'x' (pid $$)\" >&2; exit 3";
    let agent = sandbox.agent("broken", script);
    let words = ["start", "--command", &agent, "--name", "job", "-p", "Do it.", "--stuck-threshold", "1"];
    sandbox.refrain(&words).with_code(13);
    let status = sandbox.status("job");
    assert_eq!((&status["iteration"], &status["verified"]), (&json!(3), &Value::Null));
    assert_eq!(
        (&status["last_failure"]["gate"], &status["last_failure"]["count"]),
        (&Value::Null, &json!(3))
    );
}

#[test]
fn the_context_file_holds_the_last_three_failures_verbatim() {
    let sandbox = sandbox();
    let agent = sandbox.agent(
        "slow",
        "cp \"$REFRAIN_CONTEXT_FILE\" seen-$REFRAIN_ITERATION.md 2>/dev/null; echo word $REFRAIN_ITERATION > work.txt",
    );
    sandbox.refrain(&start(&agent, &["--max-iterations", "5"])).with_code(10);
    let seen = |n: u32| std::fs::read_to_string(sandbox.project().join(format!("seen-{n}.md"))).unwrap();
    let fifth = seen(5);
    for words in [
        "# Loop Context: job\n",
        "- Iteration: 5 of 5\n",
        "- Last gate failed: tests\n",
        "- Stuck count: 1 (threshold: 3)\n",
        "## Last Error Output (verbatim)\n\nGATE FAILED: tests",
        "assert 'word 4' == 'good'",
        "## What failed in iteration 3 (verbatim)",
        "assert 'word 3' == 'good'",
        "## What failed in iteration 2 (verbatim)",
        "assert 'word 2' == 'good'",
        "## What was tried\n- iteration 1: no claim; gate tests failed: exit code 1",
    ] {
        assert!(fifth.contains(words), "{words:?} is not in {fifth}");
    }
    assert!(!fifth.contains("assert 'word 1'"), "only three are quoted: {fifth}");
    assert!(seen(1).contains("FAILED BEFORE YOU BEGAN: gate tests"), "{}", seen(1));
}

#[test]
fn invalid_stuck_options_are_refused() {
    let sandbox = sandbox();
    let agent = helpless(&sandbox);
    for (more, words) in [
        (&["--stuck-threshold", "0"][..], "--stuck-threshold"),
        (&["--on-stuck", "panic"], "accepted: stop, ask, model=NAME and agent=NAME"),
        (&["--on-stuck", "agent=nobody"], "--on-stuck agent=nobody: there is no such agent"),
        (&["--on-stuck", "model=big"], "a generic command cannot be told its model"),
    ] {
        let run = sandbox.refrain(&start(&agent, more)).with_code(2);
        assert!(run.stderr.contains(words), "{words} is not in {}", run.stderr);
    }
    sandbox.refrain(&["status", "job"]).with_code(3);
}
