//! What the real programs report to the doctor: their version, and whether a user is logged in; with a login, and
//! without one. None of it reaches the model.

use serde_json::Value;
use testkit::{Agent, eventually};

use crate::bench::Bench;

/// The finding of this subject about the agent.
#[track_caller]
fn of<'a>(checkup: &'a Value, subject: &str, agent: Agent) -> &'a Value {
    let findings = checkup["findings"].as_array().expect("there are findings");
    let found =
        findings.iter().find(|finding| finding["subject"] == subject && finding["about"] == agent.name());
    found.unwrap_or_else(|| panic!("no {subject} of {}: {checkup:#}", agent.name()))
}

/// The doctor's findings. On a busy machine a program may take longer to answer than the doctor waits.
#[track_caller]
fn looks(bench: &Bench) -> Value {
    eventually("the program answers in time", || {
        let checkup = bench.refrain(&["doctor", "--json"]).run().json();
        let found = of(&checkup, "login", bench.real.agent)["found"].as_str()?;
        (!found.contains("did not say in time")).then_some(checkup)
    })
}

#[track_caller]
fn tells(agent: Agent, login: &[&str]) {
    let mut bench = Bench::new(agent, []);
    let checkup = looks(&bench);
    assert_eq!(of(&checkup, "agent", agent)["grade"], "ok", "{checkup:#}");
    assert_eq!(of(&checkup, "login", agent)["grade"], "ok", "{checkup:#}");

    // A home without anything in it, and no key.
    bench.real.env.retain(|(name, _)| !login.contains(&name.as_str()));
    let empty = bench.sandbox.root().join("tmp/home");
    let empty = empty.to_str().expect("it is UTF-8").to_owned();
    for name in ["HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"] {
        bench.real = bench.real.with(name, &empty);
    }
    std::fs::create_dir_all(&empty).expect("a folder can be made");
    let checkup = looks(&bench);
    let found = of(&checkup, "login", agent);
    assert!(found["grade"] != "ok" && found["advice"].is_string(), "{checkup:#}");
    let found = found["found"].as_str().unwrap_or_default();
    assert!(["not logged in", "no credentials"].iter().any(|said| found.starts_with(said)), "{checkup:#}");
    assert!(bench.model.turns().is_empty(), "nothing is asked of a model: {:#?}", bench.model.turns());
    bench.sandbox.no_process_is_left();
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn claude_tells_its_login() {
    tells(Agent::Claude, &["ANTHROPIC_API_KEY"]);
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn codex_tells_its_login() {
    tells(Agent::Codex, &["CODEX_HOME", "SCRIPTED_KEY"]);
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn opencode_tells_its_login() {
    tells(Agent::OpenCode, &[]);
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn gemini_tells_its_login() {
    tells(Agent::Gemini, &["GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL"]);
}
