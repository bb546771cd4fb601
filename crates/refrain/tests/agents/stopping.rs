//! Agents that are ended from outside: by a user in the middle of a tool, by a limit while their model is silent.

use serde_json::json;
use testkit::{Agent, Turn};

use crate::bench::{Bench, CLAIM, attempts};

/// A tool that waits for ever, heeds no signal that can be ignored, and has a child in a session of its own.
#[track_caller]
fn is_cancelled_in_a_tool(agent: Agent) {
    let bench = Bench::new(agent, []);
    let _gate = bench.sandbox.gate("tool");
    let at = |path: &str| bench.sandbox.root().join(path).display().to_string();
    let tool = format!(
        "trap '' INT TERM HUP; setsid sh -c 'read -r _ < {gate}' & echo here > {note}; read -r _ < {gate}",
        gate = at("gates/tool"),
        note = at("notes/tool"),
    );
    bench.model.rewrite(testkit::Script::new([Turn::bash(tool)]).then(Turn::say(CLAIM)));
    let session = bench.start(&[]).spawn();
    bench.sandbox.wait_for_note("tool");
    bench.refrain(&["cancel", "job", "--now"]).run().with_code(0);
    bench.ended(session, 15);
    let status = bench.status();
    assert_eq!(attempts(&status), [json!([1, 1, false, "cancelled"])], "{status:#}");
    bench.prompts_are_of(&[1]);
}

/// The model says nothing: the attempt is stopped at its limit and charged, and the loop continues. OpenCode prints
/// nothing before its model answers: whether it was up is unknown, so that is refunded.
#[track_caller]
fn hangs_past_its_limit(agent: Agent) {
    let bench = Bench::new(agent, [Turn::hang()]);
    let is_mute = agent == Agent::OpenCode;
    // Long enough for the program to start and be answered, though the machine is busy.
    let limit = if is_mute { "40s" } else { "15s" };
    let status = bench.completes(&["--timeout", limit]);
    let expected = match is_mute {
        true => [json!([1, 1, false, "unresponsive"]), json!([1, 2, true, "claimed"])],
        false => [json!([1, 1, true, "time-limit"]), json!([2, 1, true, "claimed"])],
    };
    assert_eq!(attempts(&status), expected, "{status:#}");
    bench.asked_exactly(2);
    bench.prompts_are_of(if is_mute { &[1, 1] } else { &[1, 2] });
    assert_eq!(status["usage"]["at_least"], true, "the usage of the first is unknown: {status:#}");
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn claude_is_cancelled_in_a_tool() {
    is_cancelled_in_a_tool(Agent::Claude);
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn codex_is_cancelled_in_a_tool() {
    is_cancelled_in_a_tool(Agent::Codex);
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn opencode_is_cancelled_in_a_tool() {
    is_cancelled_in_a_tool(Agent::OpenCode);
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn gemini_is_cancelled_in_a_tool() {
    is_cancelled_in_a_tool(Agent::Gemini);
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn claude_hangs_past_its_limit() {
    hangs_past_its_limit(Agent::Claude);
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn codex_hangs_past_its_limit() {
    hangs_past_its_limit(Agent::Codex);
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn opencode_hangs_past_its_limit() {
    hangs_past_its_limit(Agent::OpenCode);
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn gemini_hangs_past_its_limit() {
    hangs_past_its_limit(Agent::Gemini);
}
