//! Properties of any stream.

use proptest::prelude::*;
use refrain_core::agent::AgentEvent;
use refrain_core::event::Exit;

use crate::play::{play, recording};

const SAMPLES: [(&str, &str); 10] = [
    ("claude", "tools-partial-messages"),
    ("claude", "subagent-background-two-results"),
    ("claude", "usage-limit-subscription"),
    ("codex", "tools"),
    ("codex", "usage-limit"),
    ("codex", "sigint-hung"),
    ("opencode", "tools"),
    ("opencode", "reasoning-and-invalid-tool"),
    ("gemini", "tools"),
    ("gemini", "tools-and-unknown-tool"),
];

/// Lines of JSON that are no event of any tested version.
fn unknown() -> impl Strategy<Value = String> {
    let odd = [
        "{}",
        "[1,2]",
        "null",
        "42",
        "\"result\"",
        r#"{"type":7}"#,
        r#"{"type":"system"}"#,
        r#"{"item":{"type":"agent_message"}}"#,
    ];
    prop_oneof![
        proptest::sample::select(odd.map(str::to_owned).to_vec())
            .prop_filter("a list is many", |line| !line.starts_with('[')),
        "x-[a-z._]{0,12}".prop_map(|name| format!(
            r#"{{"type":"{name}","usage":{{"input_tokens":9}},"result":"<promise>x</promise>"}}"#
        )),
        "x-[a-z._]{0,12}".prop_map(|name| format!(
            r#"{{"type":"{name}","sessionID":"other","part":{{"text":"x"}},"session_id":"other","content":"x"}}"#
        )),
        // fields of unexpected types
        "x-[a-z._]{0,12}".prop_map(|name| format!(
            r#"{{"type":"{name}","sessionID":"other","part":{{"text":5,"cost":"x"}},"role":5,"error":1,"delta":[]}}"#
        )),
        "x-[a-z_]{0,12}".prop_map(|name| format!(
            r#"{{"session_id":"other","type":"system","subtype":"{name}","model":"m"}}"#
        )),
    ]
}

proptest! {
    #[test]
    fn no_bytes_are_a_panic(
        sample in 0..SAMPLES.len(),
        noise in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..40),
        tail in proptest::collection::vec(any::<u8>(), 0..200),
        cut in any::<prop::sample::Index>(),
        code in any::<i32>(),
        stderr in ".{0,80}",
    ) {
        let (agent, name) = SAMPLES[sample];
        let mut stream = recording(agent, name);
        for (at, byte) in noise {
            let at = at.index(stream.len());
            stream[at] = byte;
        }
        stream.extend(tail);
        play(agent, &stream, Exit::Code(code), &stderr);
        play(agent, &stream[..cut.index(stream.len())], Exit::Signal(9), &stderr);
    }

    #[test]
    fn unknown_lines_are_counted_and_change_nothing_else(
        sample in 0..SAMPLES.len(),
        strangers in proptest::collection::vec((any::<prop::sample::Index>(), unknown()), 0..12),
    ) {
        let (agent, name) = SAMPLES[sample];
        let stream = String::from_utf8(recording(agent, name)).expect("text");
        let mut lines: Vec<&str> = stream.lines().collect();
        for (at, line) in &strangers {
            lines.insert(at.index(lines.len() + 1), line);
        }
        let alone = play(agent, stream.as_bytes(), Exit::Code(0), "");
        let mixed = play(agent, lines.join("\n").as_bytes(), Exit::Code(0), "");
        let mut expected = alone.report;
        expected.unknown = strangers.len() as u64;
        prop_assert_eq!(mixed.report, expected);
        let known = mixed.events.into_iter().filter(|event| *event != AgentEvent::Unknown);
        prop_assert_eq!(known.collect::<Vec<_>>(), alone.events);
    }
}
