//! Incomplete sums are marked on every surface.

use serde_json::json;
use testkit::Sandbox;

use crate::sandbox;

/// Codex: an attempt whose stream ends early and reports no tokens, then one that reports all.
fn cut_then_whole(sandbox: &Sandbox) -> String {
    sandbox.agent(
        "codex",
        r#"cat > /dev/null
printf '{"type":"thread.started","thread_id":"t%s"}\n{"type":"turn.started"}\n' "$REFRAIN_ATTEMPT"
test -e $NOTES/again || {
  echo x > $NOTES/again
  printf '{"type":"turn.failed","error":{"message":"stream disconnected before completion: it ended early"}}\n'
  exit 1
}
printf '{"type":"item.completed","item":{"id":"1","type":"agent_message","text":"<promise>COMPLETE</promise>"}}\n'
printf '{"type":"turn.completed","usage":{"input_tokens":3430,"cached_input_tokens":0,"output_tokens":110}}\n'"#,
    )
}

#[test]
fn an_attempt_that_says_no_tokens_makes_every_sum_above_it_at_least() {
    let sandbox = sandbox();
    let agent = cut_then_whole(&sandbox);
    let run = sandbox.command(&["start", "--command", &agent, "--name", "job", "p"]);
    let run = run.run().with_code(0);
    let words = "at least 3.4k tokens in, 110 out";
    assert!(
        run.stdout.lines().any(|line| line.contains("unverified after 1 iteration") && line.contains(words)),
        "{}",
        run.stdout
    );

    let usage = json!({
        "input_tokens": 3430, "cached_input_tokens": 0, "output_tokens": 110, "cost_usd": null, "at_least": true,
        "tokens_at_least": true
    });
    let status = sandbox.status("job");
    assert_eq!(status["usage"], usage);
    assert_eq!(status["iterations"][0]["usage"].get("at_least"), None, "of nothing known nothing is said");
    assert_eq!(status["iterations"][1]["usage"].get("at_least"), None, "that one said all");
    let shown = |args: &[&str]| sandbox.refrain(args).with_code(0).stdout;
    assert!(shown(&["status", "job"]).contains(words));
    let listed = sandbox.refrain(&["list", "--json"]).with_code(0).json();
    assert_eq!(listed.as_array().unwrap()[0]["usage"], usage);
    let report = sandbox.refrain(&["report", "job", "--json"]).with_code(0).json();
    assert_eq!((&report["spent"]["total"], &report["spent"]["workers"]), (&usage, &usage));
    let report = shown(&["report", "job"]);
    assert!(report.contains(words) && !report.contains("at least unknown"), "{report}");
    let html = shown(&["report", "job", "--html"]);
    assert!(html.contains("at least 3.4k") && !html.contains("at least unknown"), "{html}");

    let total = sandbox.refrain(&["usage", "--json"]).with_code(0).json()["total"].clone();
    assert_eq!((&total["usage"], &total["without_tokens"]), (&usage, &json!(1)));
    let table = shown(&["usage"]);
    assert!(table.contains("at least 3.4k") && table.contains("at least 110"), "{table}");
    let scraped = shown(&["usage", "--format", "prometheus"]);
    let without =
        |line: &str| line.starts_with("refrain_attempts_without_tokens_total{") && line.ends_with(" 1");
    assert!(scraped.lines().any(without), "{scraped}");
    let incomplete = |of: &str, is: u8| {
        let is_it = |line: &&str| line.starts_with("refrain_usage_incomplete{") && line.contains(of);
        scraped.lines().find(is_it).is_some_and(|line| line.ends_with(&format!(" {is}")))
    };
    assert!(incomplete("of=\"tokens\"", 1) && incomplete("of=\"cost\"", 0), "{scraped}");
}

#[test]
fn money_that_one_agent_does_not_tell_makes_the_sum_at_least_and_leaves_the_tokens_exact() {
    let sandbox = sandbox();
    let codex = cut_then_whole(&sandbox);
    // It reports all its tokens, and no cost.
    testkit::write(&sandbox.root().join("notes/again"), "x");
    sandbox.refrain(&["start", "--command", &codex, "--name", "a", "p"]).with_code(0);
    let claude = sandbox.agent(
        "claude",
        r#"cat > /dev/null
printf '{"type":"result","subtype":"success","is_error":false,"num_turns":2,"session_id":"s","result":"<promise>COMPLETE</promise>","total_cost_usd":0.5,"usage":{"input_tokens":1000,"output_tokens":50}}\n'"#,
    );
    sandbox.refrain(&["start", "--command", &claude, "--name", "b", "p"]).with_code(0);
    let total = sandbox.refrain(&["usage", "--json"]).with_code(0).json()["total"].clone();
    let usage = &total["usage"];
    assert_eq!((&usage["cost_usd"], &usage["at_least"]), (&json!(0.5), &json!(true)));
    assert_eq!((&usage["cost_at_least"], usage.get("tokens_at_least")), (&json!(true), None));
    let table = sandbox.refrain(&["usage"]).with_code(0).stdout;
    assert!(table.contains("at least $0.50") && !table.contains("at least 4.4k"), "{table}");
    assert!(table.contains("4.4k"), "{table}");
}

#[test]
fn claude_reports_the_cost_of_this_run_of_a_continued_session() {
    let sandbox = sandbox();
    let agent = sandbox.agent(
        "claude",
        r#"cat > /dev/null
printf '{"type":"result","subtype":"success","is_error":false,"num_turns":1,"session_id":"theirs","result":"<promise>COMPLETE</promise>","total_cost_usd":0.3122128,"usage":{"input_tokens":1000,"output_tokens":50},"model_usage_since_last_result":{"claude-x":{"inputTokens":1000,"outputTokens":50,"costUSD":0.0122128}}}\n'"#,
    );
    let start =
        ["start", "--command", &agent, "--agent-arg=--continue", "--name", "job", "--max-cost", "1", "p"];
    sandbox.refrain(&start).with_code(0);
    let usage = &sandbox.status("job")["usage"];
    assert_eq!((&usage["cost_usd"], usage.get("at_least")), (&json!(0.012_212_8), None));
}

#[test]
fn a_report_of_nothing_known_says_unknown() {
    let sandbox = sandbox();
    let agent = sandbox.agent("claude", "cat > /dev/null; exit 3");
    let start = ["start", "--command", &agent, "--name", "job", "--max-iterations", "1", "p"];
    sandbox.refrain(&start).with_code(10);
    for words in [&["report", "job"][..], &["report", "job", "--html"], &["status", "job"], &["usage"]] {
        let shown = sandbox.refrain(words).with_code(0).stdout;
        assert!(!shown.contains("at least"), "{words:?}: {shown}");
    }
    assert_eq!(sandbox.status("job")["usage"].get("at_least"), None);
}
