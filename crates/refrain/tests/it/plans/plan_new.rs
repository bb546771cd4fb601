//! `refrain plan new`: an agent writes a plan, and none of its tasks is run.

use std::fs;

use testkit::{Sandbox, write};

use crate::sandbox;

const PLAN: &str = "# Two scripts\n\n## Task 1: Write a.sh\n\nVerify: sh a.sh\n\n## Task 2: Write b.sh\n\nDepends on: Task 1\n\nVerify: sh b.sh\n";

/// An agent whose answers are these files of the notes, one after the other; it keeps what it was asked.
fn agent(sandbox: &Sandbox, answers: &[&str]) -> String {
    for (at, answer) in answers.iter().enumerate() {
        write(&sandbox.root().join("notes").join(format!("answer-{}", at + 1)), answer);
    }
    let script = "for prompt; do :; done
        n=$(( $(cat $NOTES/count 2>/dev/null || echo 0) + 1 )); echo $n > $NOTES/count
        printf '%s' \"$prompt\" > $NOTES/asked-$n; ls > $NOTES/saw; echo x > left
        cat $NOTES/answer-$n";
    sandbox.agent("planner", script)
}

#[test]
fn an_agent_writes_a_plan_and_nothing_is_run() {
    let sandbox = sandbox();
    let agent = agent(&sandbox, &[&format!("I looked.\n\nPLAN:\n```markdown\n{PLAN}```\n")]);
    // It is in no commit, so the checkout that it gets does not have it.
    fs::copy(&agent, sandbox.project().join("planner.sh")).unwrap();
    let new = ["plan", "new", "--command", "./planner.sh", "Write", "two scripts"];
    let run = sandbox.refrain(&new).with_code(0);
    assert_eq!(fs::read_to_string(sandbox.project().join("PLAN.md")).unwrap(), PLAN);
    assert!(run.stdout.contains("2 tasks, 2 of them to do, in 2 waves"), "{}", run.stdout);
    assert!(
        run.stdout.contains(
            "next: edit PLAN.md, then refrain trust --plan PLAN.md, then refrain plan run --plan PLAN.md\n"
        ),
        "{}",
        run.stdout
    );
    assert!(
        sandbox.note("asked-1").contains("## Idea\n\nWrite two scripts\n"),
        "{}",
        sandbox.note("asked-1")
    );
    assert!(sandbox.note("saw").contains("README"), "it sees the repository: {}", sandbox.note("saw"));
    assert!(!sandbox.project().join("left").exists(), "in a checkout of its own");
    assert_eq!(sandbox.refrain(&["list", "--json"]).with_code(0).json(), serde_json::json!([]));
    // A file that is there stays, and no agent is asked.
    let before = sandbox.snapshot();
    for (file, idea) in
        [("PLAN.md", "Write it."), ("plan.txt", "Write it."), ("other.md", " "), ("nope/P.md", "Write it.")]
    {
        sandbox.refrain(&["plan", "new", "--command", &agent, "--plan", file, idea]).with_code(2);
    }
    assert_eq!((sandbox.snapshot(), sandbox.note("count")), (before, "1\n".to_owned()));
}

#[test]
fn a_plan_that_cannot_be_used_is_written_once_more() {
    let sandbox = sandbox();
    let circle = PLAN.replace("## Task 2", "Depends on: Task 2\n\n## Task 2");
    let answers = [format!("PLAN:\n{circle}"), format!("PLAN:\n{PLAN}"), format!("PLAN:\n{circle}")];
    let answers: Vec<&str> = answers.iter().map(String::as_str).collect();
    let planner = agent(&sandbox, &answers);
    let run = sandbox.refrain(&["plan", "new", "--command", &planner, "Write it."]).with_code(0);
    assert!(run.stderr.contains("the plan cannot be used, and is written once more: "), "{}", run.stderr);
    let asked = sandbox.note("asked-2");
    assert!(
        asked.contains("## Your last plan\n\nIt cannot be used:\n\n- ") && asked.contains("cycle"),
        "{asked}"
    );
    assert_eq!(fs::read_to_string(sandbox.project().join("PLAN.md")).unwrap(), PLAN);
    // Then it is the user's to correct.
    write(&sandbox.root().join("notes/answer-4"), format!("PLAN:\n{circle}"));
    let run =
        sandbox.refrain(&["plan", "new", "--command", &planner, "--plan", "b.md", "Write it."]).with_code(1);
    assert!(run.stdout.contains("cycle") && run.stdout.contains("next: correct b.md"), "{}", run.stdout);
    assert_eq!(fs::read_to_string(sandbox.project().join("b.md")).unwrap(), circle);
    let again = ["plan", "new", "--command", &planner, "--plan", "b.md", "Write it."];
    let refused = sandbox.refrain(&again).with_code(2).stderr;
    assert!(
        refused.contains("b.md is there already; accepted: a new file, by --plan FILE")
            && refused.contains("refrain plan check --plan b.md looks at it"),
        "{refused}"
    );
}

#[test]
fn an_answer_without_a_plan_writes_nothing() {
    let sandbox = sandbox();
    let agent = agent(&sandbox, &["I cannot do that.\n"]);
    let run = sandbox.refrain(&["plan", "new", "--command", &agent, "Write it."]).with_code(1);
    assert!(
        run.stderr.contains("wrote no line PLAN: with a plan after it; it said: I cannot do that."),
        "{}",
        run.stderr
    );
    assert!(!sandbox.project().join("PLAN.md").exists());
}

#[test]
fn a_program_that_is_missing_is_refused_before_anything_is_made() {
    let sandbox = sandbox();
    let before = sandbox.snapshot();
    let refused = sandbox.refrain(&["plan", "new", "--command", "./nope.sh", "x"]).with_code(1).stderr;
    assert!(refused.contains("./nope.sh") && refused.contains("nothing was begun"), "{refused}");
    assert_eq!(sandbox.snapshot(), before);
    assert!(!sandbox.root().join("home/state/refrain/checkouts").exists());
}
