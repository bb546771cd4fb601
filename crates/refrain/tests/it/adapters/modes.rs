//! Ways of working (`research`, `implement`, those of the configuration) and until when a loop continues: seed 002's
//! command lines, and what agents say of their iterations in one line.

use rstest::rstest;
use serde_json::{Value, json};
use testkit::Sandbox;

use crate::{CLAIM, sandbox};

/// The pinned part of the loop's prompt, in all iterations.
fn pinned(sandbox: &Sandbox, id: &str) -> String {
    sandbox.journal(id)[0]["event"]["data"]["spec"]["prompt"].as_str().unwrap().to_owned()
}

/// Prints a one-line summary, and more that looks like one.
const SAYS: &str = "echo '<iteration-summary>an earlier one</iteration-summary>'
printf '<iteration-summary>found %s\\033[2J bugs\\n in all</iteration-summary>\\n' \"$REFRAIN_ITERATION\"
printf '\\n    <iteration-summary>in code</iteration-summary>\\n'";

#[test]
fn exactly_so_many_iterations_are_done_whatever_is_claimed() {
    let sandbox = sandbox();
    let agent = sandbox.agent("claims", "echo COMPLETE");
    let start = ["start", "--command", &agent, "--prompt", "p", "--name", "job", "--exact", "3"];
    sandbox.refrain(&start).with_code(0);
    let status = sandbox.status("job");
    assert_eq!((&status["status"], &status["charged"]), (&json!("completed"), &json!(3)));
}

/// The requested number is done: exit code 0 without a claim, unverified unless the required gates passed.
#[rstest]
#[case::without_a_gate(&[], json!(null), "as no gate checks it")]
#[case::its_gate_passes(&["--gate", "made=test -e made"], json!(true), "every required gate passed")]
#[case::its_gate_fails(&["--gate", "never=false"], json!(false), "unverified, as gate never fails")]
#[case::a_gate_for_claims(&["--gate", "made=test -e made", "--gate-when", "claim"], json!(true), "passed")]
#[case::it_commits(&["--gate", "made=test -e made", "--auto-commit", "--worktree"], json!(true), "passed")]
fn a_loop_of_exactly_so_many_iterations_needs_no_claim(
    #[case] more: &[&str],
    #[case] verified: Value,
    #[case] reason: &str,
) {
    let sandbox = sandbox();
    let agent = sandbox.agent("works", "echo \"$REFRAIN_ITERATION\" >> made");
    let start = ["start", "--command", &agent, "--prompt", "p", "--name", "job", "--exact", "2"];
    sandbox.refrain(&[&start, more].concat()).with_code(0);
    let status = sandbox.status("job");
    assert_eq!((&status["status"], &status["charged"]), (&json!("completed"), &json!(2)));
    assert_eq!((&status["verified"], &status["claim"]), (&verified, &json!(null)), "{status}");
    assert!(status["reason"].as_str().unwrap().contains(reason), "{status}");
    assert!(
        sandbox.refrain(&["report", "job"]).with_code(0).stdout.contains("iterations that were asked for")
    );
    let over = sandbox.refrain(&["resume", "job", "--max-iterations", "3"]).with_code(17);
    assert!(over.stderr.contains("completed"), "{}", over.stderr);
}

