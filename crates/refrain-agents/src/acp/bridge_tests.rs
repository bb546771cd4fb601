//! Tests of the bridge with small agents: shell scripts that read a line and print what an agent would.

use std::time::Duration;

use refrain_core::agent::{AgentEvent, FaultKind};
use refrain_core::spec::Permissions;
use rstest::rstest;
use tokio::sync::mpsc;

use super::bridge::Bridge;

/// Shared by all scripts: reads a request, and answers it by its id.
const BEGIN: &str = r#"
ask() { read -r line || exit 9; id=$(printf '%s' "$line" | sed 's/.*"id":\("[^"]*"\|[0-9]*\).*/\1/'); }
say() { printf '%s\n' "$1"; }
answer() { say "{\"jsonrpc\":\"2.0\",\"id\":$id,$1}"; }
result() { answer "\"result\":$1"; }
update() { say "{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":\"s1\",\"update\":$1}}"; }
text() { update "{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"$1\"}}"; }
MODES='{"currentModeId":"default","availableModes":[{"id":"default","name":"D"},{"id":"yolo","name":"Y"}]}'
MODELS='{"currentModelId":"slow","availableModels":[{"modelId":"slow","name":"S"},{"modelId":"fast","name":"F"}]}'
initialized() { ask; result '{"protocolVersion":1,"agentInfo":{"name":"sh","version":"7"}}'; }
opened() { initialized; ask; result "{\"sessionId\":\"s1\",\"modes\":$MODES,\"models\":$MODELS}"; }
permission() {
  say '{"jsonrpc":"2.0","id":"q1","method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"t1","title":"rm x","kind":"execute"},"options":[{"optionId":"always","name":"A","kind":"allow_always"},{"optionId":"once","name":"O","kind":"allow_once"},{"optionId":"no","name":"N","kind":"reject_once"}]}}'
  read -r line
  case $line in *'"optionId":"once"'*) text allowed;; *'"optionId":"no"'*) text rejected;; *) text "$(printf '%s' "$line" | tr -d '"')";; esac
}
"#;

