//! Plans whose runner is killed or interrupted, and worktrees that another plan has meanwhile: every task is done once,
//! and no work of a person is lost. What plans do beside people who work is in `scenarios/plans`.

use std::fs;

use testkit::{Sandbox, Signal};

use crate::sandbox;

/// The first part of each test's agent; then it writes a file for its task, and claims.
const AGENT: &str = r#"task=$(git branch --show-current); task=${task##*/}; number=${task%%-*}
echo "$task" >> "$NOTES/started"
SCRIPT
echo "$task" > "f$number.txt"
echo TASK_COMPLETE"#;

/// A task of the file.
fn task(id: u32, after: &[u32], status: &str) -> String {
    format!(r#"{{"id": {id}, "title": "Task {id}", "status": "{status}", "depends_on": {after:?}}}"#)
}

/// Three tasks, each depending on the one before.
fn chain() -> Vec<String> {
    vec![task(1, &[], "pending"), task(2, &[1], "pending"), task(3, &[2], "pending")]
}

fn write_tasks(sandbox: &Sandbox, tasks: &[String]) {
    let tasks = tasks.join(",\n    ");
    testkit::write(
        &tasks_file(sandbox),
        format!("{{\n  \"tag\": \"x\",\n  \"tasks\": [\n    {tasks}\n  ]\n}}\n"),
    );
}

fn tasks_file(sandbox: &Sandbox) -> std::path::PathBuf {
    sandbox.project().join(".scud/tasks/x.json")
}

fn read_tasks(sandbox: &Sandbox) -> String {
    fs::read_to_string(tasks_file(sandbox)).unwrap()
}

/// A project with these tasks, committed, and the agent with this script in it.
fn project(tasks: &[String], script: &str) -> (Sandbox, String) {
    let sandbox = sandbox();
    fs::create_dir_all(sandbox.project().join(".scud/tasks")).unwrap();
    write_tasks(&sandbox, tasks);
    sandbox.git(&["add", "-A"]);
    sandbox.git(&["commit", "-qm", "Plan"]);
    let agent = sandbox.agent("worker", &AGENT.replace("SCRIPT", script));
    (sandbox, agent)
}

fn words<'a>(agent: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let usual = ["plan", "run", "--tag", "x", "--command", agent, "--name", "x"];
    let verify = if more.contains(&"--verify") { &[][..] } else { &["--verify", "test -e README.md"] };
    [&usual[..], verify, more].concat()
}

fn content(sandbox: &Sandbox, file: &str) -> String {
    fs::read_to_string(sandbox.project().join(file)).unwrap_or_default()
}

#[test]
fn a_worktree_that_another_plan_had_meanwhile_is_brought_back() {
    let (sandbox, agent) = project(
        &chain()[..1],
        "echo at >> $NOTES/at; echo half > half; [ -e $NOTES/free ] || read -r _ < $GATES/go",
    );
    let other = r#"{"tag": "y", "tasks": [{"id": 1, "title": "Other", "status": "pending"}]}"#;
    testkit::write(&sandbox.project().join(".scud/tasks/y.json"), other);
    let _gate = sandbox.gate("go");
    let session = sandbox.spawn(&words(&agent, &[]));
    sandbox.wait_for_note("at");
    session.kill();
    sandbox.no_process_is_left();
    let quick = sandbox.agent("quick", "echo other > other; echo TASK_COMPLETE");
    let verify = ["--verify", "test -e README.md"];
    let second = ["plan", "run", "--tag", "y", "--command", &quick, "--name", "y"];
    sandbox.refrain(&[&second[..], &verify[..]].concat()).with_code(0);
    testkit::write(&sandbox.root().join("notes/free"), "");
    sandbox.refrain(&["plan", "resume", "x"]).with_code(0);
    assert_eq!(
        (content(&sandbox, "other").as_str(), content(&sandbox, "f1.txt").as_str()),
        ("other\n", "1\n")
    );
}

#[test]
fn a_claim_is_proven_on_its_own_work_after_another_plan_had_the_worktree() {
    let (sandbox, agent) = project(&chain()[..1], "echo made > made");
    let other = r#"{"tag": "y", "tasks": [{"id": 1, "title": "Other", "status": "pending"}]}"#;
    testkit::write(&sandbox.project().join(".scud/tasks/y.json"), other);
    let gate = sandbox.gate("go");
    let check = format!(
        "[ ! -e made ] || [ -e {0} ] || read -r _ < {1}",
        sandbox.root().join("notes/free").display(),
        gate.path().display()
    );
    let begin = ["plan", "run", "--tag", "x", "--command", &agent, "--name", "x", "--verify", &check];
    let session = sandbox.spawn(&begin);
    let journal = sandbox.project().join(".git/refrain/loops");
    testkit::eventually("its gate runs", || {
        let mut loops = fs::read_dir(&journal).ok()?;
        let text = fs::read_to_string(loops.next()?.ok()?.path().join("journal.jsonl")).ok()?;
        text.contains("gate.started").then_some(())
    });
    session.kill();
    sandbox.no_process_is_left();
    let quick = sandbox.agent("quick", "echo other > other; echo TASK_COMPLETE");
    let second = ["plan", "run", "--tag", "y", "--command", &quick, "--name", "y", "--verify", "true"];
    sandbox.refrain(&second).with_code(0);
    testkit::write(&sandbox.root().join("notes/free"), "");
    sandbox.refrain(&["plan", "resume", "x"]).with_code(0);
    assert_eq!(
        (content(&sandbox, "other").as_str(), content(&sandbox, "made").as_str()),
        ("other\n", "made\n")
    );
}

