//! Streams that arrive in pieces, and the parser's result: for a stream, a document, a message.

use proptest::prelude::*;
use refrain_agents::output_parser::{OutputParser, ParsedOutput, Stream};
use refrain_core::agent::{AgentEvent, FaultKind, Usage};
use refrain_core::event::Exit;
use refrain_core::plan::TaskRef;
use refrain_core::promise::{MatchMode, Promise};
use refrain_core::spec::{AgentKind, OutputFormat};
use refrain_core::{Spec, promise};

use crate::play::{AGENTS, adapter, call, recording, spec};

const DONE: Exit = Exit::Code(0);

/// Streams with many kinds of events; the last one is cut off in its last line.
const SAMPLES: [(&str, &str); 5] = [
    ("claude", "tools-partial-messages"),
    ("codex", "tools"),
    ("opencode", "reasoning-and-invalid-tool"),
    ("gemini", "tools-and-unknown-tool"),
    ("gemini", "tools-cut-in-line"),
];

fn kind(agent: &str) -> AgentKind {
    AgentKind::of_program(agent)
}

/// All events of a stream that arrives in these pieces.
fn pieces<'a>(mut stream: Stream, chunks: impl Iterator<Item = &'a [u8]>, exit: Exit) -> Vec<AgentEvent> {
    let mut events = Vec::new();
    chunks.for_each(|chunk| stream.push(chunk, &mut |event| events.push(event)));
    stream.conclude(exit, "", &mut |event| events.push(event));
    events
}

fn stream(agent: &str) -> Stream {
    Stream::new(adapter(agent).dialect(&call(&spec(agent, &[]))))
}

#[test]
fn a_stream_decodes_the_same_however_it_is_cut() {
    for (agent, name) in SAMPLES {
        let bytes = recording(agent, name);
        let whole = pieces(stream(agent), std::iter::once(&bytes[..]), DONE);
        assert!(whole.len() > 3 && !whole.contains(&AgentEvent::Unknown), "{agent} {name}: {whole:?}");
        for size in [1, 2, 3, 7, 64, 1_000, 65_536] {
            assert_eq!(pieces(stream(agent), bytes.chunks(size), DONE), whole, "{agent} {name}, {size}");
        }
    }
}

proptest! {
    #[test]
    fn a_stream_decodes_the_same_when_cut_at_random(
        sample in 0..SAMPLES.len(),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..30),
        noise in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        joins in any::<bool>(),
    ) {
        let (agent, name) = SAMPLES[sample];
        let mut bytes = recording(agent, name);
        noise.into_iter().for_each(|(at, byte)| { let at = at.index(bytes.len()); bytes[at] = byte; });
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let begin = || {
            let dialect = adapter(agent).dialect(&call(&spec(agent, &[])));
            if joins { Stream::joined(dialect) } else { Stream::new(dialect) }
        };
        let chunks = cuts.windows(2).map(|ends| &bytes[ends[0]..ends[1]]);
        let whole = pieces(begin(), std::iter::once(&bytes[..]), DONE);
        prop_assert_eq!(pieces(begin(), chunks, DONE), whole);
    }
}

#[test]
fn a_stream_joined_in_the_middle_begins_with_the_next_line() {
    for agent in AGENTS {
        let bytes = recording(agent, "tools");
        let second = bytes.iter().position(|byte| *byte == b'\n').expect("several lines") + 1;
        let dialect = || adapter(agent).dialect(&call(&spec(agent, &[])));
        let from_second = pieces(Stream::new(dialect()), bytes[second..].chunks(100), DONE);
        for at in [1, second / 2, second - 1] {
            let joined = pieces(Stream::joined(dialect()), bytes[at..].chunks(100), DONE);
            assert_eq!(joined[0], AgentEvent::Unknown, "{agent}: what was not heard is not known");
            assert_eq!(joined[1..], from_second, "{agent}, from byte {at} on");
        }
    }
}

/// A loop with an agent of this kind and output, whose promise is `DONE`.
fn promising(kind: AgentKind, output_format: OutputFormat) -> Spec {
    let mut spec = spec(kind.program().unwrap_or("cat"), &[]);
    spec.agent.kind = kind;
    spec.agent.output_format = output_format;
    spec.promise = Some(Promise { text: "DONE".parse().expect("a promise"), mode: MatchMode::Tag });
    spec
}

fn hear(spec: &Spec, bytes: &[u8], exit: Exit) -> ParsedOutput {
    let mut ear = OutputParser::new(&call(spec));
    for chunk in bytes.chunks(9) {
        ear.hear(chunk);
    }
    ear.conclude(exit, "")
}

