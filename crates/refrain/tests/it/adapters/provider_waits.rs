//! Loops whose provider does not work: programs that sleep until it does, the shared wait of an account, refusals, and
//! the reports of them. The agents are scripts that print what the real programs print.

use jiff::Timestamp;
use serde_json::{Value, json};
use testkit::{Sandbox, eventually};

use crate::sandbox;

/// A shell function for scripts: prints `$1` as Claude Code does, and continues.
const SPEAKS: &str = r#"speaks() {
  printf '{"type":"system","subtype":"init","session_id":"s","model":"claude-x"}\n'
  printf '{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"%s"}]}}\n' "$1"
}
"#;

/// And ends with that as its final message.
const SAYS: &str = r#"says() {
  speaks "$1"
  printf '{"type":"result","subtype":"success","is_error":false,"num_turns":2,"session_id":"s","result":"%s","total_cost_usd":0.5,"usage":{"input_tokens":1000,"output_tokens":50}}\n' "$1"
}
"#;

/// Ends as an API error does: its status, its message, and an exit code.
const FAILS: &str = r#"fails() {
  printf '{"type":"result","subtype":"success","is_error":true,"num_turns":1,"session_id":"s","result":"%s","total_cost_usd":0,"usage":{"input_tokens":0,"output_tokens":0},"terminal_reason":"api_error","api_error_status":%s,"error":"%s"}\n' "$2" "$1" "$3"
  exit 1
}
"#;

fn claude(sandbox: &Sandbox, script: &str) -> String {
    sandbox.agent("claude", &format!("{SPEAKS}{SAYS}{FAILS}cat > /dev/null\n{script}"))
}

/// The output of Gemini before it asks its model.
const GEMINI: &str = r#"cat > /dev/null
printf '{"type":"init","session_id":"s","model":"auto"}\n{"type":"message","role":"user","content":"p"}\n'
"#;

fn time(value: &Value) -> Timestamp {
    value.as_str().expect("a time").parse().expect("a time")
}

/// How long the wait of a status is, in seconds.
fn length(status: &Value) -> i64 {
    time(&status["wait"]["until"]).duration_since(time(&status["updated_at"])).as_secs()
}

#[test]
fn gemini_that_sleeps_for_hours_is_ended_and_the_wait_is_on_disk_for_every_loop_of_the_account() {
    let sandbox = sandbox();
    let agent = sandbox.agent(
        "gemini",
        &format!(
            "{GEMINI}echo x >> $NOTES/asked\n\
             echo 'Attempt 1 failed: You have exhausted your capacity on this model. Your quota will reset after 18h31m10s.. \
             Retrying after 69015309ms...' >&2\nexec sleep 100000"
        ),
    );
    let session = sandbox.spawn(&["start", "--command", &agent, "--name", "first", "p"]);
    let waiting = sandbox.wait_for_status("first", "waiting");
    assert_eq!((&waiting["wait"]["kind"], &waiting["charged"]), (&json!("limit"), &json!(0)));
    assert_eq!(waiting["iterations"][0]["outcome"], "limit");
    assert!((68_000..=70_000).contains(&length(&waiting)), "{waiting:#}");
    assert!(waiting["reason"].as_str().unwrap().contains("exhausted your capacity"), "{waiting:#}");
    assert!(
        session.stdout().contains("the agent is waiting for its provider: Refrain stops it and waits itself"),
        "{}",
        session.stdout()
    );
    let stopped =
        sandbox.journal("first").into_iter().find(|it| it["event"]["type"] == "attempt.stop-requested");
    assert_eq!(stopped.unwrap()["event"]["data"]["because"], "provider-wait");
    assert_eq!(sandbox.processes_named("sleep"), [0; 0], "it does not sleep on");

    // Another loop does not even ask.
    let second = sandbox.spawn(&["start", "--command", &agent, "--name", "second", "--share-worktree", "p"]);
    let waits = sandbox.wait_for_status("second", "waiting");
    assert_eq!((&waits["wait"], &waits["started"]), (&waiting["wait"], &json!(0)));
    session.kill();
    assert_eq!(sandbox.status("first")["wait"], waiting["wait"], "it stands");
    let session = sandbox.spawn(&["resume", "first"]);
    assert_eq!(sandbox.wait_for_status("first", "waiting")["wait"], waiting["wait"], "the rest is waited");
    assert_eq!(sandbox.note("asked"), "x\n");
    for (id, session) in [("first", session), ("second", second)] {
        sandbox.refrain(&["cancel", id]).with_code(0);
        session.wait().with_code(15);
    }
}

