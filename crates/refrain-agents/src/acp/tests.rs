use proptest::prelude::*;
use refrain_core::agent::{AgentEvent, AgentReport, Fault, FaultKind, Scope, Session, Tokens, Usd};
use refrain_core::event::Exit;
use refrain_core::spec::Permissions;
use rstest::rstest;
use serde::Deserialize;
use serde_json::{Value, json};

use super::faults::{self, Phase};
use super::launch::Acp;
use super::map::Map;
use super::testing::{self, recording, spec};
use super::wire::{InitializeResult, NewSession, PromptResult};
use crate::adapter::StreamDecoder;

#[derive(Debug, Default)]
struct AttemptTrace {
    events: Vec<AgentEvent>,
    report: AgentReport,
    last_word: Option<(bool, Option<String>)>,
}

impl AttemptTrace {
    fn take(&mut self, event: AgentEvent) {
        self.report.hear(&event);
        if let AgentEvent::Final { ok, message } = &event {
            self.last_word = Some((*ok, message.clone()));
        }
        self.events.push(event);
    }

    fn calls(&self) -> Vec<(&str, &str)> {
        fn of(event: &AgentEvent) -> Option<(&str, &str)> {
            let AgentEvent::ToolCall { name, about, .. } = event else { return None };
            Some((name, about))
        }
        self.events.iter().filter_map(of).collect()
    }

    fn results(&self) -> Vec<(Option<bool>, &str)> {
        fn of(event: &AgentEvent) -> Option<(Option<bool>, &str)> {
            let AgentEvent::ToolResult { ok, output } = event else { return None };
            Some((*ok, output))
        }
        self.events.iter().filter_map(of).collect()
    }
}

/// Replays a recorded conversation as the bridge receives it.
fn replay(recorded: &[u8]) -> AttemptTrace {
    let (mut map, mut heard) = (Map::default(), AttemptTrace::default());
    let mut asked = Vec::new();
    for line in recorded.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        // The longest lines were cut when they were recorded: a list of commands, and Codex's answer to
        // `session/new`.
        let Ok(line) = serde_json::from_slice::<Value>(line) else { continue };
        if let Some(out) = line.get("out").filter(|out| out.get("method").is_some()) {
            asked.push(out.clone());
            if out["method"] == "session/prompt" {
                map.begin();
            }
            continue;
        }
        let Some(message) = line.get("in") else { continue };
        let say = &mut |event| heard.take(event);
        match message.get("method").and_then(Value::as_str) {
            Some("session/update") => map.hear(&message["params"], say),
            Some("session/request_permission") => {
                map.tool(Deserialize::deserialize(&message["params"]["toolCall"]).unwrap(), say);
            }
            Some(_) => {}
            None => {
                let request = asked.iter().find(|request| request["id"] == message["id"]).unwrap();
                let result = &message["result"];
                match request["method"].as_str().unwrap() {
                    "initialize" => map.introduce(InitializeResult::deserialize(result).unwrap()),
                    "session/new" => map.open(&NewSession::deserialize(result).unwrap(), say),
                    "session/prompt" => assert!(map.end(&PromptResult::deserialize(result).unwrap(), say)),
                    _ => {}
                }
            }
        }
    }
    heard
}

const COMMAND: &str = "echo scripted > out.txt && echo done-42";

#[rstest]
#[case::claude(recording!("acp/claude.acp"), Some(["0.49.0", "ae5a4de4-3dc7-4508-90ef-5e1b2485ff9c", "default"]),
    [("Bash", COMMAND), ("Write", "/repo/made.txt")],
    [(true, "done-42"), (true, "File created successfully at: /repo/made.txt (file state is current in your context \u{2014} no need to Read it back)")],
    Some((3400, Some(0), 77)), Some(0.018_925))]
#[case::codex(recording!("acp/codex.acp"), None,
    [("exec_command", COMMAND), ("edit", "Editing files")], [(true, "done-42"), (true, "")],
    Some((3400, Some(0), 77)), None)]
#[case::gemini(recording!("acp/gemini.acp"), Some(["0.61.0", "16c32978-7dec-496e-965b-093f3ddb8502", "gemini-2.5-pro"]),
    [("execute", COMMAND), ("edit", "Writing to made.txt")],
    [(true, ""), (false, "Error checking existing file: Resource not found")],
    Some((3400, None, 77)), None)]
