//! How tokens add up in streams other than the recorded ones: older versions, many messages, several turns.

use refrain_core::agent::{Scope, Tokens};
use refrain_core::event::Exit;

use crate::play::play;

/// A message, or a result, of Claude Code with this usage.
fn used(kind: &str, id: &str, [input, written, read, output]: [u64; 4]) -> String {
    let usage = format!(
        r#""usage":{{"input_tokens":{input},"cache_creation_input_tokens":{written},"cache_read_input_tokens":{read},"output_tokens":{output}}}"#
    );
    match kind {
        "message" => format!(r#"{{"type":"assistant","message":{{"id":"{id}","content":[],{usage}}}}}"#),
        "start" => format!(
            r#"{{"type":"stream_event","event":{{"type":"message_start","message":{{"id":"{id}",{usage}}}}}}}"#
        ),
        "delta" => format!(r#"{{"type":"stream_event","event":{{"type":"message_delta",{usage}}}}}"#),
        _ => format!(r#"{{"type":"result","subtype":"success","is_error":false,"result":"{id}",{usage}}}"#),
    }
}

#[test]
fn tokens_are_counted_without_the_newest_fields_too() {
    let many: Vec<String> = (0..500).map(|n| used("message", &format!("m{n}"), [1, 2, 3, 4])).collect();
    let many = many.join("\n");
    let cases = [
        // tokens written to the cache and read from it were sent
        (used("message", "a", [1, 20, 300, 4]), [321, 300, 4]),
        // an older version: its results have `usage` alone
        (
            format!("{}\n{}", used("message", "a", [9, 9, 9, 9]), used("result", "", [1, 0, 10, 5])),
            [11, 10, 5],
        ),
        (format!("{0}\n{0}", used("result", "", [1, 0, 10, 5])), [22, 20, 10]),
        (format!("{}\n{}", used("result", "", [1, 0, 0, 5]), used("message", "b", [7, 0, 0, 1])), [8, 0, 6]),
        // raw events that do not name their message
        (format!("{}\n{}", used("start", "a", [5, 0, 0, 1]), used("delta", "", [5, 0, 0, 40])), [5, 0, 40]),
        // of two interleaved messages, each is recognized
        (
            [
                used("message", "a", [1, 0, 0, 1]),
                used("message", "b", [2, 0, 0, 1]),
                used("message", "a", [1, 0, 0, 9]),
            ]
            .join("\n"),
            [3, 0, 10],
        ),
        // more messages than are tracked separately
        (many, [3000, 1500, 2000]),
        // a result without usage: the messages' counts stay
        (
            format!(
                "{}\n{{\"type\":\"result\",\"subtype\":\"success\",\"result\":\"\"}}",
                used("message", "a", [7, 0, 0, 2])
            ),
            [7, 0, 2],
        ),
    ];
    for (stream, [input, cached, output]) in cases {
        let tokens = Tokens { input: Some(input), cached_input: Some(cached), output: Some(output) };
        let report = play("claude", stream.as_bytes(), Exit::Signal(9), "").report;
        assert_eq!(report.tokens, Some((Scope::Attempt, tokens)), "{stream:.300}");
    }
}

#[test]
fn the_counts_of_one_codex_run_add_up_over_its_turns() {
    let said = |text: &str| {
        format!(r#"{{"type":"item.completed","item":{{"type":"agent_message","text":"{text}"}}}}"#)
    };
    let done = |input: u64| {
        format!(r#"{{"type":"turn.completed","usage":{{"input_tokens":{input},"output_tokens":5}}}}"#)
    };
    let begun = r#"{"type":"turn.started"}"#.to_owned();
    let failed = r#"{"type":"turn.failed","error":{"message":"x"}}"#.to_owned();
    let cases = [
        (
            vec![begun.clone(), said("one"), done(10), begun.clone(), said("two"), done(25)],
            Some(25),
            Some((true, Some("two"))),
        ),
        // text belongs to the turn that it appeared in
        (
            vec![begun.clone(), said("one"), failed.clone(), begun.clone(), done(25)],
            Some(25),
            Some((true, None)),
        ),
        (
            vec![begun.clone(), said("one"), done(10), begun, said("two"), failed],
            Some(10),
            Some((false, None)),
        ),
    ];
    for (lines, input, last_word) in cases {
        let played = play("codex", lines.join("\n").as_bytes(), Exit::Code(0), "");
        let tokens = Tokens { input, cached_input: None, output: Some(5) };
        assert_eq!(played.report.tokens, Some((Scope::Session, tokens)), "{lines:?}");
        assert_eq!(played.last_word(), last_word, "{lines:?}");
    }
}

#[test]
fn a_model_without_a_price_is_not_free() {
    let line = r#"{"type":"step_finish","sessionID":"s","part":{"reason":"stop","tokens":{"input":7,"output":1},"cost":0}}"#;
    let report = play("opencode", line.as_bytes(), Exit::Code(0), "").report;
    let tokens = Tokens { input: Some(7), cached_input: None, output: Some(1) };
    assert_eq!((report.tokens, report.cost), (Some((Scope::Attempt, tokens)), None));
}
