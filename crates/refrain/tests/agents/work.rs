//! Loops in which nothing goes wrong.

use serde_json::json;
use testkit::{Agent, Turn};

use crate::bench::{Bench, CLAIM, attempts, used};

#[track_caller]
fn finishes_in_one(agent: Agent) {
    let bench = Bench::new(agent, [Turn::say(CLAIM)]);
    let status = bench.completes(&[]);
    assert_eq!(attempts(&status), [json!([1, 1, true, "claimed"])]);
    bench.asked_exactly(1);
    bench.prompts_are_of(&[1]);
    used(&status, agent, 1);
}

/// A tool in each iteration; the third claims.
#[track_caller]
fn works_in_three_iterations(agent: Agent) {
    let script = [
        Turn::bash("echo first >> work.txt"),
        Turn::say("The first part is done."),
        Turn::bash("cat work.txt && echo second >> work.txt").and_say("I look at what is there."),
        Turn::say("The second part is done."),
        Turn::write("done.txt", "third\n"),
        Turn::say(CLAIM),
    ];
    let bench = Bench::new(agent, script);
    let status = bench.completes(&[]);
    assert_eq!(
        attempts(&status),
        [json!([1, 1, true, "ended"]), json!([2, 1, true, "ended"]), json!([3, 1, true, "claimed"])]
    );
    assert_eq!(bench.file("work.txt") + &bench.file("done.txt"), "first\nsecond\nthird\n");
    let turns = bench.asked_exactly(6);
    assert!(turns[3].tool_results[0].contains("first"), "{turns:#?}");
    bench.prompts_are_of(&[1, 2, 3]);
    used(&status, agent, 6);
}

/// A file and a command, with only the default permissions.
#[track_caller]
fn works_with_few_permissions(agent: Agent) {
    let script = [
        Turn::write("work.txt", "by the agent\n"),
        Turn::bash("cp work.txt copied.txt"),
        Turn::bash("sh -c 'cat copied.txt | tr a-z A-Z > shouted.txt'"),
        Turn::say(CLAIM),
    ];
    let bench = Bench::new(agent, script);
    bench.completed(bench.start_with("auto", &[]).spawn());
    assert_eq!(bench.file("shouted.txt"), "BY THE AGENT\n", "{:#?}", bench.model.turns());
    bench.asked_exactly(4);
}

/// To speak of the promise is not to make it.
#[track_caller]
fn claims_too_early(agent: Agent) {
    let early = "One case is left. I will say <promise>COMPLETE</promise> when it passes.";
    let quoted = "You asked for this:\n\n```\n<promise>COMPLETE</promise>\n```\n\nNot yet.";
    let bench = Bench::new(agent, [Turn::say(early), Turn::say(quoted), Turn::say(CLAIM)]);
    let status = bench.completes(&[]);
    assert_eq!(
        attempts(&status),
        [json!([1, 1, true, "ended"]), json!([2, 1, true, "ended"]), json!([3, 1, true, "claimed"])]
    );
    bench.asked_exactly(3);
    bench.prompts_are_of(&[1, 2, 3]);
    used(&status, agent, 3);
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn claude_finishes_in_one() {
    finishes_in_one(Agent::Claude);
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn codex_finishes_in_one() {
    finishes_in_one(Agent::Codex);
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn opencode_finishes_in_one() {
    finishes_in_one(Agent::OpenCode);
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn gemini_finishes_in_one() {
    finishes_in_one(Agent::Gemini);
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn claude_works_in_three_iterations() {
    works_in_three_iterations(Agent::Claude);
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn codex_works_in_three_iterations() {
    works_in_three_iterations(Agent::Codex);
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn opencode_works_in_three_iterations() {
    works_in_three_iterations(Agent::OpenCode);
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn gemini_works_in_three_iterations() {
    works_in_three_iterations(Agent::Gemini);
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn claude_claims_too_early() {
    claims_too_early(Agent::Claude);
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn codex_claims_too_early() {
    claims_too_early(Agent::Codex);
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn opencode_claims_too_early() {
    claims_too_early(Agent::OpenCode);
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn gemini_claims_too_early() {
    claims_too_early(Agent::Gemini);
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn claude_works_with_few_permissions() {
    works_with_few_permissions(Agent::Claude);
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn codex_works_with_few_permissions() {
    works_with_few_permissions(Agent::Codex);
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn opencode_works_with_few_permissions() {
    works_with_few_permissions(Agent::OpenCode);
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn gemini_works_with_few_permissions() {
    works_with_few_permissions(Agent::Gemini);
}
