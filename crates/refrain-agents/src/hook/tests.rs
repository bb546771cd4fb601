use refrain_core::agent::{Tokens, Usd};
use rstest::rstest;

use super::transcript::{codex, gemini, tail};
use super::*;

#[rstest]
#[case::claude(
    r#"{"session_id":"s-1","transcript_path":"/home/agent/t.jsonl","cwd":"/repo","hook_event_name":"Stop","stop_hook_active":true,"last_assistant_message":"done","background_tasks":[],"session_crons":[]}"#
)]
#[case::codex(
    r#"{"session_id":"s-1","turn_id":"t","transcript_path":"/home/agent/t.jsonl","cwd":"/repo","hook_event_name":"Stop","model":"gpt-5.5","last_assistant_message":"done"}"#
)]
#[case::gemini(
    r#"{"session_id":"s-1","transcript_path":"/home/agent/t.jsonl","cwd":"/repo","hook_event_name":"AfterAgent","prompt":"Say hello.","prompt_response":"done"}"#
)]
#[case::odd_fields(
    r#"{"session_id":"s-1","transcript_path":"/home/agent/t.jsonl","cwd":"/repo","background_tasks":"none","source":7,"last_assistant_message":"done"}"#
)]
fn the_end_of_a_turn_is_read_from_the_hook(#[case] input: &str) {
    let told = read(input.as_bytes()).unwrap();
    assert!(told.is_stop());
    assert_eq!(told.last_message(None).as_deref(), Some("done"));
    let HookInput { session, cwd, has_background, transcript, .. } = told;
    assert_eq!((session.as_str(), has_background), ("s-1", false));
    assert_eq!(cwd.as_deref(), Some(Utf8Path::new("/repo")));
    assert_eq!(transcript.as_deref(), Some(Utf8Path::new("/home/agent/t.jsonl")));
}

#[rstest]
#[case::nothing("")]
#[case::no_json("Stop")]
#[case::no_object("[1]")]
#[case::no_session(r#"{"hook_event_name":"Stop"}"#)]
#[case::an_empty_one(r#"{"session_id":" ","hook_event_name":"Stop"}"#)]
#[case::another_type(r#"{"session_id":7}"#)]
fn a_hook_input_without_a_session_is_ignored(#[case] input: &str) {
    assert_eq!(read(input.as_bytes()), None);
}

