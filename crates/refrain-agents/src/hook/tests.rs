use rstest::rstest;

use super::transcript::{gemini, tail};
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
fn the_end_of_a_turn_is_told(#[case] input: &str) {
    let told = read(input.as_bytes()).unwrap();
    assert!(told.is_stop());
    assert_eq!(told.last_message(None).as_deref(), Some("done"));
    let Told { session, cwd, has_background, transcript, .. } = told;
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
fn what_is_of_no_session_is_nothing(#[case] input: &str) {
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
fn the_last_message_is_what_was_really_said(
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
fn what_a_hook_had_it_go_on_with_begins_a_turn() {
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
}
