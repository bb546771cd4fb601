//! Memories of loops that need a scripted model or a loop at work. All else is in `scenarios/memory`.

mod judge;
mod meaning;

use std::fs;

use serde_json::Value;
use testkit::{Run, Sandbox};

use crate::{CLAIM, sandbox};

const SECTION: &str = "RECALLED MEMORIES:";

fn add(sandbox: &Sandbox, text: &str) -> String {
    sandbox.refrain(&["memory", "add", text]).with_code(0).stdout.trim().to_owned()
}

fn list(sandbox: &Sandbox) -> Vec<Value> {
    sandbox.refrain(&["memory", "list", "--json"]).with_code(0).json().as_array().unwrap().clone()
}

fn of_kind(sandbox: &Sandbox, kind: &str) -> Vec<String> {
    let all = list(sandbox).into_iter().filter(|it| it["kind"] == kind);
    all.map(|it| it["text"].as_str().unwrap().to_owned()).collect()
}

/// Runs a loop that remembers to its end.
fn run(sandbox: &Sandbox, name: &str, script: &str, prompt: &str) -> Run {
    let agent = sandbox.agent(name, script);
    sandbox.refrain(&[
        "start",
        "--command",
        &agent,
        "--name",
        name,
        "--quiet",
        "-m",
        "2",
        "--memory",
        "on",
        prompt,
    ])
}

fn prompt(sandbox: &Sandbox, id: &str, attempt: &str) -> String {
    sandbox.kept_text(id, attempt, "prompt.md")
}

/// The lines of the section that are quoted.
fn told(prompt: &str) -> Vec<&str> {
    prompt.lines().filter(|line| line.starts_with("> ")).collect()
}

fn configure(sandbox: &Sandbox, text: &str) {
    let config = sandbox.root().join("home/config/refrain");
    fs::create_dir_all(&config).unwrap();
    testkit::write(&config.join("config.toml"), text);
}

#[test]
fn steering_and_proven_work_are_remembered() {
    let sandbox = sandbox();
    let gate = sandbox.gate("go");
    let agent = sandbox.agent("slow", &format!("echo up > $NOTES/up; read -r _ < $GATES/go\n{CLAIM}"));
    let words = ["start", "--command", &agent, "--name", "slow", "--detach", "--memory", "on"];
    sandbox.refrain(&[&words[..], &["--gate", "check=true", "Mend the parser."]].concat()).with_code(0);
    sandbox.wait_for_note("up");
    sandbox.refrain(&["steer", "slow", "Use pnpm instead of npm. Look at line 7."]).with_code(0);
    gate.let_one_pass();
    sandbox.wait_for_status("slow", "completed");
    let proven = testkit::eventually("it is remembered", || of_kind(&sandbox, "procedure").pop());
    assert!(proven.contains("was proven done by check: true"), "{proven}");
    assert_eq!(of_kind(&sandbox, "fact"), ["Use pnpm instead of npm."]);
    sandbox.no_process_is_left();
}