#[case::opencode(recording!("acp/opencode.acp"), Some(["1.18.33", "ses_e04b37bcfffeMtF3BtBD8TrHrd", "fake/fake-model"]),
    [("execute", COMMAND), ("edit", "/repo/made.txt")], [(true, "done-42"), (true, "Wrote file successfully.")],
    None, Some(0.011_355))]
fn a_recorded_conversation_comes_to(
    #[case] recorded: &[u8],
    #[case] session: Option<[&str; 3]>,
    #[case] calls: [(&str, &str); 2],
    #[case] results: [(bool, &str); 2],
    #[case] tokens: Option<(u64, Option<u64>, u64)>,
    #[case] cost: Option<f64>,
) {
    let heard = replay(recorded);
    assert_eq!(heard.last_word, Some((true, Some("All done.".to_owned()))));
    assert_eq!(heard.calls(), calls);
    assert_eq!(heard.results(), results.map(|(ok, output)| (Some(ok), output)));
    let report = &heard.report;
    let said = session.map(|said| said.map(|said| Some(said.to_owned())));
    let [version, id, model] = said.unwrap_or_default();
    assert_eq!(report.session, Session { id, model, version });
    let tokens = tokens.map(|(input, cached_input, output)| Tokens {
        input: Some(input),
        cached_input,
        output: Some(output),
    });
    assert_eq!(report.tokens, tokens.map(|tokens| (Scope::Attempt, tokens)));
    assert_eq!(report.cost, cost.map(|usd| (Scope::Attempt, Usd::from(usd))));
    assert_eq!((report.fault.as_ref(), report.unknown), (None, 0));
}

/// An attempt that was prompted and received these updates.
fn hear(updates: &[Value]) -> (Map, AttemptTrace) {
    let (mut map, mut heard) = (Map::default(), AttemptTrace::default());
    map.begin();
    for update in updates {
        map.hear(&json!({"sessionId": "s", "update": update}), &mut |event| heard.take(event));
    }
    (map, heard)
}

fn says(text: &str) -> Value {
    json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}})
}

fn final_message(mut map: Map) -> Option<String> {
    let mut heard = AttemptTrace::default();
    map.end(&prompted(json!({"stopReason": "end_turn"})), &mut |event| heard.take(event));
    heard.last_word.unwrap().1
}

fn prompted(result: Value) -> PromptResult {
    PromptResult::deserialize(&result).unwrap()
}

#[test]
fn only_the_text_since_the_last_tool_call_is_final() {
    let call = json!({"sessionUpdate": "tool_call", "toolCallId": "1", "title": "look", "status": "pending"});
    let done = json!({"sessionUpdate": "tool_call_update", "toolCallId": "1", "status": "completed"});
    let (map, heard) = hear(&[says("DONE, "), says("I claim."), call, done, says("Not "), says("yet.")]);
    assert_eq!(final_message(map).as_deref(), Some("Not yet."));
    let part = |event: &AgentEvent| match event {
        AgentEvent::Text { part, .. } => Some(*part),
        _ => None,
    };
    let parts: Vec<_> = heard.events.iter().filter_map(part).collect();
    assert_eq!(parts, [true; 4], "nothing is split in a word");
}

#[test]
fn another_message_stands_on_a_line_of_its_own() {
    let with_id = |id: &str, text| {
        let mut update = says(text);
        update["messageId"] = json!(id);
        update
    };
    let (map, _) = hear(&[with_id("a", "one"), with_id("a", " more"), with_id("b", "two")]);
    assert_eq!(final_message(map).as_deref(), Some("one more\ntwo"));
}

#[test]
fn a_tool_reported_once_is_a_call_and_a_result() {
    let once = json!({"sessionUpdate": "tool_call_update", "toolCallId": "1", "kind": "read", "title": "a.txt",
        "status": "failed", "content": [{"type": "content", "content": {"type": "text", "text": "no such file"}}]});
    let (_, heard) = hear(&[once.clone(), once]);
    assert_eq!(heard.calls(), [("read", "a.txt")]);
    assert_eq!(heard.results(), [(Some(false), "no such file")]);
}

#[rstest]
#[case::thought(json!({"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "hm"}}),
    AgentEvent::Thought("hm".to_owned()))]
#[case::plan(json!({"sessionUpdate": "plan", "entries": [
    {"content": "read", "priority": "high", "status": "completed"},
    {"content": "write", "priority": "high", "status": "pending"}]}),
    AgentEvent::Notice("plan: 1 of 2 done, now: write".to_owned()))]