#[test]
fn an_agent_below_the_session_ends_no_turn_of_it() {
    let told = read(br#"{"session_id":"s","hook_event_name":"SubagentStop","agent_id":"a"}"#).unwrap();
    assert!(!told.is_stop());
    let unnamed = read(br#"{"session_id":"s","agent_id":"a","last_assistant_message":"done"}"#).unwrap();
    assert!(!unnamed.is_stop(), "whatever it is called");
    assert!(read(br#"{"session_id":"s","agent_id":null,"hook_event_name":"Stop"}"#).unwrap().is_stop());
}

/// As Gemini 0.61.0 joined two answers, the second of which came in two parts.
const JOINED: &str = r#"{"session_id":"s-1","hook_event_name":"AfterAgent","prompt_response":"<promise>COMPLETE</promise>\nNot yet. <pro mise>COMPLETE</promise>\n"}"#;

#[rstest]
#[case::as_it_was_told("Stop", "last_assistant_message", Some(Some("kept")), Some("said"))]
#[case::what_is_kept_goes_before_what_is_joined(
    "AfterAgent",
    "prompt_response",
    Some(Some("kept")),
    Some("kept")
)]
#[case::a_turn_without_words_has_none_of_before("AfterAgent", "prompt_response", Some(None), Some(""))]
#[case::else_it_is_the_end("AfterAgent", "prompt_response", None, Some("said"))]
fn the_last_message_comes_from_the_hook_input(
    #[case] event: &str,
    #[case] field: &str,
    #[case] kept: Option<Option<&str>>,
    #[case] expected: Option<&str>,
) {
    let input = json!({ "session_id": "s-1", "hook_event_name": event, field: "said" }).to_string();
    assert_eq!(read(input.as_bytes()).unwrap().last_message(kept).as_deref(), expected);
    let joined = read(JOINED.as_bytes()).unwrap().last_message(None).unwrap();
    assert_eq!(joined, "Not yet. <pro mise>COMPLETE</promise>", "an answer that was heard before is none");
}

const ASKED: &str = r#"{"id":"1","type":"user","content":[{"text":"[loop job iteration 2/5]"}]}"#;
const RAN: &str =
    r#"{"id":"2","type":"gemini","content":"","toolCalls":[{"id":"c","name":"run_shell_command"}]}"#;
const RETURNED: &str = r#"{"id":"3","type":"user","content":[{"functionResponse":{"id":"c"}}]}"#;
const SAID: &str = r#"{"id":"4","type":"gemini","content":"<promise>COMPLETE</promise>","thoughts":[]}"#;
const SET: &str = r#"{"$set":{"lastUpdated":"2026-11-22T06:51:04.437Z"}}"#;

#[rstest]
#[case::words_alone(&[RAN, SAID, ASKED, SET, SAID, SET], Some("<promise>COMPLETE</promise>"), false)]
#[case::after_a_tool(&[ASKED, RAN, RETURNED, SET, SAID], Some("<promise>COMPLETE</promise>"), true)]
#[case::only_what_came_since_it_was_told(&[SAID, ASKED, RAN, RETURNED, SET], None, true)]
#[case::odd_lines(&[ASKED, SAID, "{ half a li", "[]", "{}"], Some("<promise>COMPLETE</promise>"), false)]
fn a_turn_of_geminis_is_read_from_its_end(
    #[case] lines: &[&str],
    #[case] said: Option<&str>,
    #[case] worked: bool,
) {
    let found = gemini::tail(lines.join("\n").as_bytes(), false).unwrap();
    assert_eq!((found.message.as_deref(), found.has_worked), (said, worked));
}

fn tokens(input: u64, cached_input: u64, output: u64) -> Tokens {
    Tokens { input: Some(input), cached_input: Some(cached_input), output: Some(output) }
}

#[test]
fn a_message_of_geminis_counts_once() {
    let ran = r#"{"id":"2","type":"gemini","content":"","tokens":{"input":1200,"output":50,"cached":200,"thoughts":0,"tool":0,"total":1250},"model":"gemini-3.8-flash"}"#;
    let end = r#"{"id":"4","type":"gemini","content":"well","tokens":{"input":1400,"output":7,"cached":300,"thoughts":5,"tool":0,"total":1412},"model":"gemini-3.8-flash"}"#;
    let text = [ran, ASKED, ran, SET, ran, RETURNED, end].join("\n");
    let found = gemini::tail(text.as_bytes(), false).unwrap();
    assert_eq!(found.tokens, Some(tokens(2600, 500, 62)), "with the reasoning");
    assert_eq!(found.model.as_deref(), Some("gemini-3.8-flash"));
    let of_cut = &text.as_bytes()[ran.len() + ASKED.len()..];
    assert_eq!(gemini::tail(of_cut, true).unwrap().tokens, None);
}

fn codex_said(role: &str, text: &str) -> String {
    let payload =
        json!({ "type": "message", "role": role, "content": [{ "type": "output_text", "text": text }] });
    json!({ "type": "response_item", "payload": payload }).to_string()
}

fn codex_used(input: u64, cached: u64, output: u64) -> String {
    let total = json!({ "input_tokens": input, "cached_input_tokens": cached, "output_tokens": output, "reasoning_output_tokens": 1 });
    let payload = json!({ "type": "token_count", "info": { "total_token_usage": total } });
    json!({ "type": "event_msg", "payload": payload }).to_string()
}

const CODEX_CALL: &str =
    r#"{"type":"response_item","payload":{"type":"function_call","name":"exec_command"}}"#;
const CODEX_MODEL: &str = r#"{"type":"turn_context","payload":{"model":"gpt-5.5","cwd":"/repo"}}"#;
const CODEX_LIMITS: &str = r#"{"type":"event_msg","payload":{"type":"token_count","info":null}}"#;

#[test]
fn a_codex_turn_contains_everything_after_its_prompt() {
    let first = [
        CODEX_MODEL.to_owned(),
        codex_said("user", "Do it."),
        CODEX_CALL.to_owned(),
        codex_used(1200, 200, 50),
        codex_said("assistant", "first stop"),
        codex_used(2600, 500, 57),
    ];
    let second = [
        codex_said("user", "<hook_prompt>Go on.</hook_prompt>"),
        "{ half a li".to_owned(),
        codex_said("assistant", "second stop"),
        codex_used(3800, 500, 65),
        CODEX_LIMITS.to_owned(),
    ];
    let of = |lines: &[String], is_cut| codex::tail(lines.join("\n").as_bytes(), is_cut).unwrap();
    let turn = |message: &str, has_worked, tokens| Tail {
        message: Some(message.to_owned()),
        has_worked,
        tokens,
        model: Some("gpt-5.5".to_owned()),
        ..Tail::default()
    };
    assert_eq!(of(&first, false), turn("first stop", true, Some(tokens(2600, 500, 57))));
    let both = [first.as_slice(), &second].concat();
    assert_eq!(of(&both, false), turn("second stop", false, Some(tokens(1200, 0, 8))));
    assert_eq!(of(&first[1..], true), Tail { model: None, ..turn("first stop", true, None) }, "not known");
    let only_words = [first[4].clone(), first[5].clone()];
    assert_eq!(
        of(&only_words, true),
        Tail { model: None, ..turn("first stop", true, None) },
        "a long turn worked"
    );
    assert_eq!(codex::tail(b"{}", false), None);
}

#[test]
fn an_opencode_turn_comes_from_its_plugin() {
    let input = r#"{"session_id":"s","last_assistant_message":"well","answers":[
        {"tokens":{"input":1000,"output":50,"reasoning":0,"cache":{"read":200,"write":0}},"cost":0.00381,"model":"m","worked":true},
        {"tokens":{"input":1100,"output":2,"reasoning":5,"cache":{"read":300,"write":0}},"cost":0.003495,"model":"m"},
        {"cost":"odd"}]}"#;
    let turn = read(input.as_bytes()).unwrap().turn.unwrap();
    assert_eq!((turn.tokens, turn.has_worked), (Some(tokens(2600, 500, 57)), true));
    assert_eq!((turn.cost, turn.model.as_deref()), (Some(Usd(7_305_000)), Some("m")));
    let earlier = read(br#"{"session_id":"s","last_assistant_message":"well"}"#).unwrap();
    assert_eq!(earlier.turn, None, "an older plugin");
}

#[test]
fn answers_are_one_line_of_json() {
    assert_eq!(go_on("a\n\"b\""), r#"{"decision":"block","reason":"a\n\"b\""}"#);
}

fn assistant(block: &str) -> String {
    format!(r#"{{"type":"assistant","message":{{"role":"assistant","content":[{block}]}}}}"#)
}

const PROMPT: &str = r#"{"type":"user","message":{"role":"user","content":"Mend it."}}"#;
const RESULT: &str = r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1"}]}}"#;

#[rstest]
#[case::words_alone(&[], (Some("done"), false, false))]
#[case::after_a_tool(&[r#"{"type":"tool_use","id":"t1","name":"Bash"}"#, RESULT], (Some("done"), true, false))]
#[case::an_answered_question(&[r#"{"type":"tool_use","id":"t1","name":"AskUserQuestion"}"#, RESULT], (Some("done"), true, false))]
#[case::an_open_one(&[r#"{"type":"tool_use","id":"t2","name":"AskUserQuestion"}"#, RESULT], (Some("done"), true, true))]
fn a_turn_is_read_from_its_end(
    #[case] before: &[&str],
    #[case] (said, worked, asks): (Option<&str>, bool, bool),
) {
    let lines = before.iter().map(|line| match line.contains("tool_use\"") {
        true => assistant(line),
        false => (*line).to_owned(),
    });
    let earlier = [assistant(r#"{"type":"tool_use","id":"t0","name":"Bash"}"#), PROMPT.to_owned()];
    let end = [
        assistant(r#"{"type":"text","text":"done"}"#),
        r#"{"type":"assistant","isSidechain":true,"message":{"content":[{"type":"text","text":"below"}]}}"#
            .to_owned(),
        "{ half a li".to_owned(),
    ];
    let text: Vec<String> = earlier.into_iter().chain(lines).chain(end).collect();
    let found = tail(text.join("\n").as_bytes(), false).unwrap();
    assert_eq!((found.message.as_deref(), found.has_worked, found.asks), (said, worked, asks));
}

#[test]
fn feedback_of_a_stop_hook_begins_a_turn() {
    let feedback = r#"{"type":"user","isMeta":true,"message":{"content":"Stop hook feedback:\nGo on."}}"#;
    let tool = assistant(r#"{"type":"tool_use","id":"t0","name":"Bash"}"#);
    let end = assistant(r#"{"type":"text","text":"well"}"#);
    let text = [PROMPT, &tool, feedback, &end].join("\n");
    assert!(!tail(text.as_bytes(), false).unwrap().has_worked);
    let meta = feedback.replace("Stop hook feedback", "Caveat");
    let text = [PROMPT, &tool, &meta, &end].join("\n");
    assert!(tail(text.as_bytes(), false).unwrap().has_worked);
}

#[test]
fn a_transcript_of_nothing_is_none() {
    assert_eq!(tail(b"", false), None);
    assert_eq!(tail(PROMPT.as_bytes(), false), Some(Tail::default()));
    assert_eq!(look(AgentKind::Claude, Utf8Path::new("/nowhere/t.jsonl")), None);
}

#[test]
fn the_session_around_is_known_by_its_variables() {
    let claude = |name: &str| match name {
        "CLAUDECODE" => Some("1"),
        "CLAUDE_CODE_SESSION_ID" => Some("s-1"),
        _ => None,
    };
    assert_eq!(surrounding(claude), Some((AgentKind::Claude, Some("s-1"))));
    assert_eq!(surrounding(|_| None), None);
    let gemini = |name: &str| (name == "GEMINI_CLI").then_some("1");
    assert_eq!(surrounding(gemini), Some((AgentKind::Gemini, None)));
    assert_eq!(tool_mark(AgentKind::Codex, "s-1").as_deref(), Some("CODEX_THREAD_ID=s-1"));
    assert_eq!(tool_mark(AgentKind::Gemini, "s-1"), None);
}
