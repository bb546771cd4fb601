//! The main job, on a real program: a repository whose test fails becomes one whose test passes, in three iterations, and
//! the runner is killed with -9 in the middle of the second.

use serde_json::{Value, json};
use testkit::{Agent, ConnectionEnd, Signal, TakenTurn, Turn, write};

use crate::bench::{Bench, CLAIM, attempts, used};

const TEST: &str = "#!/bin/sh\ntest \"$(cat answer.txt)\" = right && echo PASS && exit\necho FAIL\nexit 1\n";

/// What the second attempt of an iteration is sent beside the prompt of the first.
const CUT_OFF: &str = "The previous run of this iteration was cut off; what it changed is in the working tree: see `git \
                       status` and `git diff` first.\n";

#[track_caller]
fn does_the_main_job(agent: Agent) {
    let script = [
        // 1: looks, and leaves it at that.
        Turn::bash("sh test.sh").and_say("I see where things are."),
        Turn::say("The test fails: the answer is wrong. I go on from here."),
        // 2.1: has begun when it is killed.
        Turn::bash("echo begun >> notes.txt"),
        Turn::say("Nobody hears this.").held(),
        // 2.2
        Turn::write("answer.txt", "right\n"),
        Turn::bash("sh test.sh"),
        Turn::say("The answer is right now. What is left is to commit it."),
        // 3
        Turn::bash("git add --all && git commit --quiet --message 'Give the right answer' && echo committed"),
        Turn::say(CLAIM),
    ];
    let answers = script.len();
    let bench = Bench::new(agent, script);
    let project = bench.sandbox.project();
    write(&project.join("test.sh"), TEST);
    write(&project.join("answer.txt"), "wrong\n");
    // The repository's own: Gemini keeps the person's git configuration from its tools.
    bench.sandbox.git(&["config", "user.name", "Test"]);
    bench.sandbox.git(&["config", "user.email", "test@localhost"]);
    bench.sandbox.git(&["add", "--all"]);
    bench.sandbox.git(&["commit", "--quiet", "--message", "Ask"]);
    bench.sandbox.tool("sh", &["test.sh"]).run().with_code(1);

    let session = bench.start(&["--max-iterations", "5"]).spawn();
    bench.model.wait_for(4);
    session.signal_group(Signal::KILL);
    let killed = session.wait().with_code(128 + 9);
    assert!(killed.has_line("[loop job iteration 2/5]"), "{}", killed.stdout);
    bench.sandbox.no_process_is_left();
    let crashed = bench.status();
    assert_eq!((&crashed["status"], &crashed["charged"]), (&json!("crashed"), &json!(1)), "{crashed:#}");
    assert_eq!(bench.file("notes.txt"), "begun\n");

    let status = bench.completed(bench.refrain(&["resume", "job"]).spawn());
    assert_eq!(
        attempts(&status),
        [
            json!([1, 1, true, "ended"]),
            json!([2, 1, false, "lost"]),
            json!([2, 2, true, "ended"]),
            json!([3, 1, true, "claimed"])
        ]
    );
    let turns = bench.asked_exactly(answers);
    let took: Vec<TakenTurn> = turns.iter().map(|turn| turn.took).collect();
    assert_eq!(took, (0..answers).map(TakenTurn::Turn).collect::<Vec<_>>(), "each was asked for once");
    // Not tested for the others: Codex exits with the last event, not with the end of the stream.
    assert_eq!(turns[3].ending, ConnectionEnd::Left, "who was killed heard no answer");
    assert!(turns[1].tool_results[0].contains("FAIL") && turns[6].tool_results[1].contains("PASS"));
    bench.prompts_are_of(&[1, 2, 2, 3]);
    let prompts = bench.model.prompts();
    let (before, after) = prompts[2].split_once(CUT_OFF).expect("it is told that it was cut off");
    assert_eq!(format!("{before}{after}"), prompts[1], "all else of the iteration is the same");

    uses_what_was_answered(&status, agent);
}

/// Each attempt used what the model answered. Of the lost one only the usage in its stream by then is known, so the
/// sum is a lower bound.
#[track_caller]
fn uses_what_was_answered(status: &Value, agent: Agent) {
    let rows = status["iterations"].as_array().expect("a status has its attempts");
    for (row, answers) in [(0, 2), (2, 3), (3, 2)] {
        used(&rows[row], agent, answers);
    }
    let lost = &rows[1]["usage"];
    let (said, at_least) = match agent {
        Agent::Claude | Agent::OpenCode => (Some(1_000), Value::Bool(true)),
        // They report usage only at their end; an unknown usage is not "at least" anything.
        Agent::Codex | Agent::Gemini => (None, Value::Null),
    };
    assert_eq!((lost["input_tokens"].as_u64(), &lost["at_least"]), (said, &at_least), "{status:#}");
    let sum = &status["usage"];
    assert_eq!(sum["input_tokens"].as_u64(), Some(7_000 + said.unwrap_or(0)), "{status:#}");
    assert_eq!(sum["at_least"], true, "{status:#}");
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn claude_main_job() {
    does_the_main_job(Agent::Claude);
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn codex_main_job() {
    does_the_main_job(Agent::Codex);
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn opencode_main_job() {
    does_the_main_job(Agent::OpenCode);
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn gemini_main_job() {
    does_the_main_job(Agent::Gemini);
}
