//! `status: blocked` in `state.md` between two iterations, which is granted one more; and an iteration's time limit,
//! with the grace time after it.

use rstest::rstest;
use serde_json::json;

use crate::{CLAIM, sandbox};

const ASKS: &str = "sed -i 's/^status:.*/status: blocked  # no key/' \"$REFRAIN_STATE_FILE\"";

#[test]
fn an_agent_that_is_blocked_has_one_more_iteration_and_then_waits_for_a_person() {
    let sandbox = sandbox();
    let gate = sandbox.gate("go");
    let script = format!(
        "grep '^status:' \"$REFRAIN_STATE_FILE\" >> $NOTES/found\ntest -e key && {CLAIM} && exit\n\
         test $REFRAIN_ITERATION = 2 && read -r _ < $GATES/go || {ASKS}"
    );
    let agent = sandbox.agent("agent", &script);
    let session = sandbox.spawn(&["start", "--command", &agent, "--name", "job", "Open the door."]);
    let status = testkit::eventually("the second iteration is at work", || {
        let status = sandbox.refrain(&["status", "job", "--json"]);
        let status: serde_json::Value = serde_json::from_str(&status.stdout).ok()?;
        (status["iteration"] == 2).then_some(status)
    });
    let needs = status["needs"].as_str().expect("a person can help already");
    assert!(needs.contains("state.md") && needs.contains("refrain answer job TEXT"), "{needs}");
    assert!(!sandbox.kept_text("job", "0001", "prompt.md").contains("BLOCKED:"));
    gate.let_one_pass();
    let run = session.wait().with_code(14);
    assert!(run.stdout.contains("refrain answer job TEXT"), "{}", run.stdout);
    let told = sandbox.kept_text("job", "0002", "prompt.md");
    assert!(told.contains("BLOCKED: .refrain/job/state.md says `status: blocked`"), "{told}");
    let status = sandbox.status("job");
    assert_eq!((&status["status"], &status["charged"]), (&json!("blocked"), &json!(2)));

    testkit::write(&sandbox.project().join("key"), "");
    sandbox.refrain(&["resume", "job"]).with_code(0);
    let found = sandbox.note("found");
    let found: Vec<_> = found.lines().map(|line| line.split(' ').nth(1).unwrap()).collect();
    assert_eq!(found, ["in-progress", "blocked", "in-progress"], "a person lets it go on");
}

#[test]
fn the_need_of_a_blocked_agent_is_quoted_in_its_words() {
    let sandbox = sandbox();
    let script =
        format!("{ASKS}\nprintf '\\nThe \\033[31mkey is in the safe.\\n' >> \"$REFRAIN_STATE_FILE\"");
    let agent = sandbox.agent("agent", &script);
    let run = sandbox.refrain(&["start", "--command", &agent, "--name", "job", "Open it."]).with_code(14);
    assert!(run.stdout.contains("the agent asks: The key is in the safe."), "{}", run.stdout);
    let reason = sandbox.status("job")["reason"].as_str().unwrap().to_owned();
    assert!(
        reason.starts_with("the agent asks: The key is in the safe.") && !reason.contains('\u{1b}'),
        "{reason}"
    );
}

/// An agent that knows only that its state file has keys.
#[test]
fn an_agent_that_is_blocked_needs_no_front_matter() {
    let sandbox = sandbox();
    let script = format!(
        "test -e key && {CLAIM} && exit\nprintf 'status: blocked\\nquestion: Which key?\\n' > \"$REFRAIN_STATE_FILE\""
    );
    let agent = sandbox.agent("agent", &script);
    let run = sandbox.refrain(&["start", "--command", &agent, "--name", "job", "Open it."]).with_code(14);
    assert!(run.stdout.contains("the agent asks: Which key?"), "{}", run.stdout);
    let status = sandbox.status("job");
    assert_eq!((&status["question"], &status["charged"]), (&json!("Which key?"), &json!(2)));
    testkit::write(&sandbox.project().join("key"), "");
    sandbox.refrain(&["answer", "job", "The red one."]).with_code(0);
    let state = std::fs::read_to_string(sandbox.project().join(".refrain/job/state.md")).unwrap();
    assert!(state.starts_with("status: done\nquestion: Which key?\n"), "its claim came true: {state}");
}

