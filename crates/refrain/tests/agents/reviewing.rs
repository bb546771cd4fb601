//! The programs as reviewers: bound to the schema if they support one, and unable to write.

use serde_json::{Value, json};
use testkit::{Agent, Turn, write};

use crate::bench::{Bench, CLAIM};

const PASSES: &str = r#"{"verdict":"pass","findings":[{"requirement":"it says right","verdict":"pass","evidence":"answer.txt:1"}]}"#;

/// The worker makes the work good; its reviewer tries to write, is kept from it, and passes a verdict.
#[track_caller]
fn reviews(agent: Agent, verdict: Turn) {
    let script = [
        Turn::write("answer.txt", "right\n"),
        Turn::say(CLAIM),
        Turn::bash("echo spoiled > spoiled.txt"),
        Turn::write("spoiled.txt", "spoiled\n"),
        verdict,
    ];
    let bench = Bench::new(agent, script);
    write(&bench.sandbox.project().join("spec.md"), "1. answer.txt says right.\n");
    let status = bench.completes(&["--spec-gate", "spec.md"]);
    assert_eq!(
        (&status["verified"], &status["gates"][0]["passed"]),
        (&json!(true), &json!(true)),
        "{status:#}"
    );
    assert_eq!(bench.file("spoiled.txt"), "", "a reviewer only reads: {:#?}", bench.model.turns());
    assert_eq!(status["usage"]["output_tokens"].as_u64(), Some(5 * 50), "its use counts: {status:#}");
    let told: Vec<Value> = bench.model.prompts().into_iter().map(Value::from).collect();
    assert!(told[1].as_str().unwrap_or_default().contains("+right"), "{told:#?}");
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn claude_reviews() {
    let answer = serde_json::from_str(PASSES).expect("it is JSON");
    reviews(Agent::Claude, Turn::tool("StructuredOutput", answer));
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn codex_reviews() {
    reviews(Agent::Codex, Turn::say(PASSES));
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn opencode_reviews() {
    reviews(Agent::OpenCode, Turn::say("PASS: answer.txt:1 says right.\n\nSPEC_PASS"));
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn gemini_reviews() {
    reviews(Agent::Gemini, Turn::say("PASS: answer.txt:1 says right.\n\nSPEC_PASS"));
}