/// Bridges to a script; each of the first `stops` tool calls triggers a stop.
fn converse(script: &str, stops: usize, change: impl FnOnce(&mut Bridge)) -> (bool, Vec<AgentEvent>) {
    let args = ["-c".to_owned(), format!("{BEGIN}\n{script}")].into();
    let mut bridge = Bridge::new("sh".to_owned(), args, "/repo".into(), Permissions::Auto);
    change(&mut bridge);
    let (stop, stopped) = mpsc::unbounded_channel();
    let mut events = Vec::new();
    let mut say = |event: AgentEvent| {
        if matches!(event, AgentEvent::ToolCall { .. }) {
            (0..stops).for_each(|_| stop.send(()).unwrap());
        }
        events.push(event);
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let is_ok = runtime.block_on(bridge.converse("Mend \"it\".\n", stopped, &mut say));
    (is_ok, events)
}

fn last_word(events: &[AgentEvent]) -> Option<(bool, Option<&str>)> {
    match events.last()? {
        AgentEvent::Final { ok, message } => Some((*ok, message.as_deref())),
        _ => None,
    }
}

fn fault(events: &[AgentEvent]) -> Option<(FaultKind, &str)> {
    events.iter().rev().find_map(|event| match event {
        AgentEvent::Fault(fault) => Some((fault.kind, fault.message.as_str())),
        _ => None,
    })
}

const END: &str = r#"result '{"stopReason":"end_turn"}'; cat >/dev/null"#;
const CALL: &str = r#"update '{"sessionUpdate":"tool_call","toolCallId":"t1","title":"look","kind":"read","status":"in_progress"}'"#;

#[test]
fn a_turn_is_held_to_its_end() {
    let prompt = r#"case $line in *'"text":"Mend \"it\".\n"'*) text 'All done.';; *) text "$line";; esac"#;
    let (is_ok, events) = converse(&format!("opened; ask; {prompt}; {END}"), 0, |_| {});
    assert_eq!((is_ok, last_word(&events)), (true, Some((true, Some("All done.")))));
    let AgentEvent::Session(session) = &events[0] else { panic!("{events:?}") };
    assert_eq!(
        [&session.id, &session.model, &session.version].map(|said| said.as_deref()),
        [Some("s1"), Some("slow"), Some("7")]
    );
}

#[rstest]
#[case::auto(Permissions::Auto, "allowed")]
#[case::agent(Permissions::Agent, "rejected")]
fn a_question_is_answered(#[case] permissions: Permissions, #[case] answer: &str) {
    let script = format!("opened; ask; turn=$id; permission; id=$turn; {END}");
    let (is_ok, events) = converse(&script, 0, |bridge| bridge.permissions = permissions);
    assert_eq!((is_ok, last_word(&events)), (true, Some((true, Some(answer)))));
    assert!(matches!(&events[1], AgentEvent::ToolCall { about, .. } if about == "rm x"), "{events:?}");
    let notices = events.iter().filter(|event| matches!(event, AgentEvent::Notice(_))).count();
    assert_eq!(notices, usize::from(permissions == Permissions::Agent));
}

#[test]
fn a_judge_may_read_and_nothing_else() {
    // The shared part of the scripts determines the kind of the tool.
    let reads = "permission() { say '{\"jsonrpc\":\"2.0\",\"id\":\"q1\",\"method\":\"session/request_permission\",\"params\":{\"sessionId\":\"s1\",\"toolCall\":{\"toolCallId\":\"t1\",\"title\":\"look\",\"kind\":\"read\"},\"options\":[{\"optionId\":\"once\",\"name\":\"O\",\"kind\":\"allow_once\"},{\"optionId\":\"no\",\"name\":\"N\",\"kind\":\"reject_once\"}]}}'; read -r line; case $line in *'\"once\"'*) text allowed;; *) text rejected;; esac; }";
    let script = format!("opened; ask; turn=$id; permission; id=$turn; {END}");
    for (script, answer) in [(format!("{reads}\n{script}"), "allowed"), (script, "rejected")] {
        let (_, events) = converse(&script, 0, |bridge| bridge.permissions = Permissions::ReadOnly);
        assert_eq!(last_word(&events), Some((true, Some(answer))));
    }
}

#[rstest]
#[case::full(Permissions::Full, "yolo")]
#[case::auto(Permissions::Auto, "prompted")]
#[case::agent(Permissions::Agent, "prompted")]
fn only_full_sets_the_mode(#[case] permissions: Permissions, #[case] said: &str) {
    let script = format!(
        r#"opened; ask
        case $line in *'"session/set_mode"'*'"yolo"'*) result '{{}}'; ask; text yolo;; *) text prompted;; esac; {END}"#
    );
    let (_, events) = converse(&script, 0, |bridge| bridge.permissions = permissions);
    assert_eq!(last_word(&events), Some((true, Some(said))));
}

#[test]
fn the_model_is_set() {
    let script = format!(
        r#"opened; ask; case $line in *'"session/set_model"'*'"fast"'*) result '{{}}'; ask; text fast;; esac; {END}"#
    );
    let (_, events) = converse(&script, 0, |bridge| bridge.model = Some("fast".to_owned()));
    assert_eq!(last_word(&events), Some((true, Some("fast"))));
    let (is_ok, events) = converse(&script, 0, |bridge| bridge.model = Some("best".to_owned()));
    let expected = (FaultKind::Model, "the agent does not offer the model \"best\"");
    assert_eq!((is_ok, fault(&events)), (false, Some(expected)));
}

#[test]
fn a_request_that_was_not_offered_is_refused() {
    let script = format!(
        r#"opened; ask; turn=$id
        say '{{"jsonrpc":"2.0","id":5,"method":"fs/read_text_file","params":{{"path":"/x","sessionId":"s1"}}}}'
        read -r line; case $line in *-32601*) text refused;; esac; id=$turn; {END}"#
    );
    assert_eq!(last_word(&converse(&script, 0, |_| {}).1), Some((true, Some("refused"))));
}

#[test]
fn a_stop_cancels_the_turn() {
    let cancelled =
        r#"read -r line; case $line in *'"session/cancel"'*) result '{"stopReason":"cancelled"}';; esac"#;
    let script = format!("opened; ask; {CALL}; {cancelled}; cat >/dev/null");
    let (is_ok, events) = converse(&script, 1, |_| {});
    assert_eq!((is_ok, last_word(&events)), (false, Some((false, None))));
    assert_eq!(fault(&events).map(|(kind, _)| kind), Some(FaultKind::Aborted));
}

#[test]
fn an_agent_that_ignores_a_stop_is_ended() {
    let script = format!("opened; ask; {CALL}; exec tail -f /dev/null");
    let (is_ok, events) = converse(&script, 2, |_| {});
    assert_eq!((is_ok, last_word(&events)), (false, None));
    assert_eq!(fault(&events).map(|(kind, _)| kind), Some(FaultKind::Aborted));
}