fn result(text: &str) -> String {
    let text = serde_json::to_string(text).expect("text");
    format!(
        "{{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"num_turns\":1,\"result\":{text}}}\n"
    )
}

#[test]
fn a_claim_counts_only_in_the_final_message() {
    const CLAIM: &str = "It works.\n<promise>DONE</promise>";
    use OutputFormat::{Auto, Json, StreamJson, Text};
    #[rustfmt::skip]
    let cases: Vec<(OutputFormat, String, Exit, bool, Option<&str>)> = vec![
        // a message is all of it, with any exit
        (Auto, CLAIM.to_owned(), DONE, true, None),
        (Text, CLAIM.to_owned(), Exit::Code(1), true, None),
        (Text, result(CLAIM), DONE, false, None),
        // a document, by its usual names
        (Json, serde_json::json!({"result": CLAIM}).to_string(), DONE, true, Some(CLAIM)),
        (Json, serde_json::json!({"response": CLAIM, "stats": {}}).to_string(), DONE, true, Some(CLAIM)),
        (Json, format!("{{\n\"text\":\n{}}}\n", serde_json::json!(CLAIM)), DONE, true, Some(CLAIM)),
        (Json, serde_json::json!({"message": CLAIM}).to_string(), DONE, true, Some(CLAIM)),
        (Json, serde_json::json!({"result": "no", "message": CLAIM}).to_string(), DONE, false, Some("no")),
        (Json, serde_json::json!({"result": CLAIM}).to_string(), Exit::Code(1), false, None),
        (Json, serde_json::json!({"other": CLAIM}).to_string(), DONE, false, None),
        (Json, CLAIM.to_owned(), DONE, false, None),
        // a stream, as Claude Code prints it
        (StreamJson, result(CLAIM), DONE, true, Some(CLAIM)),
        (StreamJson, result(CLAIM).trim_end().to_owned(), DONE, true, Some(CLAIM)),
        (StreamJson, result(CLAIM).replace("false", "true"), DONE, false, None),
        (StreamJson, format!("{CLAIM}\n{}", result("no")), DONE, false, Some("no")),
        (StreamJson, format!("{}{}", result(CLAIM), result("no")), DONE, false, Some("no")),
    ];
    for (format, bytes, exit, claimed, message) in cases {
        let heard = hear(&promising(AgentKind::Generic, format), bytes.as_bytes(), exit);
        assert_eq!(heard.finding.claimed, claimed, "{format:?} {bytes} {exit:?}: {heard:?}");
        assert_eq!(heard.message.as_deref(), message, "{format:?} {bytes} {exit:?}");
        let is_stream = matches!(format, Json | StreamJson);
        assert_eq!(heard.report.is_some(), is_stream, "{format:?} {bytes}");
    }
}

#[test]
fn output_that_is_no_document_is_a_fault() {
    let spec = promising(AgentKind::Generic, OutputFormat::Json);
    for bytes in [&b""[..], b"no", b"{", b"null", &[0xff; 9]] {
        let report = hear(&spec, bytes, DONE).report.expect("a document reports");
        assert_eq!(report.fault.map(|fault| fault.kind), Some(FaultKind::Other), "{bytes:?}");
        assert!(!report.is_final);
    }
}

#[test]
fn known_agents_are_heard_by_their_kind() {
    for agent in AGENTS {
        let spec = promising(kind(agent), OutputFormat::Auto);
        let heard = hear(&spec, &recording(agent, "tools"), DONE);
        assert_eq!(heard.message.as_deref(), Some("All done."), "{agent}");
        assert_eq!(heard.finding.last_line, "All done.", "{agent}");
        let report = heard.report.unwrap_or_default();
        assert!(report.is_final && report.fault.is_none() && !report.resumed, "{agent}: {report:?}");
    }
}

#[test]
fn without_a_final_message_the_last_thing_said_is_shown_and_claims_nothing() {
    let said = r#"{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"One.\n<promise>DONE</promise>\n\n"}]}}"#;
    let heard = hear(&promising(AgentKind::Claude, OutputFormat::Auto), said.as_bytes(), Exit::Signal(9));
    assert!(!heard.finding.claimed && heard.message.is_none());
    assert_eq!(heard.finding.last_line, "<promise>DONE</promise>");
    assert!(heard.finding.last_line.len() <= promise::PREVIEW);
}

