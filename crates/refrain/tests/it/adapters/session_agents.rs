//! Sessions of the real agents: what their transcripts say of a turn, and what a killed one leaves running.

use serde_json::{Value, json};
use testkit::{Sandbox, Signal, write};

use crate::sandbox;

fn begin(sandbox: &Sandbox, agent: &str, more: &[&str]) {
    let words = ["tick", "begin", "/refrain:loop", "--agent", agent, "--session-id", "s", "--name", "job"];
    sandbox.refrain(&[&words, more].concat()).with_code(0);
    sandbox.refrain(&["tick", "advance", "job"]).with_code(0);
}

/// The session ends its turn; the usage of the loop then.
fn used(sandbox: &Sandbox, agent: &str, more: Value) -> Value {
    let mut input = json!({ "session_id": "s", "cwd": sandbox.project(), "hook_event_name": "Stop" });
    input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    sandbox.command(&["hook", "stop", "--agent", agent]).stdin(input.to_string()).run().with_code(0);
    sandbox.status("job")["usage"].clone()
}

fn lines(lines: &[Value]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

#[test]
fn the_tokens_of_a_turn_come_from_the_transcript_of_its_agent() {
    let codex_total = |input: u64, output: u64| {
        let total = json!({ "input_tokens": input, "cached_input_tokens": 200, "output_tokens": output });
        json!({ "type": "event_msg", "payload": { "type": "token_count", "info": { "total_token_usage": total } } })
    };
    let codex = lines(&[
        json!({ "type": "turn_context", "payload": { "model": "gpt-5.5" } }),
        codex_total(1000, 10),
        json!({ "type": "response_item", "payload": { "type": "message", "role": "user", "content": [] } }),
        json!({ "type": "response_item", "payload": { "type": "function_call", "name": "exec_command" } }),
        codex_total(3600, 67),
    ]);
    let used_by_gemini = json!({ "input": 2600, "output": 50, "cached": 0, "total": 2657 });
    let gemini = lines(&[
        json!({ "id": "1", "type": "user", "content": [{ "text": "go on" }] }),
        json!({ "id": "2", "type": "gemini", "content": "well", "tokens": used_by_gemini, "model": "gemini-3.8-flash" }),
    ]);
    for (agent, transcript) in [("codex", codex), ("gemini", gemini)] {
        let sandbox = sandbox();
        let path = sandbox.root().join("home/t.jsonl");
        write(&path, transcript);
        begin(&sandbox, agent, &["--args", "Mend it. --max-tokens 2k"]);
        let more =
            json!({ "transcript_path": path, "last_assistant_message": "well", "prompt_response": "well" });
        let usage = used(&sandbox, agent, more);
        assert_eq!((&usage["input_tokens"], &usage["output_tokens"]), (&json!(2600), &json!(57)), "{agent}");
        assert_eq!(sandbox.status("job")["status"], "budget-exceeded", "{agent}");
    }

    let sandbox = sandbox();
    begin(&sandbox, "opencode", &["--args", "Mend it. --max-cost 0.005"]);
    let tokens = json!({ "input": 1100, "output": 2, "reasoning": 5, "cache": { "read": 300, "write": 0 } });
    let answers = json!([{ "tokens": tokens, "cost": 0.00381, "model": "m", "worked": true }, { "tokens": tokens, "cost": 0.00381 }]);
    let usage = used(&sandbox, "opencode", json!({ "last_assistant_message": "well", "answers": answers }));
    assert_eq!((&usage["input_tokens"], &usage["output_tokens"]), (&json!(2800), &json!(14)), "{usage}");
    assert_eq!(usage["cost_usd"], json!(0.00762), "{usage}");
    assert_eq!(sandbox.status("job")["status"], "budget-exceeded");
}

#[test]
fn processes_of_a_killed_session_are_ended_before_its_loop_continues() {
    let sandbox = sandbox();
    let program = env!("CARGO_BIN_EXE_refrain");
    let script = format!(
        "export CLAUDECODE=1 CLAUDE_CODE_SESSION_ID=s\n\
         {program} tick begin /refrain:loop --agent claude --session-id s --name job --args 'Mend it.'\n\
         {program} tick advance job\n\
         sh -c 'echo $$ > $NOTES/tool; while :; do sleep 1000; done' &\n\
         wait"
    );
    let session = sandbox.tool(&sandbox.agent("claude", &script), &[]).spawn();
    let tool: i32 = sandbox.wait_for_note("tool").trim().parse().unwrap();
    let refused = sandbox.refrain(&["resume", "job"]).with_code(17);
    assert!(refused.stderr.contains(&format!("(pid {})", session.pid())), "{}", refused.stderr);

    session.signal(Signal::KILL);
    session.wait();
    sandbox.wait_for_status("job", "crashed");
    let result = json!({ "type": "result", "subtype": "success", "is_error": false, "result": "<promise>COMPLETE</promise>", "session_id": "x", "num_turns": 1 });
    let looks = format!(
        "case \"$(cat /proc/{tool}/stat)\" in ''|*' Z '*) ;; *) echo lives > $NOTES/beside;; esac 2> /dev/null"
    );
    let agent = sandbox.agent("claude", &format!("cat > /dev/null; {looks}; echo '{result}'"));
    let bin = std::path::Path::new(&agent).parent().unwrap();
    let usual = sandbox.env().into_iter().find(|(name, _)| *name == "PATH").unwrap().1;
    let path = format!("{}:{usual}", bin.display());
    let run = sandbox.command(&["resume", "job"]).env("PATH", &path).run().with_code(0);
    assert!(run.stdout.contains(" that iteration 1 left behind (sh"), "{}", run.stdout);
    assert!(!sandbox.root().join("notes/beside").exists(), "it works alone");
}

#[test]
fn a_crashed_session_of_an_unknown_process_leaves_no_tool() {
    let sandbox = sandbox();
    // Nothing above is an agent: the process of the session is not known.
    begin(&sandbox, "claude", &["--args", "Mend it."]);
    let script =
        "#!/bin/sh\nCLAUDE_CODE_SESSION_ID=s setsid sh -c 'echo $$ > $NOTES/tool; exec sleep 1000' &\n";
    sandbox.tool(&sandbox.agent("shell", script), &[]).run().with_code(0);
    let tool: i32 = sandbox.wait_for_note("tool").trim().parse().unwrap();
    assert_eq!(sandbox.status("job")["status"], "running");

    sandbox.refrain(&["tick", "finish", "job", "crashed"]).with_code(0);
    let stat = std::fs::read_to_string(format!("/proc/{tool}/stat")).unwrap_or_default();
    assert!(stat.is_empty() || stat.contains(" Z "), "{stat}");
    let swept = |record: &Value| {
        record["event"]["type"] == "attempt.swept" && record["event"]["data"]["names"] == json!(["sleep"])
    };
    assert!(sandbox.journal("job").iter().any(swept), "{:?}", sandbox.journal("job"));
}