#[test]
fn iterations_are_a_maximum_and_a_claim_ends_earlier() {
    let sandbox = sandbox();
    let agent = sandbox.agent("claims", &format!("[ $REFRAIN_ITERATION -lt 2 ] || {CLAIM}"));
    for (name, words) in [
        ("a", ["implement", "--iterations", "4"].as_slice()),
        ("b", &["implement", "4"]),
        ("c", &["start", "--iterations=4", "p"]),
        ("d", &["research", "--max-iterations", "4"]),
    ] {
        sandbox.refrain(&[words, &["--command", &agent, "--name", name]].concat()).with_code(0);
        let status = sandbox.status(name);
        assert_eq!((&status["charged"], &status["max_iterations"]), (&json!(2), &json!(4)), "{words:?}");
    }
    let never = sandbox.agent("never", "echo not yet");
    sandbox.refrain(&["implement", "2", "--command", &never, "--name", "never"]).with_code(10);
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
fn the_topic_of_a_mode_and_the_directions_follow_its_prompt() {
    let sandbox = sandbox();
    let agent = sandbox.agent("claims", CLAIM);
    testkit::write(&sandbox.project().join("task.md"), "Build the parser.\n");
    testkit::write(
        &sandbox.project().join("refrain.toml"),
        "[start]\nprompt-name = \"usual\"\n[prompts.usual]\ntext = \"As usual.\"\n",
    );
    sandbox.trust();
    let run = |id: &str, words: &[&str]| {
        let all = [words, &["--command", &agent, "--name", id, "--quiet"]].concat();
        sandbox.refrain(&all).with_code(0);
        pinned(&sandbox, id)
    };
    let ends = |prompt: &str, end: &str| assert!(prompt.ends_with(end), "{prompt}");
    let task = run("file", &["implement", "--prompt-file", "task.md", "--directions", "- Slowly.\n"]);
    ends(&task, "\n\n## Task\n\nBuild the parser.\n\n## User Directions\n\n- Slowly.\n");
    ends(&run("words", &["research", "Which", "parser?"]), "\n\n## Task\n\nWhich parser?\n");
    ends(&run("number", &["research", "--prompt", "10"]), "\n\n## Task\n\n10\n");
    assert!(!run("alone", &["research"]).contains("As usual."), "a mode has work of its own");
    assert_eq!(
        run("bare", &["start", "--directions", "Slowly."]),
        "As usual.\n\n## User Directions\n\nSlowly.\n"
    );
}

#[test]
fn the_configuration_has_modes_of_its_own_and_in_place_of_built_in_ones() {
    let sandbox = sandbox();
    let agent = sandbox.agent("claims", CLAIM);
    testkit::write(&sandbox.project().join("polish.md"), "Polish one thing.\n");
    testkit::write(
        &sandbox.project().join("refrain.toml"),
        "[modes.polish]\nfile = \"polish.md\"\n[modes.research]\ntext = \"Look it up.\"\n[modes.empty]\ntext = \" \"\n",
    );
    sandbox.trust();
    let start = |words: &[&str]| sandbox.refrain(&[words, &["--command", &agent, "--quiet"]].concat());
    start(&["start", "--mode", "polish", "--name", "a"]).with_code(0);
    assert!(pinned(&sandbox, "a").starts_with("Polish one thing.\n\nIn every iteration:\n"));
    start(&["research", "--name", "b"]).with_code(0);
    assert!(pinned(&sandbox, "b").starts_with("Look it up.\n\nIn every iteration:\n"));

    let before = sandbox.snapshot();
    for (words, said) in [
        (
            ["--mode", "polsh"].as_slice(),
            "--mode polsh: there is no such mode; accepted: empty, implement, polish, research; did you mean polish?",
        ),
        (
            &["--mode", "zzz"],
            "--mode zzz: there is no such mode; accepted: empty, implement, polish, research\n",
        ),
        (&["--mode", "empty"], "the prompt is empty"),
        (&["--mode", ""], "a value is required for '--mode <NAME>'"),
        (&["--mode", "polish", " "], "the prompt is empty"),
        (&["--mode", "polish", "--scud-tag", "x"], "--mode: not with a plan"),
        (&["--scud-tag", "x", "--directions", "y"], "--directions: not with a plan"),
    ] {
        let refused = start(&[&["start"], words].concat()).with_code(2);
        assert!(refused.stderr.contains(said), "{words:?}: {}", refused.stderr);
    }
    for (words, said) in [
        (["research", "0"].as_slice(), "0: accepted: whole numbers from 1 to 200"),
        (&["research", "201"], "201: accepted: whole numbers from 1 to 200"),
        (&["implement", "9", "--infinite"], "--infinite: not with the number 9"),
        (&["implement", "9", "--exact", "3"], "--exact: not with the number 9"),
        (&["implement", "9", "-m", "3"], "--max-iterations: not with the number 9"),
    ] {
        let refused = start(words).with_code(2);
        assert!(refused.stderr.contains(said), "{words:?}: {}", refused.stderr);
    }
    assert_eq!(sandbox.snapshot(), before, "nothing was touched");
}

#[test]
fn the_one_line_summary_of_each_iteration_is_shown_and_collected() {
    let sandbox = sandbox();
    let agent = sandbox.agent("says", SAYS);
    let run = sandbox.refrain(&["research", "2", "--command", &agent, "--name", "job"]).with_code(10);
    let said = ["found 1 bugs in all", "found 2 bugs in all"];
    for (n, said) in (1..).zip(said) {
        assert!(run.stdout.contains(&format!("no claim; it says: {said}\n")), "{}", run.stdout);
        assert!(run.has_line(&format!("  {n}    {said}")), "all of them at the end: {}", run.stdout);
    }
    let status = sandbox.status("job");
    let summaries: Vec<&Value> =
        status["iterations"].as_array().unwrap().iter().map(|iteration| &iteration["summary"]).collect();
    assert_eq!(summaries, said);
    for words in [["status", "job"], ["report", "job"], ["watch", "job"]] {
        let shown = sandbox.refrain(&words).stdout;
        assert!(said.iter().all(|said| shown.contains(said)), "{words:?}: {shown}");
    }
    let ended =
        sandbox.journal("job").into_iter().find(|it| it["event"]["type"] == "attempt.finished").unwrap();
    assert_eq!(ended["event"]["data"]["summary"], said[0]);

    // An agent that says nothing has none, even if the prompt has such a line.
    let silent = sandbox.agent("echoes", "printf '%s\\n' \"$1\"");
    sandbox.refrain(&["research", "1", "--command", &silent, "--name", "other", "--quiet"]).with_code(10);
    assert_eq!(sandbox.status("other")["iterations"][0]["summary"], json!(null));
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

#[test]
fn a_number_before_a_task_is_not_taken_for_a_part_of_it() {
    let sandbox = sandbox();
    let agent = sandbox.agent("never", "touch \"$NOTES/ran\"");
    let run = sandbox.refrain(&["research", "2", "Which?", "--command", &agent]).with_code(2);
    assert!(run.stderr.contains("--iterations 2 sets the maximum of iterations beside a task"), "{run:?}");
    assert_eq!(sandbox.note("ran"), "");
}