#[test]
fn usage_is_news_once_and_only_of_this_attempt() {
    let news = |agent: &str| {
        let spec = promising(kind(agent), OutputFormat::Auto);
        let mut ear = OutputParser::new(&call(&spec));
        let bytes = recording(agent, "tools");
        let lines: Vec<Usage> =
            bytes.split_inclusive(|b| *b == b'\n').filter_map(|line| ear.hear(line)).collect();
        lines.iter().map(|usage| usage.tokens.counted()).collect::<Vec<_>>()
    };
    assert_eq!(news("opencode"), [1_040, 2_170, 3_677], "after each model call");
    assert_eq!(
        news("gemini"),
        [0_u64; 0],
        "it comes with the last word, and nothing can be done about it then"
    );
    assert_eq!(news("codex"), [0_u64; 0], "its tokens are the session's");
    assert_eq!(news("claude").last(), Some(&3_603), "as far as it says before its last word");
}

#[test]
fn an_attempt_whose_end_was_not_seen_is_adopted_by_its_last_event() {
    let is_over = |heard: &ParsedOutput| heard.report.as_ref().is_some_and(|report| report.is_final);
    for (agent, name, message) in [
        ("claude", "tools", Some("All done.")),
        ("codex", "tools", Some("All done.")),
        ("gemini", "tools", Some("All done.")),
        // a failed run is over too
        ("claude", "auth", None),
    ] {
        let bytes = recording(agent, name);
        let spec = promising(kind(agent), OutputFormat::Auto);
        let adopt = |bytes: &[u8]| {
            let mut ear = OutputParser::new(&call(&spec));
            ear.hear(bytes);
            ear.adopt().filter(is_over)
        };
        let heard = adopt(&bytes).unwrap_or_else(|| panic!("{agent} {name} is over"));
        assert_eq!(heard.message.as_deref(), message, "{agent} {name}");
        // The line is complete except for its end; half of it is no event.
        assert!(adopt(bytes.trim_ascii_end()).is_some(), "{agent} {name}");
        assert!(adopt(&bytes[..bytes.len() - 30]).is_none(), "{agent} {name}");
    }
    for (agent, format) in [
        // Its stream has no final message.
        ("opencode", OutputFormat::Auto),
        // Neither a message nor a document: only the exit shows that it is complete.
        ("generic", OutputFormat::Text),
        ("generic", OutputFormat::Json),
    ] {
        let name = if agent == "generic" { "claude" } else { agent };
        let spec = promising(kind(agent), format);
        let mut ear = OutputParser::new(&call(&spec));
        ear.hear(&recording(name, "tools"));
        assert!(ear.adopt().filter(is_over).is_none(), "{agent} {format:?}");
    }
}

#[test]
fn a_resumed_session_is_reported_as_resumed() {
    for (kind, args, resumed) in [
        (AgentKind::Claude, &[][..], false),
        (AgentKind::Claude, &["--resume", "id"], true),
        (AgentKind::Claude, &["-r"], true),
        (AgentKind::Claude, &["--resume=id"], true),
        (AgentKind::Claude, &["--restart"], false),
        (AgentKind::Codex, &["resume", "--last"], true),
        (AgentKind::Codex, &["-c", "model_reasoning_effort=low"], false),
        // It reports only the run's own usage, so it does not matter.
        (AgentKind::Opencode, &["--session=id"], false),
    ] {
        let mut spec = promising(kind, OutputFormat::Auto);
        spec.agent.args = args.iter().map(|&arg| arg.to_owned()).collect();
        let report = hear(&spec, b"", DONE).report.expect("a stream reports");
        assert_eq!(report.resumed, resumed, "{args:?}");
    }
}

#[test]
fn only_the_agent_of_a_task_can_give_it_up() {
    let message = b"I looked.\n\nTASK_BLOCKED: there is no key\n";
    let mut spec = spec("worker", &[]);
    assert_eq!(hear(&spec, message, DONE).finding.gave_up, None);
    let (plan, id) = ("plan".parse().expect("an id"), "2".parse().expect("an id"));
    spec.task = Some(TaskRef { plan, tag: "main".to_owned(), id, title: "Find it".to_owned(), round: 1 });
    assert_eq!(hear(&spec, message, DONE).finding.gave_up.as_deref(), Some("there is no key"));
    let document = br#"{"type":"result","result":"TASK_BLOCKED: no","is_error":false}"#;
    spec.agent.output_format = OutputFormat::Json;
    assert_eq!(hear(&spec, document, DONE).finding.gave_up.as_deref(), Some("no"));
}

