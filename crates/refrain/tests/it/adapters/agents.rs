//! Known agents, played by scripts that print what the real programs print: how their streams are shown, and the
//! effects of their usage, limits and faults. The real programs have a tier of their own (`cargo xtask e2e agents`).

use serde_json::json;
use testkit::Sandbox;

use crate::sandbox;

/// A shell function for scripts: prints `$1` as Claude Code's final message, with a usage of 1,000 tokens in, 50 out
/// and half a dollar.
const SAYS: &str = r#"says() {
  printf '{"type":"system","subtype":"init","session_id":"s%s","model":"claude-x"}\n' "$REFRAIN_ITERATION"
  printf '{"type":"assistant","message":{"id":"m","model":"claude-x","content":[{"type":"tool_use","id":"t","name":"Bash","input":{"command":"cargo test"}}]}}\n'
  printf '{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":"3 passed"}]}}\n'
  printf '{"type":"assistant","message":{"id":"m2","model":"claude-x","content":[{"type":"text","text":"%s"}]}}\n' "$1"
  printf '{"type":"result","subtype":"success","is_error":false,"num_turns":2,"session_id":"s%s","result":"%s","total_cost_usd":0.5,"usage":{"input_tokens":900,"cache_read_input_tokens":100,"cache_creation_input_tokens":0,"output_tokens":50},"terminal_reason":"completed"}\n' "$REFRAIN_ITERATION" "$1"
}
"#;

/// Another one that hits the plan's limit, which is reset `$1` seconds from now.
const LIMIT: &str = r#"limit() {
  printf '{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":%s,"rateLimitType":"five_hour"}}\n' $(( $(date +%s) + $1 ))
  printf '{"type":"result","subtype":"success","is_error":true,"num_turns":1,"session_id":"s","result":"limit","total_cost_usd":0,"usage":{"input_tokens":0,"output_tokens":0},"terminal_reason":"api_error","api_error_status":429}\n'
  exit 1
}
"#;

/// A script that prints as Claude Code does.
pub(crate) fn claude(sandbox: &Sandbox, script: &str) -> String {
    sandbox.agent("claude", &format!("{SAYS}{LIMIT}cat > /dev/null\n{script}"))
}

