//! The bridge to ACP agents, as the keeper starts it. The protocol itself is tested in the crate that implements it.

use serde_json::{Value, json};
use testkit::{Sandbox, Signal};

use crate::sandbox;

/// An agent that opens a session, answers the prompt by `turn`, and ends when its input is closed.
fn agent(sandbox: &Sandbox, turn: &str) -> String {
    let script = format!(
        r#"ask() {{ read -r line; id=$(printf '%s' "$line" | sed 's/.*"id":\("[^"]*"\|[0-9]*\).*/\1/'); }}
result() {{ printf '{{"jsonrpc":"2.0","id":%s,"result":%s}}\n' "$id" "$1"; }}
update() {{ printf '{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":%s}}}}\n' "$1"; }}
ask; result '{{"protocolVersion":1}}'
ask; result '{{"sessionId":"s"}}'
ask; {turn}
cat >/dev/null"#
    );
    sandbox.agent("acp-agent", &script)
}

const TEXT: &str =
    r#"update '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"All done."}}'"#;
const CALL: &str =
    r#"update '{"sessionUpdate":"tool_call","toolCallId":"t","title":"wait","status":"in_progress"}'"#;

#[test]
fn a_turn_is_printed_as_events() {
    let sandbox = sandbox();
    let turn = format!(
        r#"case $line in *'"text":"Mend it."'*) {TEXT};; esac; result '{{"stopReason":"end_turn"}}'"#
    );
    let agent = agent(&sandbox, &turn);
    let run =
        sandbox.command(&["acp-bridge", "--", &agent, "an argument"]).stdin("Mend it.").run().with_code(0);
    let session = json!({"type": "session", "data": {"id": "s"}});
    let text = json!({"type": "text", "data": {"text": "All done.", "part": true, "by": "agent"}});
    let last = json!({"type": "final", "data": {"ok": true, "message": "All done."}});
    assert_eq!(run.json_lines(), [session, text, last]);
    sandbox.no_process_is_left();
}

#[test]
fn an_interrupt_cancels_the_turn() {
    for signal in [Signal::INT, Signal::TERM] {
        let sandbox = sandbox();
        let cancelled = r#"case $line in *session/cancel*) result '{"stopReason":"cancelled"}';; esac"#;
        let agent = agent(&sandbox, &format!("{CALL}; turn=$id; read -r line; id=$turn; {cancelled}"));
        let session = sandbox.command(&["acp-bridge", "--", &agent]).stdin("Mend it.").spawn();
        session.wait_for_output("tool-call");
        session.signal_group(signal);
        let run = session.wait().with_code(1);
        let events = run.json_lines();
        let last = &events[events.len() - 2..];
        assert_eq!(
            (&last[0]["data"]["kind"], &last[1]["data"]["ok"]),
            (&json!("aborted"), &Value::Bool(false))
        );
        sandbox.no_process_is_left();
    }
}

#[test]
fn a_program_that_is_no_agent_is_named() {
    let sandbox = sandbox();
    let run = sandbox.command(&["acp-bridge", "--", "false"]).stdin("Mend it.").run().with_code(1);
    let message = "false is no ACP agent: it ended (exit status: 1) instead of answering";
    let fault = json!({"type": "fault", "data": {"kind": "setup", "message": message}});
    assert_eq!(run.json_lines(), [fault]);
}