#[test]
fn an_attempt_that_ends_before_its_first_event_is_reported_as_such() {
    for (agent, bytes, no_events) in [
        ("claude", &b""[..], true),
        ("gemini", b"Warning: something of node\n", true),
        ("codex", br#"{"type":"thread.started","thread_id":"t"}"#, false),
        ("opencode", b"{\"type\":\"step_start\",\"sessionID\":\"s\",\"part\":{}}\n", false),
    ] {
        let heard = hear(&promising(kind(agent), OutputFormat::Auto), bytes, Exit::Signal(9));
        assert_eq!(heard.report.map(|report| report.no_events), Some(no_events), "{agent}");
    }
    // A document is printed only at the end.
    let heard = hear(&promising(AgentKind::Generic, OutputFormat::Json), b"", Exit::Signal(9));
    assert_eq!(heard.report.map(|report| report.no_events), Some(false));
}

#[test]
fn codex_that_sleeps_is_known_to_wait_for_its_provider() {
    let notice = |n: u32| {
        format!(
            "{{\"type\":\"error\",\"message\":\"Reconnecting... {n}/2 (exceeded retry limit, last status: 429 Too Many Requests)\"}}\n"
        )
    };
    let spec = promising(AgentKind::Codex, OutputFormat::Auto);
    let begun = "{\"type\":\"thread.started\",\"thread_id\":\"t\"}\n{\"type\":\"turn.started\"}\n";
    let mut ear = OutputParser::new(&call(&spec));
    ear.hear(format!("{begun}{}", notice(1)).as_bytes());
    assert_eq!(ear.retrying().map(|(n, fault)| (n, fault.kind)), Some((1, FaultKind::RateLimit)));
    ear.hear(notice(2).as_bytes());
    assert_eq!(ear.retrying().map(|(n, _)| n), Some(2), "another notice is news");
    // When interrupted, it exits with 1.
    let report = ear.conclude(Exit::Code(1), "").report.expect("a stream reports");
    assert_eq!(report.fault.map(|fault| fault.kind), Some(FaultKind::RateLimit));
    // It continued, and was interrupted during its work.
    let item = "{\"type\":\"item.completed\",\"item\":{\"type\":\"agent_message\",\"text\":\"On.\"}}\n";
    let worked = hear(&spec, format!("{begun}{}{item}", notice(1)).as_bytes(), Exit::Code(1));
    let fault = worked.report.and_then(|report| report.fault);
    assert_eq!(fault.map(|fault| fault.kind), Some(FaultKind::Aborted));
}

#[test]
fn a_final_message_over_the_bound_is_a_near_miss() {
    let text = serde_json::json!({
        "type": "text", "sessionID": "s", "part": {"text": "x".repeat(5 << 20) + "\n<promise>DONE</promise>"}
    });
    let begun = "{\"type\":\"step_start\",\"sessionID\":\"s\",\"part\":{}}";
    let over = "{\"type\":\"step_finish\",\"sessionID\":\"s\",\"part\":{\"reason\":\"stop\"}}";
    let stream = format!("{begun}\n{text}\n{over}\n");
    let mut spec = promising(AgentKind::Opencode, OutputFormat::Auto);
    let heard = |spec: &Spec| {
        let mut ear = OutputParser::new(&call(spec));
        ear.hear(stream.as_bytes());
        ear.conclude(DONE, "")
    };
    let finding = heard(&spec).finding;
    assert_eq!((finding.claimed, finding.near_miss), (false, Some(promise::NearMiss::TooLong)));
    spec.promise = None;
    assert_eq!(heard(&spec).finding.near_miss, None, "no promise is expected");
}

#[test]
fn a_text_in_parts_is_shown_by_its_last_line() {
    let delta = |text: &str| {
        let event =
            serde_json::json!({"type": "message", "role": "assistant", "content": text, "delta": true});
        format!("{event}\n")
    };
    let spec = promising(AgentKind::Gemini, OutputFormat::Auto);
    for (parts, line) in [
        (&["I lo", "ok\n<promise>COM", "PLETE</promise>"][..], "<promise>COMPLETE</promise>"),
        (&["One.\nTw", "o.\n\n"], "Two."),
        (&["One.", "\n"], "One."),
        (&["  \n"], ""),
    ] {
        let bytes: String = parts.iter().map(|part| delta(part)).collect();
        assert_eq!(hear(&spec, bytes.as_bytes(), Exit::Signal(9)).finding.last_line, line, "{parts:?}");
    }
}
