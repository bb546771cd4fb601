//! A provider that fails: whether the program or the loop retries, and for what the loop waits.

use jiff::Timestamp;
use rstest::rstest;
use serde_json::{Value, json};
use testkit::{Agent, Script, Signal, Turn};

use crate::bench::{Bench, CLAIM, attempts, used_or_more};

const HOUR: u64 = 3600;

/// Long enough for a stream of it to be cut in its middle.
const LONG: &str = "I look at the test, at what it asks for, and at what the work still lacks. Then I begin.";

/// The side that retries after a failure.
#[derive(Clone, Copy)]
enum TriedAgain {
    /// The program does, within its attempt: the loop sees none of it.
    ByTheProgram,
    /// The program gives up: the attempt is refunded, and the loop waits and makes it again.
    ByTheLoop,
}

/// Whether a program reports when its plan's limit is reset.
#[derive(Clone, Copy, PartialEq)]
enum Reset {
    Told,
    /// As a clock on the wall will show it, to the minute.
    OnTheClock,
    /// Not at all: the loop asks again now and then.
    Untold,
}

/// The plan is used up. The wait is on disk: it outlives its runner, a person can end it, and no request is sent
/// meanwhile.
#[track_caller]
fn waits_at_a_usage_limit(agent: Agent, reset: Reset) {
    let bench = Bench::new(agent, [Turn::usage_limit(HOUR).times(usize::MAX)]).with_plan();
    let session = bench.start(&[]).spawn();
    let waiting = bench.sandbox.wait_for_status("job", "waiting");
    session.signal_group(Signal::KILL);
    session.wait().with_code(128 + 9);
    bench.model.rewrite(Script::new([Turn::say(CLAIM)]));

    let wait = &waiting["wait"];
    assert_eq!(wait["kind"], "limit", "{waiting:#}");
    let seconds = time(&wait["until"]).duration_since(time(&waiting["updated_at"])).as_secs();
    match reset {
        // The model reckons the hour from a moment before, and not all loops come back at once.
        Reset::Told => assert!((3540..3620).contains(&seconds), "{seconds}: {waiting:#}"),
        Reset::OnTheClock => assert!((3540..3680).contains(&seconds), "{seconds}: {waiting:#}"),
        Reset::Untold => assert!((4..8).contains(&seconds), "{seconds}: {waiting:#}"),
    }
    let crashed = bench.status();
    assert_eq!((&crashed["status"], &crashed["wait"]), (&json!("crashed"), wait), "{crashed:#}");
    assert_eq!(attempts(&crashed), [json!([1, 1, false, "limit"])]);

    let resumed = bench.refrain(&["resume", "job"]).spawn();
    let session = match reset {
        Reset::Untold => resumed,
        Reset::Told | Reset::OnTheClock => {
            let again = bench.sandbox.wait_for_status("job", "waiting");
            assert_eq!(&again["wait"], wait, "the rest of it is waited: {again:#}");
            bench.refrain(&["pause", "job"]).run().with_code(0);
            bench.ended(resumed, 16);
            bench.asked_exactly(1);
            bench.refrain(&["resume", "job", "--now"]).spawn()
        }
    };
    let status = bench.completed(session);
    assert_eq!(attempts(&status), [json!([1, 1, false, "limit"]), json!([1, 2, true, "claimed"])]);
    if reset == Reset::Untold {
        assert!(time(&status["iterations"][1]["started_at"]) >= time(&wait["until"]), "{status:#}");
    }
    bench.asked_exactly(2);
    bench.prompts_are_of(&[1, 1]);
    assert_eq!(status["usage"]["input_tokens"], 1000, "{status:#}");
}

fn time(value: &Value) -> Timestamp {
    value.as_str().and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("{value} is no time"))
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn claude_waits_at_a_usage_limit() {
    waits_at_a_usage_limit(Agent::Claude, Reset::Told);
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn codex_waits_at_a_usage_limit() {
    waits_at_a_usage_limit(Agent::Codex, Reset::OnTheClock);
}

/// It treats a used-up plan as any other 429: it waits by itself, silently.
#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn opencode_hides_a_usage_limit() {
    gets_over(Agent::OpenCode, &[Turn::usage_limit(HOUR)], TriedAgain::ByTheProgram, &Value::Null);
}

/// For as long as that takes: only its silence can be observed. It was not observed to be up, so that is refunded,
/// three times.
#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn opencode_is_silent_at_a_usage_limit() {
    let bench = Bench::new(Agent::OpenCode, [Turn::usage_limit(HOUR).times(usize::MAX)]);
    let session = bench.start(&["--idle-timeout", "30s"]).spawn();
    bench.model.wait_for(1);
    bench.ended(session, 14);
    let mute = |attempt: u32| json!([1, attempt, false, "unresponsive"]);
    assert_eq!(attempts(&bench.status()), [mute(1), mute(2), mute(3)]);
}