#[test]
fn codex_that_is_stopped_while_it_reconnects_is_refunded() {
    let sandbox = sandbox();
    let agent = sandbox.agent(
        "codex",
        r#"cat > /dev/null
printf '{"type":"thread.started","thread_id":"t%s"}\n{"type":"turn.started"}\n' "$REFRAIN_ATTEMPT"
test -e $NOTES/over && {
  printf '{"type":"item.completed","item":{"id":"1","type":"agent_message","text":"<promise>COMPLETE</promise>"}}\n{"type":"turn.completed","usage":{"input_tokens":600,"output_tokens":40}}\n'
  exit 0
}
echo x > $NOTES/over
printf '{"type":"error","message":"Reconnecting... 1/2 (exceeded retry limit, last status: 429 Too Many Requests)"}\n'
exec sleep 100000"#,
    );
    let start = ["start", "--command", &agent, "--name", "job", "--idle-timeout", "1", "p"];
    let run = sandbox.refrain(&start).with_code(0);
    let status = sandbox.status("job");
    assert_eq!((&status["charged"], &status["started"]), (&json!(1), &json!(2)), "{}", run.stdout);
    assert_eq!(status["iterations"][0]["outcome"], "outage");
    let stopped =
        sandbox.journal("job").into_iter().find(|it| it["event"]["type"] == "attempt.stop-requested");
    assert_eq!(stopped.unwrap()["event"]["data"]["because"], "silence");
    assert!(sandbox.event_names("job").contains(&"wait.started".to_owned()));
    // The usage of the first one is unknown.
    assert_eq!((&status["usage"]["input_tokens"], &status["usage"]["at_least"]), (&json!(600), &json!(true)));
}

#[test]
fn an_outage_holds_for_every_loop_of_the_account_and_the_first_answer_ends_it() {
    let sandbox = sandbox();
    // The first two that ask after the outage: one answers and continues, one is done.
    let agent = claude(
        &sandbox,
        r#"test -e $NOTES/over || fails 529 overloaded overloaded_error
mkdir $NOTES/probe 2>/dev/null && { echo $REFRAIN_LOOP_ID > $NOTES/prober; read -r _ < $GATES/go; speaks On.; read -r _ < $GATES/end; }
says '<promise>COMPLETE</promise>'"#,
    );
    let (go, end) = (sandbox.gate("go"), sandbox.gate("end"));
    let start =
        |id: &str| sandbox.spawn(&["start", "--command", &agent, "--name", id, "--share-worktree", "p"]);
    let first = start("first");
    assert_eq!(sandbox.wait_for_status("first", "waiting")["wait"]["kind"], "outage");
    let second = start("second");
    let waits = sandbox.wait_for_status("second", "waiting");
    assert_eq!((&waits["wait"]["kind"], &waits["started"]), (&json!("outage"), &json!(0)), "it did not ask");
    testkit::write(&sandbox.root().join("notes/over"), "x");
    let prober = sandbox.wait_for_note("prober").trim().to_owned();
    let (other, session, probing) =
        if prober == "first" { ("second", second, first) } else { ("first", first, second) };
    // It waits for the loop that tries, only until that has an answer.
    let waited = eventually("the other waits for the one that tries", || {
        let wait = sandbox.status(other)["wait"].clone();
        let trying = time(&sandbox.status(&prober)["iterations"].as_array()?.last()?["started_at"]);
        (!wait.is_null() && time(&wait["until"]).duration_since(trying).as_secs() >= 20).then_some(wait)
    });
    go.let_one_pass();
    session.wait().with_code(0);
    assert_eq!(sandbox.status(&prober)["status"], "running", "the one that tried is still at it");
    let started =
        time(&sandbox.status(other)["iterations"].as_array().unwrap().last().unwrap()["started_at"]);
    assert!(started < time(&waited["until"]), "{started} is before {waited}");
    end.let_one_pass();
    probing.wait().with_code(0);
}

