//! Ways of working (`research`, `implement`, those of the configuration) and until when a loop continues: seed 002's
//! command lines, and what agents say of their iterations in one line.

use rstest::rstest;
use serde_json::json;
use testkit::Sandbox;

use crate::{CLAIM, sandbox};

/// The pinned part of the loop's prompt, in all iterations.
fn pinned(sandbox: &Sandbox, id: &str) -> String {
    sandbox.journal(id)[0]["event"]["data"]["spec"]["prompt"].as_str().unwrap().to_owned()
}

#[test]
fn an_endless_loop_waits_when_there_is_nothing_to_do() {
    let sandbox = sandbox();
    let agent = sandbox.agent("claims", "echo COMPLETE");
    let start = ["start", "--command", &agent, "--prompt", "p", "--name", "job", "--infinite", "--detach"];
    sandbox.refrain(&start).with_code(0);
    let status = sandbox.wait_for_status("job", "waiting");
    assert_eq!(status["reason"], "found nothing to do, and looks again later");
    assert_eq!((&status["charged"], &status["max_iterations"]), (&json!(1), &json!(null)));
    sandbox.refrain(&["cancel", "job"]).with_code(0);
    sandbox.wait_for_status("job", "cancelled");
    sandbox.no_process_is_left();
}

/// Seed 002's command lines, with `refrain` in place of its program's names.
#[rstest]
#[case("research", "research", 1)]
#[case("research 10", "research", 1)]
#[case("implement 20", "implement", 1)]
#[case("implement --exact 3", "implement", 3)]
#[case("loop research", "research", 1)]
#[case("loop research --loop", "research", 1)]
#[case("loop implement --iterations 20", "implement", 1)]
#[case("loop implement --commit-only", "implement", 1)]
#[case("start --mode implement --git-workflow commit", "implement", 1)]
fn a_mode_is_a_verb(#[case] words: &str, #[case] mode: &str, #[case] iterations: u32) {
    let sandbox = sandbox();
    let agent = sandbox.agent("claims", &format!("echo >> made\n{CLAIM}"));
    let words = words.split(' ').chain(["--command", &agent, "--name", "job"]);
    sandbox.refrain(&words.collect::<Vec<_>>()).with_code(0);
    let prompt = pinned(&sandbox, "job");
    assert!(prompt.starts_with(refrain_core::prompt::mode::built_in(mode).unwrap().trim_end()), "{prompt}");
    assert!(prompt.contains("No user reads your messages") && !prompt.contains("## Task"), "{prompt}");
    let status = sandbox.status("job");
    assert_eq!((&status["status"], &status["charged"]), (&json!("completed"), &json!(iterations)));
    assert_eq!(status["mode"], mode);
    let shown = sandbox.refrain(&["status", "job"]).with_code(0).stdout;
    assert!(shown.lines().any(|line| line.split_whitespace().eq(["goal", mode])), "{shown}");
    let told = sandbox.kept_text("job", "0001", "prompt.md");
    assert!(
        told.contains("<promise>COMPLETE</promise> alone on its line"),
        "it is told how to claim: {told}"
    );
}

#[test]
fn a_session_has_modes_and_a_summary_too() {
    let sandbox = sandbox();
    let tick = |words: &[&str]| sandbox.refrain(&[&["tick"], words].concat()).with_code(0).stdout;
    let begin = ["begin", "/refrain:implement", "--mode", "implement", "--name", "job", "--args"];
    tick(&[&begin[..], &["Build it. --max-iterations 3"]].concat());
    let prompt = pinned(&sandbox, "job");
    assert!(prompt.starts_with("You build") && prompt.ends_with("## Task\n\nBuild it.\n"), "{prompt}");
    assert!(tick(&["advance", "job"]).contains("You build"));
    tick(&["finish", "job", "completed", "<iteration-summary>built it</iteration-summary>"]);
    assert_eq!(sandbox.status("job")["iterations"][0]["summary"], "built it");
    for (name, args, most) in [("number", "4", 4), ("option", "--iterations 5", 5), ("bare", "", 20)] {
        tick(&["begin", "/refrain:research", "--mode", "research", "--name", name, "--args", args]);
        assert_eq!(sandbox.status(name)["max_iterations"], most, "{args}");
        assert!(!pinned(&sandbox, name).contains("## Task"), "{args}");
    }
    assert!(!pinned(&sandbox, "bare").contains("## Task"));
}