#[rstest]
#[case::a_claim("status: done\\n", "STATUS NOT READ", "`status: done` counts only in front matter")]
#[case::another_loop(
    "---\\nloop_id: other\\nstatus: blocked\\n---\\n",
    "STATUS NOT READ",
    "has the `loop_id` of another loop"
)]
#[case::another_word("---\\nstatus: stuck\\n---\\n", "STATUS NOT READ", "no readable status; accepted:")]
#[case::a_question("question: A or B?\\n", "QUESTION NOT ASKED", "asks nothing without `status: blocked`")]
fn a_state_file_that_does_not_count_is_reported(
    #[case] text: &str,
    #[case] heading: &str,
    #[case] hint: &str,
) {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", &format!("printf -- '{text}' > \"$REFRAIN_STATE_FILE\""));
    let words = ["start", "--command", &agent, "--name", "job", "-m", "2", "Open it."];
    let run = sandbox.refrain(&words).with_code(10);
    assert!(run.stdout.lines().any(|line| line.contains("state.md: ") && line.contains(hint)), "{run:?}");
    let prompt = sandbox.kept_text("job", "0002", "prompt.md");
    assert!(prompt.contains(heading) && prompt.contains(hint), "{prompt}");
}

#[test]
fn a_blocked_loop_that_finds_a_way_continues() {
    let sandbox = sandbox();
    let back = "sed -i 's/^status:.*/status: in-progress/' \"$REFRAIN_STATE_FILE\"";
    let script = format!("case $REFRAIN_ITERATION in 1|3) {ASKS};; 2|4) {back};; *) {CLAIM};; esac");
    let agent = sandbox.agent("agent", &script);
    sandbox.refrain(&["start", "--command", &agent, "--name", "job", "Open the door."]).with_code(0);
    assert_eq!(sandbox.status("job")["charged"], 5);
}

#[test]
fn an_agent_over_its_time_limit_gets_a_grace_to_end() {
    let sandbox = sandbox();
    let go = sandbox.gate("go");
    let script = format!(
        "trap 'echo x >> $NOTES/asked; read -r _ < $GATES/go; echo x >> $NOTES/well; exit 0' INT\n\
         test $REFRAIN_ITERATION = 2 && {CLAIM} && exit\nsleep 1000 & wait"
    );
    let agent = sandbox.agent("agent", &script);
    let words =
        ["start", "--command", &agent, "--name", "job", "--timeout", "300ms", "--timeout-grace", "1h", "p"];
    let session = sandbox.spawn(&words);
    sandbox.wait_for_note("asked");
    assert_eq!(sandbox.status("job")["limits"]["timeout_grace_ms"], 3_600_000);
    go.let_one_pass();
    let run = session.wait().with_code(0);
    assert!(run.stdout.contains("1h 0m more for it to end"), "{}", run.stdout);
    assert!(run.stdout.contains("stopped at its time limit"), "{}", run.stdout);
    assert_eq!(sandbox.note("well"), "x\n", "it was not terminated");
    let first = &sandbox.status("job")["iterations"][0];
    assert_eq!((&first["outcome"], &first["overran"]["limit_ms"]), (&json!("time-limit"), &json!(300)));
    assert!(first["overran"]["elapsed_ms"].as_u64().unwrap() >= 300, "{first}");
    sandbox.no_process_is_left();
}

#[test]
fn an_attempt_that_outlives_its_grace_is_terminated() {
    let sandbox = sandbox();
    let script = "trap 'echo x >> $NOTES/asked' INT\ntrap 'echo x >> $NOTES/made; exit 1' TERM\nsleep 1000 & wait; wait";
    let agent = sandbox.agent("agent", script);
    let words = [
        "start",
        "--command",
        &agent,
        "--name",
        "job",
        "--timeout",
        "200ms",
        "--timeout-grace",
        "100ms",
        "-m",
        "1",
        "p",
    ];
    sandbox.refrain(&words).with_code(10);
    assert_eq!((sandbox.note("asked").as_str(), sandbox.note("made").as_str()), ("x\n", "x\n"));
    sandbox.no_process_is_left();
}