#[test]
fn the_kind_follows_the_programs_name_and_its_stream_is_shown_and_counted() {
    let sandbox = sandbox();
    let agent = claude(
        &sandbox,
        "test $REFRAIN_ITERATION = 1 && says 'I will print <promise>COMPLETE</promise> later.' || says '<promise>COMPLETE</promise>'",
    );
    let run = sandbox.refrain(&["start", "--command", &agent, "--name", "job", "p"]).with_code(0);
    for shown in [
        "(claude)",
        "→ Bash cargo test",
        "3 passed",
        "I will print <promise>COMPLETE</promise> later.",
        "1.0k (100 cached) tokens in, 50 out, $0.50: no claim",
        "2.0k (200 cached) tokens in, 100 out, $1.00",
    ] {
        assert!(run.stdout.contains(shown), "{shown:?} in {}", run.stdout);
    }
    assert!(!run.stdout.contains("\"type\""), "no event is shown as it came: {}", run.stdout);

    let status = sandbox.status("job");
    assert_eq!((&status["agent"], &status["model"]), (&json!("claude"), &json!("claude-x")));
    assert_eq!(
        status["usage"],
        json!({"input_tokens": 2000, "cached_input_tokens": 200, "output_tokens": 100, "cost_usd": 1.0})
    );
    assert_eq!(status["iterations"][0]["usage"]["output_tokens"], 50);
    assert_eq!(sandbox.kept_text("job", "0002", "final.md"), "<promise>COMPLETE</promise>");

    let readable = sandbox.refrain(&["logs", "job"]).with_code(0).stdout;
    assert!(readable.contains("→ Bash cargo test\n") && !readable.contains("\"type\""), "{readable}");
    let raw = sandbox.refrain(&["logs", "job", "--raw"]).with_code(0).stdout;
    assert!(raw.contains(r#""type":"tool_use""#), "{raw}");
    sandbox.refrain(&["verify", "job"]).with_code(0);
}

#[test]
fn a_promise_in_tool_output_or_the_prompt_is_no_claim() {
    let sandbox = sandbox();
    let agent = claude(
        &sandbox,
        r#"printf '{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":"<promise>COMPLETE</promise>"}]}}\n'; says 'not yet'"#,
    );
    let start = ["start", "--command", &agent, "--name", "job", "--max-iterations", "1", "p"];
    sandbox.refrain(&start).with_code(10);
}

#[test]
fn a_cut_off_stream_fails_and_its_usage_is_unknown() {
    let sandbox = sandbox();
    let agent = claude(&sandbox, "says '<promise>COMPLETE</promise>' | head -n 2");
    let start = ["start", "--command", &agent, "--name", "job", "--max-iterations", "1", "p"];
    sandbox.refrain(&start).with_code(10);
    let status = sandbox.status("job");
    assert_eq!(status["iterations"][0]["outcome"], "failed");
    assert_eq!(
        (status["usage"].get("at_least"), &status["usage"]["cost_usd"]),
        (None, &json!(null)),
        "it said nothing"
    );
}

#[test]
fn a_limit_is_waited_for_through_a_kill_and_resume_now_tries_at_once() {
    let sandbox = sandbox();
    let agent = claude(
        &sandbox,
        "test -e $NOTES/over && says '<promise>COMPLETE</promise>' || { echo x > $NOTES/over; limit 3600; }",
    );
    let session = sandbox.spawn(&["start", "--command", &agent, "--name", "job", "p"]);
    let waiting = sandbox.wait_for_status("job", "waiting");
    assert_eq!(waiting["wait"]["kind"], "limit");
    assert_eq!((&waiting["charged"], &waiting["iterations"][0]["outcome"]), (&json!(0), &json!("limit")));
    session.kill();
    assert_eq!(sandbox.status("job")["wait"], waiting["wait"], "it stands");

    // A resumed loop keeps waiting, unless told otherwise.
    let session = sandbox.spawn(&["resume", "job"]);
    let again = sandbox.wait_for_status("job", "waiting");
    assert_eq!(again["wait"], waiting["wait"]);
    let shown = sandbox.refrain(&["status", "job"]).with_code(0).stdout;
    assert!(shown.contains("left)"), "{shown}");
    // With that option while a runner waits, that runner continues.
    sandbox.refrain(&["resume", "job", "--now"]).with_code(0);
    session.wait().with_code(0);
    let status = sandbox.status("job");
    assert_eq!(
        (&status["status"], &status["charged"], &status["started"]),
        (&json!("completed"), &json!(1), &json!(2))
    );
}

#[test]
fn a_limit_holds_for_every_loop_of_the_account() {
    let sandbox = sandbox();
    let agent = claude(&sandbox, "test -e $NOTES/over && says '<promise>COMPLETE</promise>' || limit 3600");
    let first = sandbox.spawn(&["start", "--command", &agent, "--name", "first", "p"]);
    sandbox.wait_for_status("first", "waiting");
    let second = sandbox.spawn(&["start", "--command", &agent, "--name", "second", "--share-worktree", "p"]);
    let waiting = sandbox.wait_for_status("second", "waiting");
    assert_eq!(
        (&waiting["wait"]["kind"], &waiting["started"]),
        (&json!("limit"), &json!(0)),
        "it did not even try"
    );
    // Another account is none of theirs.
    let other = ["start", "--command", &agent, "--name", "other", "--env", "ANTHROPIC_API_KEY=another", "p"];
    testkit::write(&sandbox.root().join("notes/over"), "x");
    sandbox.refrain(&other).with_code(0);
    for (id, session) in [("first", first), ("second", second)] {
        sandbox.refrain(&["pause", id]).with_code(0);
        session.wait().with_code(16);
    }
    // The first that gets through opens the gate for all.
    sandbox.refrain(&["resume", "first", "--now"]).with_code(0);
    let third = ["start", "--command", &agent, "--name", "third", "--share-worktree", "p"];
    sandbox.refrain(&third).with_code(0);
    assert!(!sandbox.event_names("third").contains(&"wait.started".to_owned()));
}

#[test]
fn a_limit_that_is_reset_too_late_blocks_and_says_until_when() {
    let sandbox = sandbox();
    let agent = claude(&sandbox, "limit 3600");
    let start = ["start", "--command", &agent, "--name", "job", "--retry-for", "10m", "p"];
    let run = sandbox.refrain(&start).with_code(14);
    assert!(run.stdout.contains("refrain resume job"), "{}", run.stdout);
}

#[test]
fn a_missing_login_blocks_the_loop_and_names_the_remedy() {
    let sandbox = sandbox();
    let agent = claude(
        &sandbox,
        r#"printf '{"type":"result","subtype":"success","is_error":true,"num_turns":1,"session_id":"s","result":"Invalid API key","total_cost_usd":0,"usage":{"input_tokens":0,"output_tokens":0},"terminal_reason":"api_error","api_error_status":401,"error":"authentication_failed"}\n'; exit 1"#,
    );
    sandbox.refrain(&["start", "--command", &agent, "--name", "job", "p"]).with_code(14);
    let status = sandbox.status("job");
    assert_eq!((&status["status"], &status["charged"]), (&json!("blocked"), &json!(0)));
    assert!(status["needs"].as_str().unwrap().contains("log in"), "{status}");
}

#[test]
fn a_used_up_cost_cap_ends_the_loop_and_a_grant_continues_it() {
    let sandbox = sandbox();
    let agent = claude(
        &sandbox,
        "test $REFRAIN_ITERATION = 3 && says '<promise>COMPLETE</promise>' || says more; echo \"$@\" >> $NOTES/args",
    );
    let start = ["start", "--command", &agent, "--name", "job", "--max-cost", "0.90", "p"];
    let run = sandbox.refrain(&start).with_code(11);
    assert!(run.stdout.contains("$1.00 of $0.90 spent"), "{}", run.stdout);
    let args = sandbox.note("args");
    assert!(
        args.contains("--max-budget-usd 0.9\n") && args.contains("--max-budget-usd 0.4\n"),
        "what is left: {args}"
    );
    sandbox.refrain(&["resume", "job"]).with_code(17);
    sandbox.refrain(&["resume", "job", "--max-cost", "5"]).with_code(0);
}

/// A script that ends like Codex, with a message and its usage.
fn codex(sandbox: &Sandbox, message: &str) -> String {
    let script = format!(
        r#"cat > /dev/null
printf '{{"type":"thread.started","thread_id":"t%s"}}\n{{"type":"turn.started"}}\n' "$REFRAIN_ITERATION"
printf '{{"type":"item.completed","item":{{"id":"1","type":"agent_message","text":"{message}"}}}}\n'
printf '{{"type":"turn.completed","usage":{{"input_tokens":600,"cached_input_tokens":100,"output_tokens":40}}}}\n'"#
    );
    sandbox.agent("codex", &script)
}

#[test]
fn with_usage_known_only_at_the_end_the_header_warns_and_the_next_is_refused() {
    let sandbox = sandbox();
    let agent = codex(&sandbox, "not yet");
    let start = ["start", "--command", &agent, "--name", "job", "--max-tokens", "1k", "p"];
    let run = sandbox.refrain(&start).with_code(11);
    assert!(
        run.stdout.contains("one can overshoot") && run.stdout.contains("another iteration"),
        "{}",
        run.stdout
    );
    assert_eq!(sandbox.status("job")["charged"], 1);
    assert_eq!(sandbox.status("job")["usage"]["cost_usd"], json!(null), "unknown is not 0");
}

#[test]
fn a_cap_that_cannot_be_kept_is_refused_before_anything() {
    let sandbox = sandbox();
    let codex = codex(&sandbox, "x");
    let command = sandbox.agent("agent", "true");
    for (words, named) in [
        (["--command", &codex, "--max-cost", "5"].as_slice(), "--max-tokens"),
        (&["--command", &command, "--max-cost", "5"], "--max-tokens"),
        (&["--command", &command, "--max-tokens", "5"], "known agents"),
        (&["--agent", "claude", "--max-cost", "-1"], "US dollars"),
        (&["--agent", "claude", "--max-tokens", "many"], "500k"),
        (&["--command", &command, "--max-tokens", "5", "--output-format", "json"], "known agents"),
        (&["--command", &command, "--model", "opus"], "known agents"),
        (&["--command", &command, "--permissions", "full"], "known agents"),
        (&["--agent", "claude", "--model", ""], "--model"),
        (&["--agent", "acp"], "--command"),
        (&["--agent", "claude", "--output-format", "text"], "stream-json"),
    ] {
        let run = sandbox.refrain(&[["start"].as_slice(), words, &["p"]].concat()).with_code(2);
        assert!(run.stderr.contains(named), "{words:?}: {}", run.stderr);
    }
    assert!(!sandbox.project().join(".git/refrain/loops").exists(), "nothing was begun");
}

#[test]
fn an_attempt_that_had_said_its_last_word_is_not_run_again() {
    let sandbox = sandbox();
    let agent = claude(
        &sandbox,
        "echo x >> $NOTES/runs; says '<promise>COMPLETE</promise>'; echo x > $NOTES/said; exec sleep 1000",
    );
    let session = sandbox.spawn(&["start", "--command", &agent, "--name", "job", "p"]);
    sandbox.wait_for_note("said");
    // Printed is not yet on disk.
    let stream = sandbox.loop_dir("job").join("iterations/0001/stream.jsonl");
    let is_whole = || std::fs::read_to_string(&stream).ok().filter(|kept| kept.contains("terminal_reason"));
    testkit::eventually("the last word is kept", is_whole);
    session.kill();
    sandbox.refrain(&["resume", "job"]).with_code(0);
    let status = sandbox.status("job");
    assert_eq!(
        (&status["status"], &status["started"], &status["charged"]),
        (&json!("completed"), &json!(1), &json!(1))
    );
    assert_eq!(status["usage"]["cost_usd"], 0.5, "paid once");
    assert_eq!(sandbox.note("runs"), "x\n");
    sandbox.no_process_is_left();
}

#[test]
fn a_command_may_print_one_json_document_or_a_stream() {
    let sandbox = sandbox();
    let document = sandbox
        .agent("document", r#"printf '{\n "result": "done\\n<promise>COMPLETE</promise>",\n "n": 1 }'"#);
    let start = ["start", "--command", &document, "--name", "a", "--output-format", "json", "p"];
    sandbox.refrain(&start).with_code(0);
    let nothing = sandbox.agent("nothing", "echo '<promise>COMPLETE</promise>'");
    let start = [
        "start",
        "--command",
        &nothing,
        "--name",
        "b",
        "--output-format",
        "json",
        "--max-iterations",
        "1",
        "p",
    ];
    sandbox.refrain(&start).with_code(10);
    let stream = sandbox.agent("stream", &format!("{SAYS}says '<promise>COMPLETE</promise>'"));
    let start = ["start", "--command", &stream, "--name", "c", "--output-format", "stream-json", "p"];
    sandbox.refrain(&start).with_code(0);
    assert_eq!(sandbox.status("c")["usage"]["input_tokens"], 1000);
}