#[case::an_image(json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "image", "data": ""}}), AgentEvent::Unknown)]
#[case::something_new(json!({"sessionUpdate": "melted", "toolCallId": 5}), AgentEvent::Unknown)]
#[case::nothing_at_all(json!(7), AgentEvent::Unknown)]
#[case::a_tool_without_an_id(json!({"sessionUpdate": "tool_call", "title": "x"}), AgentEvent::Unknown)]
fn an_update_is(#[case] update: Value, #[case] event: AgentEvent) {
    assert_eq!(hear(&[update]).1.events, [event]);
}

#[test]
fn money_of_other_countries_is_not_counted() {
    let cost = |amount, currency| json!({"sessionUpdate": "usage_update", "used": 1, "size": 2, "cost": {"amount": amount, "currency": currency}});
    assert_eq!(
        hear(&[cost(5, "EUR"), cost(0, "USD")]).1.events,
        [],
        "opencode says 0 of a turn that was cancelled"
    );
}

#[test]
fn text_before_the_prompt_is_no_answer_to_it() {
    let (mut map, mut heard) = (Map::default(), AttemptTrace::default());
    map.hear(&json!({"update": says("[MODE_UPDATE] yolo")}), &mut |event| heard.take(event));
    map.begin();
    assert_eq!(heard.events, [AgentEvent::Notice("[MODE_UPDATE] yolo".to_owned())]);
    assert_eq!(final_message(map), None);
}

#[rstest]
#[case::limit_of_tokens("max_tokens", FaultKind::OutputLimit)]
#[case::limit_of_turns("max_turn_requests", FaultKind::Turns)]
#[case::refused("refusal", FaultKind::Refused)]
#[case::cancelled("cancelled", FaultKind::Aborted)]
#[case::of_the_future("bored", FaultKind::Other)]
fn a_turn_that_stops_for_another_reason_is_a_fault(#[case] reason: &str, #[case] kind: FaultKind) {
    let (mut map, mut heard) = hear(&[says("DONE")]);
    assert!(!map.end(&prompted(json!({"stopReason": reason})), &mut |event| heard.take(event)));
    assert_eq!(heard.report.fault.unwrap().kind, kind);
    assert_eq!(heard.last_word, Some((false, None)));
}

/// Counted by hand: input, cached input and output, independent of the agent's own count.
#[rstest]
#[case::cached_beside_input(json!({"inputTokens": 10, "outputTokens": 5, "cachedReadTokens": 100, "cachedWriteTokens": 20, "totalTokens": 135}),
    Some((130, Some(100), 5)))]
#[case::cached_within_input(json!({"inputTokens": 130, "outputTokens": 5, "cachedReadTokens": 100, "totalTokens": 135}),
    Some((130, Some(100), 5)))]
#[case::thoughts_beside_output(json!({"inputTokens": 10, "outputTokens": 5, "thoughtTokens": 7, "totalTokens": 22}),
    Some((10, None, 12)))]
#[case::thoughts_within_output(json!({"inputTokens": 10, "outputTokens": 12, "thoughtTokens": 7, "totalTokens": 22}),
    Some((10, None, 12)))]
#[case::everything_beside(json!({"inputTokens": 10, "outputTokens": 5, "cachedReadTokens": 100, "thoughtTokens": 7, "totalTokens": 122}),
    Some((110, Some(100), 12)))]
#[case::no_total(json!({"inputTokens": 10, "outputTokens": 5, "cachedReadTokens": 3}), Some((10, Some(3), 5)))]
#[case::zeros(json!({"inputTokens": 0, "outputTokens": 0, "totalTokens": 0}), None)]
#[case::not_said(Value::Null, None)]
#[case::not_a_count(json!({"inputTokens": "many"}), None)]
fn tokens_are_counted(#[case] usage: Value, #[case] counted: Option<(u64, Option<u64>, u64)>) {
    let (mut map, mut heard) = hear(&[]);
    map.end(&prompted(json!({"stopReason": "end_turn", "usage": usage})), &mut |event| heard.take(event));
    let tokens = counted.map(|(input, cached_input, output)| Tokens {
        input: Some(input),
        cached_input,
        output: Some(output),
    });
    assert_eq!(heard.report.tokens.map(|(_, tokens)| tokens), tokens);
}

