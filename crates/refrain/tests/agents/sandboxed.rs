//! A real program in the sandbox of its loop: it asks for nothing, and its own sandbox is off.

mod logins;
mod provider;

use serde_json::json;
use testkit::{Agent, Turn, write};

use crate::bench::{Bench, CLAIM, attempts, used};

const WORK: &str = "cp work.txt copied.txt && git add --all && git commit --quiet --message Work && \
                    ! touch \"$HOME/outside\" && echo worked";

/// The words of a loop in a sandbox that reaches the model.
fn sandboxed(bench: &Bench) -> Vec<String> {
    let url = bench.model.url();
    let port = url.rsplit(':').next().expect("the model has a port").to_owned();
    // What no agent gets by itself: the key of a custom provider, and the registry that answers at once.
    let given = ["SCRIPTED_KEY", "npm_config_registry"];
    let given = bench.real.env.iter().filter(|(name, _)| given.contains(&name.as_str()));
    let given = given.flat_map(|(name, value)| ["--env".to_owned(), format!("{name}={value}")]);
    ["--sandbox".to_owned(), "--sandbox-localhost".to_owned(), port].into_iter().chain(given).collect()
}

/// An edit, a command and a commit, and a gate; with the default permissions.
#[track_caller]
fn works_in_a_sandbox(agent: Agent) {
    let script = [Turn::write("work.txt", "by the agent\n"), Turn::bash(WORK), Turn::say(CLAIM)];
    let bench = Bench::outside_of_tmp(agent, script);
    bench.sandbox.git(&["config", "user.name", "Test"]);
    bench.sandbox.git(&["config", "user.email", "test@localhost"]);
    // Its servers are programs that later sessions run.
    let config = bench.sandbox.root().join("home/.claude.json");
    let before = r#"{"numStartups":7,"mcpServers":{}}"#;
    write(&config, before);
    let words = sandboxed(&bench);
    let gate = ["--gate", "copied=grep -q agent copied.txt && test -z \"$ANTHROPIC_API_KEY$GEMINI_API_KEY\""];
    let words: Vec<&str> = words.iter().map(String::as_str).chain(gate).collect();
    let status = bench.completed(bench.start_with("auto", &words).spawn());
    assert_eq!(attempts(&status), [json!([1, 1, true, "claimed"])]);
    assert_eq!(status["verified"], true, "{status:#}");
    let turns = bench.asked_exactly(3);
    assert!(turns[2].tool_results.iter().any(|result| result.contains("worked")), "{turns:#?}");
    assert_eq!(bench.sandbox.git(&["log", "-1", "--format=%s"]).trim(), "Work");
    assert!(!bench.sandbox.root().join("home/outside").exists());
    assert_eq!(std::fs::read_to_string(&config).expect("it is kept"), before);
    used(&status, agent, 3);
    let said = bench.sandbox.kept_text("job", "0001", "stderr.log");
    assert!(!said.contains("refrain: sandbox:"), "nothing of its own home is put aside or removed: {said}");
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn claude_works_in_a_sandbox() {
    works_in_a_sandbox(Agent::Claude);
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn codex_works_in_a_sandbox() {
    works_in_a_sandbox(Agent::Codex);
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn opencode_works_in_a_sandbox() {
    works_in_a_sandbox(Agent::OpenCode);
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn gemini_works_in_a_sandbox() {
    works_in_a_sandbox(Agent::Gemini);
}