#[test]
fn an_attempt_that_is_stopped_before_its_first_event_is_refunded_and_the_third_blocks() {
    let sandbox = sandbox();
    let agent = claude(&sandbox, "echo x >> $NOTES/ran; exec sleep 100000");
    let start = ["start", "--command", &agent, "--name", "job", "--timeout", "1", "p"];
    let run = sandbox.refrain(&start).with_code(14);
    let status = sandbox.status("job");
    assert_eq!((&status["charged"], &status["started"]), (&json!(0), &json!(3)), "{}", run.stdout);
    assert_eq!(status["iterations"][2]["outcome"], "unresponsive");
    assert!(status["reason"].as_str().unwrap().contains("printed no event"), "{status:#}");
    assert!(run.stdout.contains("stopped before its program printed an event, refunded"), "{}", run.stdout);
    assert_eq!(sandbox.note("ran"), "x\nx\nx\n");
    // An attempt that had begun has used its time.
    let agent = claude(&sandbox, "speaks On.; exec sleep 100000");
    let start =
        ["start", "--command", &agent, "--name", "slow", "--timeout", "1", "--max-iterations", "1", "p"];
    sandbox.refrain(&start).with_code(10);
    assert_eq!(sandbox.status("slow")["iterations"][0]["outcome"], "time-limit");
}

#[test]
fn a_refusal_is_not_a_missing_login() {
    let sandbox = sandbox();
    let agent = claude(
        &sandbox,
        "fails 403 'Failed to authenticate. API Error: 403 Blocked by ACME' authentication_failed",
    );
    sandbox.refrain(&["start", "--command", &agent, "--name", "job", "p"]).with_code(14);
    let status = sandbox.status("job");
    let (reason, needs) = (status["reason"].as_str().unwrap(), status["needs"].as_str().unwrap());
    assert!(reason.starts_with("refused by the provider (403): Failed to authenticate"), "{reason}");
    assert!(reason.contains("Blocked by ACME") && !needs.contains("log in"), "{reason}; {needs}");
    assert!(needs.contains("a proxy") && needs.contains("refrain resume job"), "{needs}");
}

#[test]
fn a_blocked_loop_quotes_the_error_of_its_program() {
    let sandbox = sandbox();
    let failed = |message: &str| {
        format!(
            r#"cat > /dev/null
printf '{{"type":"thread.started","thread_id":"t"}}\n{{"type":"turn.started"}}\n{{"type":"turn.failed","error":{{"message":"{message}"}}}}\n'
exit 1"#
        )
    };
    for (id, message) in [
        ("churn", "Incomplete response returned, reason: max_output_tokens"),
        ("credit", "Quota exceeded. Check your plan and billing details."),
        ("model", "unexpected status 404 Not Found: no such model as gpt-nine"),
        ("login", "unexpected status 401 Unauthorized: the key of team nine is revoked"),
    ] {
        let agent = sandbox.agent("codex", &failed(message));
        let run = sandbox.refrain(&["start", "--command", &agent, "--name", id, "p"]).with_code(14);
        let reason = sandbox.status(id)["reason"].as_str().unwrap().to_owned();
        assert!(reason.contains(message), "{id}: {reason}");
        assert!(run.stdout.contains(message), "{id}: {}", run.stdout);
    }
    // Its standard error about how it was started, and the output of a command that fails at once.
    let agent =
        sandbox.agent("codex", "echo 'Error loading config.toml: unknown variant `bogus`' >&2; exit 1");
    sandbox.refrain(&["start", "--command", &agent, "--name", "setup", "p"]).with_code(14);
    let agent = sandbox.agent("agent", "echo 'no such table: jobs'; exit 1");
    sandbox.refrain(&["start", "--command", &agent, "--name", "command", "p"]).with_code(14);
    for (id, words) in [("setup", "unknown variant `bogus`"), ("command", "no such table: jobs")] {
        let reason = sandbox.status(id)["reason"].as_str().unwrap().to_owned();
        assert!(reason.contains(words), "{id}: {reason}");
    }
}

#[test]
fn a_reset_time_of_codex_is_read_as_a_local_time() {
    let sandbox = sandbox();
    let agent = sandbox.agent(
        "codex",
        r#"cat > /dev/null
at=$(LC_ALL=C date -d "@$(( $(date +%s) + 7200 ))" '+%I:%M %p' | sed 's/^0//')
printf '{"type":"thread.started","thread_id":"t"}\n{"type":"turn.started"}\n{"type":"turn.failed","error":{"message":"You’ve hit your usage limit. Visit https://chatgpt.com/settings/usage to purchase more credits or try again at %s."}}\n' "$at"
exit 1"#,
    );
    let start = ["start", "--command", &agent, "--name", "job", "p"];
    let session = sandbox.command(&start).env("TZ", "Asia/Kathmandu").spawn();
    let waiting = sandbox.wait_for_status("job", "waiting");
    assert_eq!(waiting["wait"]["kind"], "limit");
    assert!((7_100..=7_500).contains(&length(&waiting)), "{waiting:#}");
    sandbox.refrain(&["cancel", "job"]).with_code(0);
    session.wait().with_code(15);
}