#[rstest]
#[case::login(Phase::Prompt, -32_000, "Authentication required", None, FaultKind::Login)]
#[case::login_at_the_start(Phase::Setup, -32_000, "Authentication required", None, FaultKind::Login)]
#[case::http_status_as_code(
    Phase::Prompt,
    429,
    "Rate limit exceeded. Try again later.",
    None,
    FaultKind::RateLimit
)]
#[case::a_quota_with_a_status(
    Phase::Prompt,
    429,
    "You have exhausted your daily quota on this model.",
    None,
    FaultKind::Limit
)]
#[case::code_in_data(Phase::Prompt, -32_603, "Internal error", Some(json!({"error": {"type": "overloaded_error"}})), FaultKind::Overloaded)]
#[case::status_in_data(Phase::Prompt, -32_603, "Internal error", Some(json!({"cause": {"statusCode": 401}})), FaultKind::Login)]
#[case::words_in_data(Phase::Prompt, -32_603, "Internal error", Some(json!({"details": "fetch failed"})), FaultKind::Connection)]
#[case::data_as_words(Phase::Prompt, -32_603, "Internal error", Some(json!("Credit balance is too low")), FaultKind::Credit)]
#[case::opencode_at_a_proxy(
    Phase::Prompt,
    -32_603,
    "Internal error: Forbidden: request was blocked by a gateway or proxy.",
    Some(json!({"service": "session", "errorName": "APIError"})),
    FaultKind::Forbidden
)]
#[case::opencode_refused(
    Phase::Prompt,
    -32_603,
    "Internal error: Forbidden: {\"error\": {\"message\": \"Forbidden\"}}",
    None,
    FaultKind::Forbidden
)]
#[case::opencode_without_a_login(Phase::Prompt, -32_603, "Internal error: Unauthorized", None, FaultKind::Login)]
#[case::words_that_begin_alike(Phase::Prompt, -32_603, "Internal error: Forbidden words", None, FaultKind::Other)]
#[case::something(Phase::Prompt, -32_603, "Internal error", None, FaultKind::Other)]
#[case::something_at_the_start(Phase::Setup, -32_602, "Invalid params", None, FaultKind::Setup)]
#[case::cancelled(Phase::Prompt, -32_800, "Request cancelled", None, FaultKind::Aborted)]
fn an_error_means(
    #[case] at: Phase,
    #[case] code: i32,
    #[case] message: &str,
    #[case] data: Option<Value>,
    #[case] kind: FaultKind,
) {
    assert_eq!(faults::of_answer(at, code, message, data.as_ref()).kind, kind);
}

#[test]
fn an_errors_own_words_are_passed_on() {
    let fault =
        faults::of_answer(Phase::Prompt, -32_603, "Internal error", Some(&json!({"details": "it\nmelted"})));
    assert_eq!(fault.message, "Internal error: it melted");
}

#[rstest]
#[case::auto(Permissions::Auto, None, &["--permissions", "auto", "--", "opencode", "acp"])]
#[case::full(Permissions::Full, Some("fast"), &["--permissions", "full", "--model=fast", "--", "opencode", "acp"])]
#[case::agent(Permissions::Agent, None, &["--permissions", "agent", "--", "opencode", "acp"])]
fn the_command_line_is(#[case] permissions: Permissions, #[case] model: Option<&str>, #[case] rest: &[&str]) {
    let mut spec = spec("opencode", &["acp"]);
    spec.agent.permissions = permissions;
    spec.agent.model = model.map(str::to_owned);
    let launch = testing::launch(&Acp, &spec);
    assert_eq!(launch.argv[..2], ["/proc/self/exe", "acp-bridge"]);
    assert_eq!(launch.argv[2..], *rest);
    assert_eq!(launch.stdin.as_deref(), Some(spec.prompt.as_str()));
}

fn listen(stdout: &[u8], exit: Exit, stderr: &str) -> testing::AttemptTrace {
    testing::hear(&Acp, &spec("opencode", &["acp"]), stdout, exit, stderr)
}

#[test]
fn output_printed_by_the_bridge_decodes_to_the_same_events() {
    let said = replay(recording!("acp/claude.acp")).events;
    let line = |event: &AgentEvent| serde_json::to_string(event).unwrap() + "\n";
    let printed: String = said.iter().map(line).collect();
    assert_eq!(listen(printed.as_bytes(), Exit::Code(0), "").events, said);
}

