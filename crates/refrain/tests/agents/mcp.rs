//! The loop as a tool: the program's own session calls `refrain mcp`, and the loop continues by itself.

use rstest::rstest;
use serde_json::{Value, json};
use testkit::{Agent, Session, Turn, write};

use crate::bench::{Bench, LONG};

/// Configures our server for the program, as in `docs/reference/mcp.md`; returns the options to add to its command line.
fn told(bench: &Bench) -> Vec<String> {
    let refrain = env!("CARGO_BIN_EXE_refrain");
    let home = bench.sandbox.root().join("home");
    let server = json!({"command": refrain, "args": ["mcp"]});
    match bench.real.agent {
        Agent::Claude => {
            let file = home.join("mcp.json");
            write(&file, json!({"mcpServers": {"refrain": server}}).to_string());
            vec!["--mcp-config".into(), file.display().to_string(), "--strict-mcp-config".into()]
        }
        Agent::Codex => {
            let file = home.join(".codex/config.toml");
            let config = std::fs::read_to_string(&file).expect("it has one");
            let own = format!(
                "[mcp_servers.refrain]\ncommand = \"{refrain}\"\nargs = [\"mcp\"]\n\
                 env_vars = [\"XDG_DATA_HOME\", \"XDG_STATE_HOME\", \"XDG_CONFIG_HOME\", \"NOTES\"]\n"
            );
            write(&file, config + &own);
            Vec::new()
        }
        Agent::Gemini => {
            let file = home.join(".gemini/settings.json");
            merge(&file, &json!({"mcpServers": {"refrain": server}}));
            Vec::new()
        }
        Agent::OpenCode => {
            let file = home.join(".config/opencode/opencode.json");
            let server = json!({"type": "local", "command": [refrain, "mcp"], "enabled": true});
            merge(&file, &json!({"mcp": {"refrain": server}}));
            Vec::new()
        }
    }
}

fn merge(file: &std::path::Path, more: &Value) {
    let text = std::fs::read_to_string(file).expect("it has one");
    let mut settings: Value = serde_json::from_str(&text).expect("it is JSON");
    for (key, value) in more.as_object().expect("an object") {
        settings[key] = value.clone();
    }
    write(file, settings.to_string());
}

/// The program's name for a tool of ours.
fn named(agent: Agent, tool: &str) -> String {
    match agent {
        Agent::Claude => format!("mcp__refrain__{tool}"),
        Agent::Gemini => format!("mcp_refrain_{tool}"),
        Agent::OpenCode => format!("refrain_{tool}"),
        Agent::Codex => tool.to_owned(),
    }
}

/// The program in a session that knows of our server.
fn session(bench: &Bench) -> Session {
    let mut words = bench.real.headless();
    words.extend(told(bench));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let program = bench.real.program.to_str().expect("it is UTF-8");
    bench.sandbox.tool(program, &words).envs(&bench.real.env).stdin("Have it made.").spawn()
}

#[rstest]
#[case::claude(Agent::Claude)]
#[case::gemini(Agent::Gemini)]
#[case::opencode(Agent::OpenCode)]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn a_session_starts_a_loop_and_waits_for_it(#[case] agent: Agent) {
    let call = |tool: &str, asked: Value| Turn::tool(named(agent, tool), asked);
    let start =
        json!({"goal": "Make it.", "command": "sh agent.sh", "name": "job", "gates": ["test -e made"]});
    let script = vec![
        call("loop_start", start),
        call("loop_status", json!({"loop_id": "job", "wait_seconds": 60})),
        call("loop_status", json!({"loop_id": "job", "wait_seconds": 60})),
        call("loop_start", json!({"goal": "x".repeat(10_001)})),
        Turn::say("It is made."),
    ];
    let bench = Bench::new(agent, script);
    // It reports what it finds, and claims in its second iteration.
    let script =
        "ls\ntest $REFRAIN_ITERATION = 2 || exit 0\necho yes > made\necho '<promise>COMPLETE</promise>'";
    write(&bench.sandbox.project().join("agent.sh"), script);
    let run = session(&bench).wait_at_most(LONG).with_code(0);
    let turns = bench.asked_exactly(5);
    let results = &turns[4].tool_results;
    assert!(results[0].contains("\"started\":true"), "{results:#?}\n{}", run.stdout);
    // Gemini reports errors to its model in another shape.
    assert!(agent == Agent::Gemini || results[3].contains("goal of 10001 characters"), "{results:#?}");
    let status = bench.refrain(&["status", "job", "--json"]).run().with_code(0).json();
    assert_eq!((&status["status"], &status["verified"]), (&json!("completed"), &json!(true)), "{status:#}");
    assert_eq!(status["kind"], "process", "a loop like any other");
    bench.sandbox.no_process_is_left();
}

/// Codex has its model search for tools of servers in a way of its own, which no script can; it lists their tools at
/// once.
#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn codex_finds_the_server() {
    let asked = json!({"server": "refrain"});
    let script = vec![Turn::tool("list_mcp_resource_templates", asked), Turn::say("There it is.")];
    let bench = Bench::new(Agent::Codex, script);
    session(&bench).wait_at_most(LONG).with_code(0);
    let turns = bench.asked_exactly(2);
    let found = &turns[1].tool_results[0];
    assert!(found.contains("refrain://{project}/loops/{id}/state"), "{found}");
    bench.sandbox.no_process_is_left();
}