/// It would sleep for as long as the provider says. The loop waits without it, and once the user retries the
/// iteration is charged once.
#[track_caller]
fn is_not_left_to_sleep(agent: Agent, words: &[&str]) {
    let bench = Bench::new(agent, [Turn::rate_limit(600).times(usize::MAX)]);
    let session = bench.start(words).spawn();
    let waiting = bench.sandbox.wait_for_status("job", "waiting");
    bench.model.rewrite(Script::new([Turn::say(CLAIM)]));
    assert_eq!(attempts(&waiting), [json!([1, 1, false, "outage"])], "{waiting:#}");
    bench.refrain(&["resume", "job", "--now"]).run().with_code(0);
    let status = bench.completed(session);
    assert_eq!(attempts(&status), [json!([1, 1, false, "outage"]), json!([1, 2, true, "claimed"])]);
    bench.prompts_are_of(&[1, 1]);
    assert_eq!(status["usage"]["at_least"], true, "the usage of the first is unknown: {status:#}");
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn gemini_is_not_left_to_sleep() {
    is_not_left_to_sleep(Agent::Gemini, &[]);
}

/// It does not say for how long: its silence ends it.
#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn codex_is_not_left_to_sleep() {
    is_not_left_to_sleep(Agent::Codex, &["--idle-timeout", "10s"]);
}

/// A refusal of any kind is no missing login.
#[rstest]
#[case::claude(Agent::Claude)]
#[case::codex(Agent::Codex)]
#[case::opencode(Agent::OpenCode)]
#[case::gemini(Agent::Gemini)]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn is_refused(#[case] agent: Agent) {
    let bench = Bench::new(agent, [Turn::forbidden().times(usize::MAX)]);
    let session = bench.start(&[]).spawn();
    bench.ended(session, 14);
    let status = bench.status();
    assert_eq!(attempts(&status), [json!([1, 1, false, "unable"])], "{status:#}");
    let reason = status["reason"].as_str().unwrap_or_default();
    assert!(reason.starts_with("refused by the provider (403): "), "{reason}");
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn gemini_waits_at_a_usage_limit() {
    waits_at_a_usage_limit(Agent::Gemini, Reset::Untold);
}

/// After these failures the model answers, and the loop completes in one iteration that is charged once.
#[track_caller]
fn gets_over(agent: Agent, failures: &[Turn], who: TriedAgain, at_least: &Value) {
    let asked = failures.len() + 1;
    let bench = Bench::new(agent, failures.iter().cloned().chain([Turn::say(CLAIM)]));
    let status = bench.completes(&[]);
    let expected = match who {
        TriedAgain::ByTheProgram => vec![json!([1, 1, true, "claimed"])],
        TriedAgain::ByTheLoop => vec![json!([1, 1, false, "outage"]), json!([1, 2, true, "claimed"])],
    };
    assert_eq!(attempts(&status), expected, "{status:#}");
    bench.asked_exactly(asked);
    bench.prompts_are_of(&vec![1; asked]);
    used_or_more(&status, agent, 1, at_least);
}

#[track_caller]
fn gets_over_an_overload(agent: Agent, who: TriedAgain) {
    gets_over(agent, &[Turn::overloaded(), Turn::overloaded()], who, &Value::Null);
}

#[track_caller]
fn gets_over_a_cut(agent: Agent, who: TriedAgain) {
    // An attempt that ended with the torn answer told no tokens.
    let at_least = match who {
        TriedAgain::ByTheProgram => Value::Null,
        TriedAgain::ByTheLoop => json!(true),
    };
    gets_over(agent, &[Turn::say(LONG).then_reset()], who, &at_least);
}

/// Refrain lets it try once more by itself, no ten times: to wait is the loop's business.
#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn claude_gets_over_an_overload() {
    gets_over_an_overload(Agent::Claude, TriedAgain::ByTheLoop);
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn codex_gets_over_an_overload() {
    gets_over_an_overload(Agent::Codex, TriedAgain::ByTheProgram);
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn opencode_gets_over_an_overload() {
    gets_over_an_overload(Agent::OpenCode, TriedAgain::ByTheProgram);
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn gemini_gets_over_an_overload() {
    gets_over_an_overload(Agent::Gemini, TriedAgain::ByTheProgram);
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn claude_gets_over_a_cut() {
    gets_over_a_cut(Agent::Claude, TriedAgain::ByTheProgram);
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn codex_gets_over_a_cut() {
    gets_over_a_cut(Agent::Codex, TriedAgain::ByTheProgram);
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn opencode_gets_over_a_cut() {
    gets_over_a_cut(Agent::OpenCode, TriedAgain::ByTheProgram);
}

/// It takes a reset for the end of its run.
#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn gemini_gets_over_a_cut() {
    gets_over_a_cut(Agent::Gemini, TriedAgain::ByTheLoop);
}

/// A stream that ends in the middle, as if that were its end: every program asks again. Claude Code counts the torn answer.
#[track_caller]
fn gets_over_an_early_end(agent: Agent, input_tokens: u64) {
    let bench = Bench::new(agent, [Turn::say(LONG).then_end(), Turn::say(CLAIM)]);
    let status = bench.completes(&[]);
    assert_eq!(attempts(&status), [json!([1, 1, true, "claimed"])], "{status:#}");
    bench.asked_exactly(2);
    assert_eq!(status["usage"]["input_tokens"], input_tokens, "{status:#}");
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn claude_gets_over_an_early_end() {
    gets_over_an_early_end(Agent::Claude, 2000);
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn codex_gets_over_an_early_end() {
    gets_over_an_early_end(Agent::Codex, 1000);
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn opencode_gets_over_an_early_end() {
    gets_over_an_early_end(Agent::OpenCode, 1000);
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn gemini_gets_over_an_early_end() {
    gets_over_an_early_end(Agent::Gemini, 1000);
}
