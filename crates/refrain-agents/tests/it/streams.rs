//! What recorded streams come to. The truth was read from the JSON by hand, not from the adapters.

use refrain_core::agent::{AgentEvent, Scope, Speaker, Tokens, Usd};
use refrain_core::event::Exit;

use crate::play::{play, recording};

/// What a stream came to.
struct Truth {
    agent: &'static str,
    name: &'static str,
    part: Part,
    exit: Exit,
    /// In (cached ones included), of those read from a cache, out.
    tokens: Option<(Scope, [u64; 3])>,
    /// Of the session, in billionths of a dollar.
    cost: Option<u64>,
    /// How the session's id begins.
    session: &'static str,
    model: Option<&'static str>,
    last_word: Option<(bool, Option<&'static str>)>,
}

/// How much of a recording is played.
#[derive(Clone, Copy, Debug)]
enum Part {
    Whole,
    /// So many lines.
    Lines(usize),
    /// All but so many bytes at the end.
    Without(usize),
    /// All but so many lines at the end.
    WithoutLines(usize),
}

use Part::{Lines, Whole, Without, WithoutLines};

const OPUS: Option<&str> = Some("claude-opus-5-5");
const SONNET: Option<&str> = Some("claude-sonnet-5-5");
const KILLED: Exit = Exit::Signal(9);

type LastWord = Option<(bool, Option<&'static str>)>;

/// A run of Claude Code. Money in hundred-thousandths of a dollar.
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
        Some(cost) => Some(cost * 10_000),
        None => None,
    };
    Truth { agent: "claude", name, part, exit, tokens, cost, session: said.0, model: said.1, last_word }
}

/// A run of Codex, which says neither money nor model.
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

const fn ok(message: &'static str) -> LastWord {
    Some((true, Some(message)))
}

const FAILED: LastWord = Some((false, None));
const DONE: Exit = Exit::Code(0);
const BAD: Exit = Exit::Code(1);