#[test]
fn an_agent_with_endless_output_is_ended() {
    for flood in ["while echo x; do :; done", "while text x; do :; done"] {
        let (is_ok, events) = converse(&format!("opened; ask; {CALL}; {flood}"), 2, |_| {});
        let kind = fault(&events).map(|(kind, _)| kind);
        assert_eq!((is_ok, kind), (false, Some(FaultKind::Aborted)));
    }
}

#[test]
fn an_agent_that_exits_instead_of_cancelling_counts_as_stopped() {
    let (_, events) = converse(&format!("opened; ask; {CALL}; read -r line; exit 0"), 1, |_| {});
    assert_eq!(fault(&events).map(|(kind, _)| kind), Some(FaultKind::Aborted));
}

#[rstest]
#[case::of_the_prompt(
    "opened; ask",
    r#""error":{"code":-32603,"message":"Internal error","data":{"details":"fetch failed"}}"#,
    FaultKind::Connection
)]
#[case::of_the_session(
    "initialized; ask",
    r#""error":{"code":-32000,"message":"Authentication required"}"#,
    FaultKind::Login
)]
#[case::of_the_start("ask", r#""error":{"code":-32601,"message":"Method not found"}"#, FaultKind::Setup)]
#[case::another_version("ask", r#""result":{"protocolVersion":9}"#, FaultKind::Setup)]
#[case::another_answer("initialized; ask", r#""result":{"hello":"you"}"#, FaultKind::Setup)]
fn an_error_ends_it(#[case] before: &str, #[case] answer: &str, #[case] kind: FaultKind) {
    let (is_ok, events) = converse(&format!("{before}; answer '{answer}'; cat >/dev/null"), 0, |_| {});
    assert_eq!((is_ok, last_word(&events)), (false, Some((false, None))));
    assert_eq!(fault(&events).map(|(kind, _)| kind), Some(kind), "{events:?}");
}

#[rstest]
#[case::at_once(
    "exit 3",
    FaultKind::Setup,
    "sh is no ACP agent: it ended (exit status: 3) instead of answering"
)]
#[case::with_words(
    "echo usage: sh; exit 3",
    FaultKind::Setup,
    "sh is no ACP agent: it ended (exit status: 3) instead of answering; it printed: usage: sh"
)]
#[case::in_the_middle(
    "opened; ask; exit 4",
    FaultKind::Other,
    "sh ended (exit status: 4) in the middle of its work"
)]
fn a_program_that_ends_is_named(#[case] script: &str, #[case] kind: FaultKind, #[case] message: &str) {
    let (is_ok, events) = converse(script, 0, |_| {});
    assert_eq!((is_ok, last_word(&events), fault(&events)), (false, None, Some((kind, message))));
}

#[test]
fn garbage_is_no_conversation() {
    let (is_ok, events) = converse("while echo garbage; do :; done", 0, |_| {});
    let message = "sh is no ACP agent: what it prints is no protocol; it printed: garbage";
    assert_eq!((is_ok, fault(&events)), (false, Some((FaultKind::Setup, message))));
}

#[test]
fn a_line_of_garbage_is_tolerated() {
    let script = format!("echo hello; opened; ask; printf '\\377\\n'; text fine; {END}");
    assert_eq!(last_word(&converse(&script, 0, |_| {}).1), Some((true, Some("fine"))));
}

#[test]
fn a_program_that_says_nothing_is_not_waited_for() {
    let (is_ok, events) = converse("cat >/dev/null", 0, |bridge| bridge.patience = Duration::ZERO);
    let message = "sh is no ACP agent: it did not answer initialize within 0ns";
    assert_eq!((is_ok, fault(&events)), (false, Some((FaultKind::Setup, message))));
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let (is_ok, events) = converse("", 0, |bridge| bridge.program = "/nowhere/agent".to_owned());
    assert_eq!((is_ok, last_word(&events)), (false, Some((false, None))));
    let (kind, message) = fault(&events).unwrap();
    assert_eq!(kind, FaultKind::Setup);
    assert!(message.starts_with("/nowhere/agent cannot be started: "), "{message}");
}

#[test]
fn an_agent_that_echoes_its_input_is_a_setup_fault() {
    let (is_ok, events) = converse("exec cat", 0, |_| {});
    assert_eq!((is_ok, fault(&events).map(|(kind, _)| kind)), (false, Some(FaultKind::Setup)), "{events:?}");
}