#[test]
fn a_limit_that_is_too_far_away_can_be_waited_for_by_the_loop_that_met_it() {
    let sandbox = sandbox();
    let agent = claude(
        &sandbox,
        r#"printf '{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":%s,"rateLimitType":"seven_day"}}\n' $(( $(date +%s) + 198000 ))
fails 429 'the weekly limit' rate_limit"#,
    );
    sandbox.refrain(&["start", "--command", &agent, "--name", "job", "p"]).with_code(14);
    let needs = sandbox.status("job")["needs"].as_str().unwrap().to_owned();
    let (_, more) = needs.split_once("or refrain resume job ").expect(&needs);
    let hours = more.strip_prefix("--retry-for ").and_then(|more| more.split(' ').next()).expect(&needs);
    // The suggested value is enough.
    let session = sandbox.spawn(&["resume", "job", "--retry-for", hours]);
    let waiting = sandbox.wait_for_status("job", "waiting");
    assert!((197_000..=199_000).contains(&length(&waiting)), "{waiting:#}");
    let resumed =
        sandbox.journal("job").into_iter().find(|it| it["event"]["type"] == "loop.resumed").unwrap();
    assert_eq!(resumed["event"]["data"]["limits"], waiting["limits"]);
    assert_ne!(waiting["limits"]["retry_for_ms"], json!(null));
    sandbox.refrain(&["cancel", "job"]).with_code(0);
    session.wait().with_code(15);
    for wrong in ["--retry-for=soon", "--retry-for=-1"] {
        sandbox.refrain(&["resume", "job", wrong]).with_code(2);
    }
}

#[test]
fn gemini_text_in_pieces_is_shown_as_one() {
    let sandbox = sandbox();
    let script = format!(
        r#"{GEMINI}for part in 'I lo' 'ok.\n<promise>COMP' 'LETE</promise>'; do
  printf '{{"type":"message","role":"assistant","content":"%s","delta":true}}\n' "$part"
done
printf '{{"type":"result","status":"success","stats":{{"total_tokens":150,"input_tokens":100,"output_tokens":50,"cached":0,"models":{{"m":{{}}}}}}}}\n'"#
    );
    let agent = sandbox.agent("gemini", &script);
    let run = sandbox.refrain(&["start", "--command", &agent, "--name", "job", "p"]).with_code(0);
    assert!(run.has_line("I look.") && run.has_line("<promise>COMPLETE</promise>"), "{}", run.stdout);
    let logs = sandbox.refrain(&["logs", "job"]).with_code(0);
    assert!(logs.has_line("I look.") && logs.has_line("<promise>COMPLETE</promise>"), "{}", logs.stdout);
}

#[test]
fn a_claim_in_an_overlong_message_is_reported_as_not_heard() {
    let sandbox = sandbox();
    let script = r#"cat > $NOTES/prompt
test -e $NOTES/again && long=x || long=$(head -c 5000000 /dev/zero | tr '\0' x)
echo x > $NOTES/again
printf '{"type":"step_start","sessionID":"s","part":{}}\n'
printf '{"type":"text","sessionID":"s","part":{"text":"'
printf %s "$long"
printf '\\n<promise>COMPLETE</promise>"}}\n'
printf '{"type":"step_finish","sessionID":"s","part":{"reason":"stop","tokens":{"input":5,"output":5}}}\n'"#;
    let agent = sandbox.agent("opencode", script);
    let run = sandbox.refrain(&["start", "--command", &agent, "--name", "job", "--max-iterations", "2", "p"]);
    let run = run.with_code(0);
    assert!(run.stdout.contains("nearly a claim: your final message was too long"), "{}", run.stdout);
    assert!(sandbox.note("prompt").contains("CLAIM NOT HEARD: your final message was too long"));
    assert_eq!(sandbox.status("job")["charged"], 2);
}

#[test]
fn processes_left_by_an_iteration_are_named() {
    let sandbox = sandbox();
    let agent = claude(
        &sandbox,
        "test $REFRAIN_ITERATION = 2 && says '<promise>COMPLETE</promise>' || { sleep 100000 > /dev/null 2>&1 & until [ \"$(cat /proc/$!/comm)\" = sleep ]; do :; done; says On.; }",
    );
    let run = sandbox.refrain(&["start", "--command", &agent, "--name", "job", "p"]).with_code(0);
    assert!(run.stdout.contains("that iteration 1 left behind (sleep)"), "{}", run.stdout);
    sandbox.no_process_is_left();
}