#[test]
fn a_task_file_that_a_killed_runner_did_not_write_is_written_by_the_next() {
    for (verb, code) in [("resume", 14), ("cancel", 0)] {
        let (sandbox, agent) = project(
            &chain()[..1],
            "echo at >> $NOTES/at; read -r _ < $GATES/go; echo 'TASK_BLOCKED: no oak'; exit 0",
        );
        let gate = sandbox.gate("go");
        let session = sandbox.spawn(&words(&agent, &[]));
        sandbox.wait_for_note("at");
        assert!(read_tasks(&sandbox).contains("in-progress"));
        // A writer of the file holds this lock; the runner waits for it, and is killed.
        let folder = fs::read_dir(sandbox.project().join(".git/refrain/tasks")).unwrap();
        let locks: Vec<_> = folder.map(|entry| fs::File::open(entry.unwrap().path()).unwrap()).collect();
        locks.iter().for_each(|lock| lock.lock().unwrap());
        gate.let_one_pass();
        testkit::eventually("the end of the task is recorded", || {
            let journal = sandbox.project().join(".git/refrain/plans/x/journal.jsonl");
            fs::read_to_string(journal).unwrap_or_default().contains("task.ended").then_some(())
        });
        session.kill();
        drop(locks);
        sandbox.no_process_is_left();
        assert!(read_tasks(&sandbox).contains("in-progress"), "it was not written");
        sandbox.refrain(&["plan", verb, "x"]).with_code(code);
        let file = read_tasks(&sandbox);
        let truth = r#""status": "blocked", "blocked_reason": "no oak", "attempts": 1"#;
        assert!(file.contains(truth), "{verb}: {file}");
    }
}

#[test]
fn a_plan_that_is_killed_twice_does_each_task_once() {
    let (sandbox, agent) =
        project(&chain(), "[ $number = 2 ] && { echo at >> $NOTES/at; read -r _ < $GATES/go; }");
    let gate = sandbox.gate("go");
    let at = |times: usize| {
        testkit::eventually("task 2 is at work", || {
            (sandbox.note("at").lines().count() == times).then_some(())
        });
    };
    let session = sandbox.spawn(&words(&agent, &[]));
    at(1);
    session.kill();
    let session = sandbox.spawn(&["plan", "resume", "x"]);
    at(2);
    session.kill();
    let session = sandbox.spawn(&["plan", "resume", "x"]);
    at(3);
    gate.let_one_pass();
    let said = session.wait().with_code(0).stdout;
    // What was shown before the kill is not shown again.
    assert!(!said.contains("[plan x wave 2 task 2]") && !said.contains("task 1 landed"), "{said}");
    assert!(
        said.matches("task 2 landed").count() == 1 && said.matches("task 3 landed").count() == 1,
        "{said}"
    );
    sandbox.no_process_is_left();
    let log = sandbox.git(&["log", "--format=%s"]);
    for subject in ["Task 1", "Task 2", "Task 3", "feat(x): complete wave 2"] {
        assert_eq!(log.lines().filter(|line| *line == subject).count(), 1, "{log}");
    }
    let shown = sandbox.refrain(&["plan", "status", "x"]).with_code(0).stdout;
    assert!(shown.contains("3/100 iterations"), "what was cut off is refunded: {shown}");
    assert_eq!(read_tasks(&sandbox).matches(r#""status": "done""#).count(), 3);
}

#[test]
fn an_interrupt_pauses_and_a_cancelled_plan_leaves_its_tasks_pending() {
    let (sandbox, agent) = project(&chain(), "echo at >> $NOTES/at; read -r _ < $GATES/go");
    let gate = sandbox.gate("go");
    let session = sandbox.spawn(&words(&agent, &[]));
    let asked = |times: usize| {
        testkit::eventually("the plan has heard it", || {
            let journal = sandbox.project().join(".git/refrain/plans/x/journal.jsonl");
            let events = fs::read_to_string(journal).unwrap_or_default();
            (events.matches(r#""type":"asked""#).count() == times).then_some(())
        });
    };
    sandbox.wait_for_note("at");
    session.signal(Signal::INT);
    asked(1);
    gate.let_one_pass();
    session.wait().with_code(16);
    let session = sandbox.spawn(&["plan", "resume", "x"]);
    testkit::eventually("task 2 is at work", || (sandbox.note("at").lines().count() == 2).then_some(()));
    session.signal(Signal::INT);
    asked(2);
    session.signal(Signal::INT);
    session.wait().with_code(16);
    sandbox.refrain(&["plan", "cancel", "x"]).with_code(0);
    sandbox.no_process_is_left();
    let file = read_tasks(&sandbox);
    assert!(
        !file.contains("in-progress") && file.contains(r#""id": 2, "title": "Task 2", "status": "pending""#),
        "{file}"
    );
}
