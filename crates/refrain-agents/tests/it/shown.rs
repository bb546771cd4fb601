//! Events for display: texts, tools, thoughts, and their speaker.

use refrain_core::agent::{AgentEvent, Scope, Speaker, Usd};
use refrain_core::event::Exit;

use crate::play::{play, recording};

const DONE: Exit = Exit::Code(0);

/// The displayed events of a stream, one per line. Counters are omitted.
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
fn a_stream_is_shown_as_the_actions_of_its_agent() {
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
fn tools_and_thoughts_of_every_agent_are_shown() {
    #[rustfmt::skip]
    let cases: [(&str, &str, &[&str]); 2] = [
        // a command with exit code 4 failed
        ("opencode", "reasoning-and-invalid-tool", &["it thinks thinking text", "it uses read: README.md", "it uses bash: echo 1; exit 4", "Some(false): \"1\""]),
        ("gemini", "tools-and-unknown-tool", &["it uses run_shell_command: echo 1; exit 4"]),
    ];
    for (agent, name, expected) in cases {
        let lines = shown(agent, name);
        for line in expected {
            assert!(lines.iter().any(|shown| shown == line), "{line} of {lines:#?}");
        }
    }
}

#[test]
fn agent_text_is_shown_and_the_prompt_is_not() {
    let starting = |start: &str| {
        let lines = shown("gemini", "tools-and-unknown-tool").into_iter();
        lines
            .filter(|line| line.starts_with(start))
            .map(|line| line[start.len()..].to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(starting("it says "), ["pre…", "end…"]);
    let worked: Vec<_> = starting("Some(").into_iter().map(|line| line.starts_with("true")).collect();
    assert_eq!(worked, [true, false, true]);
}

#[test]
fn parts_of_a_text_are_distinguished_from_whole_texts() {
    let parts = shown("gemini", "cut-stream").into_iter().filter(|line| line.starts_with("it says "));
    assert_eq!(parts.map(|line| line.ends_with('…')).collect::<Vec<_>>(), [true, true]);
}

#[test]
fn text_of_a_sub_agent_is_not_the_agents() {
    let lines = shown("claude", "subagent-background-two-results");
    assert!(lines.contains(&"its sub-agent says sub says done".to_owned()), "{lines:?}");
    assert!(!lines.contains(&"final, true: sub says done".to_owned()), "{lines:?}");
}

#[test]
fn a_sub_agent_of_opencode_is_not_the_agent() {
    let stream = r#"{"type":"step_start","sessionID":"s","part":{}}
{"type":"step_finish","sessionID":"s","part":{"reason":"stop"}}
{"type":"text","sessionID":"child","part":{"text":"<promise>DONE</promise>"}}
{"type":"step_finish","sessionID":"child","part":{"reason":"length","tokens":{"input":7},"cost":0.5}}
{"type":"error","sessionID":"child","error":{"name":"APIError","data":{"message":"no"}}}"#;
    let played = play("opencode", stream.as_bytes(), DONE, "");
    assert_eq!(played.last_word(), Some((true, None)));
    assert_eq!(played.report.session.id.as_deref(), Some("s"));
    // the money is spent all the same
    assert_eq!(played.report.cost, Some((Scope::Attempt, Usd(500_000_000))));
    let is_theirs = |event: &AgentEvent| matches!(event, AgentEvent::Text { by: Speaker::SubAgent, .. });
    assert!(played.events.iter().any(is_theirs));
}