#[test]
fn a_line_that_is_no_event_is_a_notice() {
    let heard = listen(b"by the way\n\n{\"type\":\"melted\"}\n", Exit::Lost, "");
    let notices = ["by the way", "{\"type\":\"melted\"}"];
    assert_eq!(heard.events, notices.map(|line| AgentEvent::Notice(line.to_owned())));
}

#[rstest]
#[case::said_why(br#"{"type":"fault","data":{"kind":"setup","message":"x is no ACP agent"}}"#, Exit::Code(1), "Error: no key\n",
    Some((FaultKind::Setup, "x is no ACP agent: Error: no key")))]
#[case::said_a_known_why(br#"{"type":"fault","data":{"kind":"other","message":"x ended"}}"#, Exit::Code(1), "API key not valid\n",
    Some((FaultKind::Login, "x ended: API key not valid")))]
#[case::stopped(br#"{"type":"fault","data":{"kind":"aborted","message":"interrupted"}}"#, Exit::Code(1), "Error: bye\n",
    Some((FaultKind::Aborted, "interrupted")))]
#[case::killed(b"", Exit::Signal(9), "", Some((FaultKind::Aborted, "the bridge to the agent ended without a result:")))]
#[case::lost(b"", Exit::Lost, "Error: x", None)]
#[case::unseen(b"", Exit::Unseen, "Error: x", None)]
#[case::ended(br#"{"type":"final","data":{"ok":true,"message":null}}"#, Exit::Code(0), "Error: late\n", None)]
fn an_end_means(
    #[case] stdout: &[u8],
    #[case] exit: Exit,
    #[case] stderr: &str,
    #[case] fault: Option<(FaultKind, &str)>,
) {
    let heard = listen(stdout, exit, stderr).report.fault;
    let fault = fault.map(|(kind, message)| Fault { kind, message: message.to_owned(), until: None });
    assert_eq!(heard, fault);
}

proptest! {
    #[test]
    fn no_bytes_are_an_error(stdout: Vec<u8>, code: i32, stderr: String) {
        listen(&stdout, Exit::Code(code), &stderr);
    }

    #[test]
    fn no_damage_to_a_recording_is_an_error(at in 0usize..16_000, byte: u8) {
        for recorded in [recording!("acp/claude.acp"), recording!("acp/opencode.acp")] {
            let mut recorded = recorded.to_vec();
            let at = at % recorded.len();
            recorded[at] = byte;
            let mut map = Map::default();
            for line in recorded.split(|byte| *byte == b'\n') {
                let Ok(line) = serde_json::from_slice::<Value>(line) else { continue };
                map.hear(&line["in"]["params"], &mut |_| {});
            }
        }
    }

    #[test]
    fn no_field_of_another_type_is_an_error(kind in "(agent_message_chunk|tool_call|tool_call_update|plan|usage_update|[a-z]{1,9})",
        field in "(content|messageId|toolCallId|title|kind|status|rawInput|rawOutput|locations|entries|cost|_meta|name)",
        value in prop::sample::select(vec![json!(null), json!(5), json!("x"), json!([1]), json!({"text": 5}), json!([{"content": 7}])])) {
        let (mut map, mut heard) = hear(&[]);
        let mut update = json!({"sessionUpdate": kind, "toolCallId": "t", "content": {"type": "text", "text": "x"}});
        update[field] = value;
        map.hear(&json!({"update": update}), &mut |event| heard.take(event));
    }
}

#[test]
fn gemini_that_sleeps_is_known_to_by_its_standard_error() {
    let mut reader = super::dialect::Reader::default();
    let mut events = Vec::new();
    let notice = b"Attempt 1 failed: Resource has been exhausted (e.g. check quota).";
    reader.stderr_line(notice, &mut |event| events.push(event));
    reader.stderr_line(b"Suggested retry after 290s.. Retrying after 315237ms...", &mut |event| {
        events.push(event)
    });
    let cancelled = serde_json::json!({"type": "fault", "data": {"kind": "aborted", "message": "the agent was interrupted"}});
    reader.line(cancelled.to_string().as_bytes(), &mut |event| events.push(event));
    let mut report = refrain_core::agent::AgentReport::default();
    events.iter().for_each(|event| report.hear(event));
    let fault = report.fault.expect("a fault");
    let after = refrain_core::agent::Until::After(refrain_core::spec::Millis(315_237));
    assert_eq!((fault.kind, fault.until), (FaultKind::RateLimit, Some(after)));
}
