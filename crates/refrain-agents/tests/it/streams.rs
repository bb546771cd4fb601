//! The expected results of recorded streams, read from the JSON by hand, not from the adapters.

use refrain_core::agent::{Scope, Tokens, Usd};
use refrain_core::event::Exit;

use crate::play::{play, recording};

struct Truth {
    agent: &'static str,
    name: &'static str,
    part: Part,
    exit: Exit,
    /// Input (including cached), cached input, output.
    tokens: Option<(Scope, [u64; 3])>,
    cost: Option<(Scope, u64)>,
    /// The start of the session's id; empty if there is none.
    session: &'static str,
    model: Option<&'static str>,
    last_word: Option<(bool, Option<&'static str>)>,
}

#[derive(Clone, Copy, Debug)]
enum Part {
    Whole,
    Lines(usize),
    /// All except this many bytes at the end.
    Without(usize),
    /// All except this many lines at the end.
    WithoutLines(usize),
}

use Part::{Lines, Whole, Without, WithoutLines};

const OPUS: Option<&str> = Some("claude-opus-5-5");
const SONNET: Option<&str> = Some("claude-sonnet-5-5");
const KILLED: Exit = Exit::Signal(9);

type LastWord = Option<(bool, Option<&'static str>)>;

/// A run of Claude Code. Cost in units of 0.00001 dollars.
const fn claude(
    name: &'static str,
    part: Part,
    exit: Exit,
    tokens: Option<[u64; 3]>,
    cost: Option<u64>,
    said: (&'static str, Option<&'static str>),
    last_word: LastWord,
) -> Truth {
    let tokens = match tokens {
        Some(tokens) => Some((Scope::Attempt, tokens)),
        None => None,
    };
    let cost = match cost {
        Some(cost) => Some((Scope::Attempt, cost * 10_000)),
        None => None,
    };
    Truth { agent: "claude", name, part, exit, tokens, cost, session: said.0, model: said.1, last_word }
}

/// A run of Codex, which reports neither cost nor model.
const fn codex(
    name: &'static str,
    part: Part,
    exit: Exit,
    tokens: Option<[u64; 3]>,
    session: &'static str,
    last_word: LastWord,
) -> Truth {
    let tokens = match tokens {
        Some(tokens) => Some((Scope::Session, tokens)),
        None => None,
    };
    Truth { agent: "codex", name, part, exit, tokens, cost: None, session, model: None, last_word }
}

/// A run of OpenCode, which reports no model. Cost in billionths of a dollar, of the attempt.
const fn opencode(
    name: &'static str,
    part: Part,
    exit: Exit,
    tokens: Option<[u64; 3]>,
    cost: Option<u64>,
    session: &'static str,
    last_word: LastWord,
) -> Truth {
    let tokens = match tokens {
        Some(tokens) => Some((Scope::Attempt, tokens)),
        None => None,
    };
    let cost = match cost {
        Some(cost) => Some((Scope::Attempt, cost)),
        None => None,
    };
    Truth { agent: "opencode", name, part, exit, tokens, cost, session, model: None, last_word }
}

/// A run of Gemini CLI, which reports no cost.
const fn gemini(
    name: &'static str,
    exit: Exit,
    tokens: Option<[u64; 3]>,
    session: &'static str,
    last_word: LastWord,
) -> Truth {
    let tokens = match tokens {
        Some(tokens) => Some((Scope::Attempt, tokens)),
        None => None,
    };
    let model = Some("gemini-2.5-pro");
    Truth { agent: "gemini", name, part: Whole, exit, tokens, cost: None, session, model, last_word }
}

const fn ok(message: &'static str) -> LastWord {
    Some((true, Some(message)))
}

const FAILED: LastWord = Some((false, None));
const DONE: Exit = Exit::Code(0);
const BAD: Exit = Exit::Code(1);

#[rustfmt::skip]
const TRUTHS: [Truth; 91] = [
    // whole runs of one result
    claude("hello", Whole, DONE, Some([1500, 300, 12]), Some(510), ("ac005bf2", OPUS), ok("Hello from the fake model.")),
    claude("tools", Whole, DONE, Some([3600, 200, 77]), Some(1518), ("89c14fe3", OPUS), ok("All done.")),
    claude("tools-partial-messages", Whole, DONE, Some([3400, 0, 77]), Some(1514), ("54dc0c18", OPUS), ok("All done.")),
    claude("mcp", Whole, DONE, Some([3000, 0, 150]), Some(1500), ("99cbd532", OPUS), ok("done")),
    claude("schema", Whole, DONE, Some([1000, 0, 50]), Some(500), ("0049", OPUS), ok("{\"status\":\"done\"}")),
    claude("permission-denied", Whole, DONE, Some([2000, 0, 100]), Some(1000), ("5a0f", OPUS), ok("end")),
    claude("plugin-command", Whole, DONE, Some([2000, 0, 100]), Some(1000), ("dc93", OPUS), ok("two")),
    claude("stop-hook", Whole, DONE, Some([3000, 0, 150]), Some(1500), ("2006", OPUS), ok("third stop")),
    claude("stop-hook-with-hook-events", Whole, DONE, Some([4000, 0, 200]), Some(2000), ("e957", OPUS), ok("third stop")),
    // a hook that never lets it stop: overridden, with an empty message
    claude("stop-hook-cap", Whole, DONE, Some([9000, 0, 450]), Some(4500), ("19f6", OPUS), ok("")),
    // resumed: the usage of the run, without its session before
    claude("resume", Whole, DONE, Some([1000, 0, 50]), Some(500), ("8e4c", OPUS), ok("first answer")),
    // it recovered by itself; of an interrupted stream, both tries are paid
    claude("rate-limit-once", Whole, DONE, Some([1000, 0, 50]), Some(500), ("6bf3", OPUS), ok("recovered")),
    claude("reset-mid-stream", Whole, DONE, Some([1000, 0, 50]), Some(500), ("75c4", OPUS), ok("recovered")),
    claude("network-retry", Whole, DONE, Some([1000, 0, 50]), Some(500), ("d1b25130", OPUS), ok("recovered")),
    claude("cut-stream", Whole, DONE, Some([2000, 0, 51]), Some(902), ("284acbdc", OPUS), ok("recovered")),
    // the model at the end
    claude("model-fallback", Whole, DONE, Some([1000, 0, 50]), Some(250), ("49c45ba4", SONNET), ok("after")),
    // sub-agents are in the tokens; several results add up, and the last has the message
    claude("subagent", Whole, DONE, Some([4000, 0, 200]), Some(2000), ("35d4", OPUS), ok("main done 2")),
    claude("subagent-background-two-results", Whole, DONE, Some([4000, 0, 200]), Some(2000), ("1a6065b7", OPUS), ok("main done 2")),
    claude("stream-json-input", Whole, DONE, Some([2000, 0, 100]), Some(1000), ("ce9d", OPUS), ok("r2")),
    // failures
    claude("max-turns", Whole, BAD, Some([2000, 0, 100]), Some(1000), ("81a6cd71", OPUS), FAILED),
    claude("budget", Whole, BAD, Some([300_000, 0, 3000]), Some(126_000), ("6976cbc1", OPUS), FAILED),
    claude("output-limit", Whole, BAD, Some([4000, 0, 200]), Some(2000), ("4e06538a", OPUS), FAILED),
    claude("auth", Whole, BAD, Some([0, 0, 0]), Some(0), ("8b131d70", OPUS), FAILED),
    claude("billing", Whole, BAD, Some([0, 0, 0]), Some(0), ("ac397ed9", OPUS), FAILED),
    claude("context-overflow", Whole, BAD, Some([0, 0, 0]), Some(0), ("c4bd1747", OPUS), FAILED),
    claude("no-such-model", Whole, BAD, Some([0, 0, 0]), Some(0), ("72652f21", OPUS), FAILED),
    claude("rate-limit", Whole, BAD, Some([0, 0, 0]), Some(0), ("911e", OPUS), FAILED),
    claude("usage-limit-subscription", Whole, BAD, Some([0, 0, 0]), Some(0), ("953ddd55", SONNET), FAILED),
    // it reports nothing of the run alone
    Truth { cost: Some((Scope::Session, 0)), ..claude("resume-missing", Whole, BAD, Some([0, 0, 0]), None, ("e3103891", None), FAILED) },
    // interrupted before the first byte of an answer
    claude("sigint-hung", Whole, DONE, None, None, ("daa7", OPUS), None),
    claude("sigterm-hung", Whole, Exit::Code(143), None, None, ("4b23", OPUS), None),
    // cut off before the result: three messages of 1000, 1100 and 1300 + 200 in; their outputs are start values of 1
    claude("tools", WithoutLines(1), KILLED, Some([3600, 200, 3]), None, ("89c14fe3", OPUS), None),
    claude("tools", Without(40), KILLED, Some([3600, 200, 3]), None, ("89c14fe3", OPUS), None),
    // thinking, text and tool call of one message: counted once
    claude("tools", Lines(5), KILLED, Some([1000, 0, 1]), None, ("89c14fe3", OPUS), None),
    claude("tools", Lines(1), KILLED, None, None, ("89c14fe3", OPUS), None),
    // with partial messages the outputs are known: 40 + 30 + 7
    claude("tools-partial-messages", WithoutLines(1), KILLED, Some([3400, 0, 77]), None, ("54dc0c18", OPUS), None),
    claude("tools-partial-messages", Lines(3), KILLED, Some([1000, 0, 1]), None, ("54dc0c18", OPUS), None),
    claude("subagent", WithoutLines(1), KILLED, Some([2000, 0, 2]), None, ("35d4", OPUS), None),
    // after the first of two results; before both: three messages of its own, one of the sub-agent
    claude("subagent-background-two-results", WithoutLines(1), KILLED, Some([4000, 0, 200]), Some(2000), ("1a6065b7", OPUS), ok("main done")),
    claude("subagent-background-two-results", WithoutLines(2), KILLED, Some([4000, 0, 4]), None, ("1a6065b7", OPUS), None),
    // in the second turn: the first result, and one message since
    claude("stream-json-input", WithoutLines(1), KILLED, Some([2000, 0, 51]), Some(500), ("ce9d", OPUS), ok("r1")),

    codex("hello", Whole, DONE, Some([1500, 300, 12]), "01a1fb6d-d25d", ok("Hello from the fake model.")),
    codex("tools", Whole, DONE, Some([3600, 200, 77]), "01a1fb6e-0264", ok("All done.")),
    codex("reasoning-and-warning", Whole, DONE, Some([6500, 500, 230]), "01a1fb3d-c301", ok("final text")),
    codex("mcp", Whole, DONE, Some([3000, 0, 150]), "01a1fb40-2c3e", ok("ok")),
    codex("file-change", Whole, DONE, Some([4000, 0, 200]), "01a1fb3e-42a7", ok("ok")),
    codex("schema", Whole, DONE, Some([1000, 0, 50]), "01a1fb6f-8904", ok("{\"status\": \"done\"}")),
    codex("stop-hook", Whole, DONE, Some([3000, 0, 150]), "01a1fb6f-9170", ok("third stop")),
    codex("sandbox-not-available", Whole, DONE, Some([2000, 0, 100]), "01a1fb3e-3eb3", ok("end")),
    // resumed: the thread's first run used half of it
    codex("resume", Whole, DONE, Some([2000, 0, 100]), "01a1fb3f-d180", ok("Hello from the fake model.")),
    codex("rate-limit-once", Whole, DONE, Some([1000, 0, 50]), "01a1fb6e-507c", ok("recovered")),
    codex("cut-stream", Whole, DONE, Some([1000, 0, 50]), "01a1fb6f-561f", ok("recovered")),
    codex("reset-mid-stream", Whole, DONE, Some([1000, 0, 50]), "01a1fb6f-28c9", ok("recovered")),
    // the text of an answer that was cut is no final message
    codex("output-limit", Whole, BAD, None, "01a1fb6f-757b", FAILED),
    codex("sigint-hung", Whole, BAD, None, "01a1fb6f-a1e4", None),
    codex("sigterm-hung", Whole, Exit::Signal(15), None, "01a1fb6f-d34c", None),
    codex("tools", WithoutLines(1), KILLED, None, "01a1fb6e-0264", None),
    codex("tools", Without(20), KILLED, None, "01a1fb6e-0264", None),
    codex("hello", Lines(2), KILLED, None, "01a1fb6d-d25d", None),

    opencode("hello", Whole, DONE, Some([1500, 300, 12]), Some(3_870_000), "ses_e0492209affeiLXaxQQ8tAswXG", ok("Hello from the fake model.")),
    opencode("tools", Whole, DONE, Some([3600, 200, 77]), Some(11_415_000), "ses_e0491f24affeUCqLvSG59qzIsz", ok("All done.")),
    opencode("reasoning-and-invalid-tool", Whole, DONE, Some([2600, 100, 109]), Some(9_165_000), "ses_e04be023dffe8URGmxjsf5AISN", ok("end")),
    opencode("mcp", Whole, DONE, Some([3000, 0, 150]), Some(11_250_000), "ses_e04b37249ffeb80670QzKlSazG", ok("end")),
    // it recovered by itself; of a cut stream, a step without an answer
    opencode("rate-limit-once", Whole, DONE, Some([1000, 0, 50]), Some(3_750_000), "ses_e0491a485ffeLWdGtF1iONFfUA", ok("recovered")),
    opencode("reset-mid-stream", Whole, DONE, Some([1000, 0, 50]), Some(3_750_000), "ses_e0490c9c0ffeR2jJ4i2AREnAm7", ok("recovered")),
    opencode("cut-stream", Whole, DONE, Some([1000, 0, 50]), Some(3_750_000), "ses_e0490a137ffeeYEPgwYhyLurkQ", ok("recovered")),
    // failures: a refused tool call ends it with 0
    opencode("permission-rejected", Whole, DONE, Some([1000, 0, 50]), Some(3_750_000), "ses_e04b33bd4ffeoeOkw1WK714ikR", FAILED),
    opencode("content-filter", Whole, BAD, Some([1000, 0, 50]), Some(3_750_000), "ses_e04b7bfbaffeSkqPvX31u5ZrTj", FAILED),
    opencode("rate-limit", Whole, BAD, None, None, "ses_e04916a18ffeJrrjgu8amdDwcS", FAILED),
    // interrupted it prints nothing at all
    opencode("sigint-hung", Whole, Exit::Signal(2), None, None, "", None),
    opencode("sigterm-hung", Whole, Exit::Signal(15), None, None, "", None),
    // cut off: its usage is known step by step
    opencode("tools-cut-at-line", Whole, KILLED, Some([1000, 0, 40]), Some(3_600_000), "ses_e0491f24affeUCqLvSG59qzIsz", None),
    opencode("tools-cut-in-line", Whole, KILLED, Some([2100, 0, 70]), Some(7_350_000), "ses_e0491f24affeUCqLvSG59qzIsz", None),
    opencode("hello-cut", Whole, Exit::Signal(2), None, None, "ses_e0492209affeiLXaxQQ8tAswXG", None),

    gemini("hello", DONE, Some([1500, 300, 12]), "b68b850f-fbc2-47ba-a9ed-2b2dc5dab1cc", ok("Hello from the fake model.")),
    gemini("tools", DONE, Some([3600, 200, 77]), "353f6a66-a729-4028-add3-96092d4f9ee6", ok("All done.")),
    // reasoning is in the total alone
    gemini("tools-and-unknown-tool", DONE, Some([3600, 100, 162]), "297318ce-e6df-4192-9549-728a6cdbbecb", ok("end")),
    gemini("mcp", DONE, Some([3000, 0, 150]), "7f232f6d-2c66-466c-909a-99a25efeb33e", ok("end")),
    // continued by a hook, the second time after a tool
    gemini("stop-hook", DONE, Some([3000, 0, 150]), "7ebe534e-f587-4b51-9b09-93bcaa9296e3", ok("third stop")),
    gemini("after-agent-hook", DONE, Some([4000, 0, 200]), "bc2ad19b-c878-4a3b-aaef-3837d04cf023", ok("third stop")),
    gemini("rate-limit-once", DONE, Some([1000, 0, 50]), "b25c17ff-ff20-459a-85b9-f0d9345ae311", ok("recovered")),
    // started again: it continues as if nothing had been cut
    gemini("cut-stream", DONE, Some([1000, 0, 50]), "ceed40ca-cf9c-49e3-9ede-86f7b0991a57", ok("This answer is cut off before its end, arecovered")),
    // failures
    gemini("empty-answer", DONE, Some([4000, 0, 200]), "828aab74-cb60-4481-8b53-5f384b3e1c94", FAILED),
    gemini("max-turns", Exit::Code(53), Some([2000, 0, 100]), "75c46173-7cab-4ff3-b726-261d10841e4b", FAILED),
    gemini("loop-detected", DONE, None, "337f2795-d153-4c0a-8752-4bdf55fbb2f1", FAILED),
    gemini("reset-mid-stream-fatal", BAD, None, "86b8e555-e25c-45e0-a71a-47e72079efad", FAILED),
    // interrupted, or its output was cut: 0, and no result
    gemini("tools-cut-at-line", DONE, None, "353f6a66-a729-4028-add3-96092d4f9ee6", None),
    gemini("tools-cut-in-line", DONE, None, "353f6a66-a729-4028-add3-96092d4f9ee6", None),
    gemini("sigint-hung", DONE, None, "c014e0fb-9e3c-4692-80ab-60ff45e22b2c", None),
    gemini("sigterm-hung", DONE, None, "0842b42a-0f10-450d-baa0-c4df6e73fbd7", None),
    gemini("rate-limit-retrying", KILLED, None, "8c0c87ed-8897-4752-9e5f-f997af8b798f", None),
];

impl Part {
    fn of(self, stream: &[u8]) -> &[u8] {
        let ends: Vec<usize> =
            stream.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1).collect();
        match self {
            Whole => stream,
            Lines(count) => &stream[..ends[count - 1]],
            Without(bytes) => &stream[..stream.len() - bytes],
            WithoutLines(count) => &stream[..ends[ends.len() - 1 - count]],
        }
    }
}

#[test]
fn recorded_streams_give_the_usage_and_result_of_their_programs() {
    for truth in &TRUTHS {
        let Truth { agent, name, part, exit, .. } = *truth;
        let played = play(agent, part.of(&recording(agent, name)), exit, "");
        let report = &played.report;
        let tokens = truth.tokens.map(|(scope, [input, cached, output])| {
            (scope, Tokens { input: Some(input), cached_input: Some(cached), output: Some(output) })
        });
        let which = format!("{agent} {name}, {part:?}");
        assert_eq!(report.tokens, tokens, "{which}");
        assert_eq!(report.cost, truth.cost.map(|(scope, cost)| (scope, Usd(cost))), "{which}");
        let id = report.session.id.as_deref().unwrap_or_default();
        let length = match (agent, truth.session) {
            (_, "") => 0,
            ("opencode", _) => 30,
            (_, _) => 36,
        };
        assert!(id.len() == length && id.starts_with(truth.session), "{which}: session {id}");
        assert_eq!(report.session.model.as_deref(), truth.model, "{which}");
        assert_eq!(played.last_word(), truth.last_word, "{which}");
        assert_eq!(report.is_final, truth.last_word.is_some(), "{which}");
        let is_good = truth.last_word.is_some_and(|(ok, _)| ok);
        assert_eq!(report.fault.is_none(), is_good, "{which}: {:?}", report.fault);
        assert_eq!(report.unknown, 0, "{which}");
    }
}

#[test]
fn events_in_one_list_are_events() {
    let stream = String::from_utf8(recording("claude", "tools")).expect("text");
    let list = format!("[{}]", stream.lines().collect::<Vec<_>>().join(","));
    let (alone, listed) =
        (play("claude", stream.as_bytes(), DONE, ""), play("claude", list.as_bytes(), DONE, ""));
    assert_eq!(alone.events, listed.events);
}