#[rustfmt::skip]
const TRUTHS: [Truth; 59] = [
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
    // resumed: the money is the session's, the tokens are not
    claude("resume", Whole, DONE, Some([1000, 0, 50]), Some(1000), ("8e4c", OPUS), ok("first answer")),
    // it recovered by itself; of a stream that was cut, both tries are paid
    claude("rate-limit-once", Whole, DONE, Some([1000, 0, 50]), Some(500), ("6bf3", OPUS), ok("recovered")),
    claude("reset-mid-stream", Whole, DONE, Some([1000, 0, 50]), Some(500), ("75c4", OPUS), ok("recovered")),
    claude("network-retry", Whole, DONE, Some([1000, 0, 50]), Some(500), ("d1b25130", OPUS), ok("recovered")),
    claude("cut-stream", Whole, DONE, Some([2000, 0, 51]), Some(902), ("284acbdc", OPUS), ok("recovered")),
    // the model that it ended with
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
    claude("resume-missing", Whole, BAD, Some([0, 0, 0]), Some(0), ("e3103891", None), FAILED),
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
    // what it said of an answer that was cut is no final message
    codex("output-limit", Whole, BAD, None, "01a1fb6f-757b", FAILED),
    codex("sigint-hung", Whole, BAD, None, "01a1fb6f-a1e4", None),
    codex("sigterm-hung", Whole, Exit::Signal(15), None, "01a1fb6f-d34c", None),
    codex("tools", WithoutLines(1), KILLED, None, "01a1fb6e-0264", None),
    codex("tools", Without(20), KILLED, None, "01a1fb6e-0264", None),
    codex("hello", Lines(2), KILLED, None, "01a1fb6d-d25d", None),
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
fn recorded_streams_come_to_what_their_programs_meant() {
    for truth in &TRUTHS {
        let Truth { agent, name, part, exit, .. } = *truth;
        let played = play(agent, part.of(&recording(agent, name)), exit, "");
        let report = &played.report;
        let tokens = truth.tokens.map(|(scope, [input, cached, output])| {
            (scope, Tokens { input: Some(input), cached_input: Some(cached), output: Some(output) })
        });
        let which = format!("{agent} {name}, {part:?}");
        assert_eq!(report.tokens, tokens, "{which}");
        assert_eq!(report.cost, truth.cost.map(|cost| (Scope::Session, Usd(cost))), "{which}");
        let id = report.session.id.as_deref().unwrap_or_default();
        assert!(id.len() == 36 && id.starts_with(truth.session), "{which}: session {id}");
        assert_eq!(report.session.model.as_deref(), truth.model, "{which}");
        assert_eq!(played.last_word(), truth.last_word, "{which}");
        assert_eq!(report.is_final, truth.last_word.is_some(), "{which}");
        let is_good = truth.last_word.is_some_and(|(ok, _)| ok);
        assert_eq!(report.fault.is_none(), is_good, "{which}: {:?}", report.fault);
        assert_eq!(report.unknown, 0, "{which}");
    }
}

/// What is shown of a stream, an event a line. What is counted elsewhere is left out.
fn shown(agent: &str, name: &str) -> Vec<String> {
    let who = |by: &Speaker| if *by == Speaker::Agent { "it" } else { "its sub-agent" };
    let events = play(agent, &recording(agent, name), DONE, "").events;
    let lines = events.iter().filter_map(|event| match event {
        AgentEvent::Text { text, part, by } => {
            Some(format!("{} says {text}{}", who(by), if *part { "…" } else { "" }))
        }
        AgentEvent::Thought(text) => Some(format!("it thinks {text}")),
        AgentEvent::ToolCall { name, about, by } => Some(format!("{} uses {name}: {about}", who(by))),
        AgentEvent::ToolResult { ok, output } => Some(format!("{ok:?}: {output:?}")),
        AgentEvent::Notice(text) => Some(format!("({text})")),
        AgentEvent::Final { ok, message } => {
            Some(format!("final, {ok}: {}", message.as_deref().unwrap_or("nothing")))
        }
        _ => None,
    });
    lines.collect()
}

#[test]
fn a_stream_is_shown_as_what_its_agent_does() {
    assert_eq!(
        shown("claude", "tools"),
        [
            "it thinks I should run it.",
            "it says I will run a command.",
            "it uses Bash: echo scripted > out.txt && echo done-42",
            "Some(true): \"done-42\"",
            "it uses Write: /repo/made.txt",
            "Some(true): \"File created successfully at: /repo/made.txt (file state is current in your context — no need to Read it back)\"",
            "it says All done.",
            "final, true: All done.",
        ]
    );
    assert_eq!(
        shown("codex", "tools"),
        [
            "it thinks I should run it.",
            "it says I will run a command.",
            "it uses shell: /bin/bash -lc 'echo scripted > out.txt && echo done-42'",
            "Some(true): \"done-42\"",
            "it uses file_change: add /repo/made.txt",
            "Some(true): \"\"",
            "it says All done.",
            "final, true: All done.",
        ]
    );
    assert_eq!(
        shown("codex", "mcp"),
        [
            "it uses kit.echo: hi mcp",
            "Some(true): \"echo: hi mcp\"",
            "it uses kit.fail: ",
            "Some(false): \"fail\"",
            "it says ok",
            "final, true: ok",
        ]
    );
}

#[test]
fn what_a_sub_agent_says_is_not_the_agents() {
    let lines = shown("claude", "subagent-background-two-results");
    assert!(lines.contains(&"its sub-agent says sub says done".to_owned()), "{lines:?}");
    assert!(!lines.contains(&"final, true: sub says done".to_owned()), "{lines:?}");
}

#[test]
fn events_in_one_list_are_events() {
    let stream = String::from_utf8(recording("claude", "tools")).expect("text");
    let list = format!("[{}]", stream.lines().collect::<Vec<_>>().join(","));
    let (alone, listed) =
        (play("claude", stream.as_bytes(), DONE, ""), play("claude", list.as_bytes(), DONE, ""));
    assert_eq!(alone.events, listed.events);
}
