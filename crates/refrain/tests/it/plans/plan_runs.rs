//! Plans in trouble: refused starts, people who work beside a plan, tasks that fail, and runners that are killed. In
//! the end every task is done, blocked or waiting for a blocked one, and no work of a person is lost.

use std::fs;

use testkit::{Run, Sandbox, Signal};

use crate::{plain_folder, sandbox};

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

fn run(sandbox: &Sandbox, agent: &str, more: &[&str]) -> Run {
    sandbox.refrain(&words(agent, more))
}

/// The subjects of the first-parent history, the newest first.
fn history(sandbox: &Sandbox) -> Vec<String> {
    let log = sandbox.git(&["log", "--first-parent", "--format=%s"]);
    log.lines().map(str::to_owned).collect()
}

fn content(sandbox: &Sandbox, file: &str) -> String {
    fs::read_to_string(sandbox.project().join(file)).unwrap_or_default()
}

#[test]
fn a_plan_that_cannot_be_run_is_refused_and_nothing_begins() {
    let (sandbox, agent) = project(&chain(), "");
    for (text, why) in [
        (r#"{"tag": "x", "tasks": [{"id": 1"#.to_owned(), "line 1"),
        (
            format!(r#"{{"tag": "x", "tasks": [{}, {}]}}"#, task(1, &[], "pending"), task(1, &[], "pending")),
            "more than one task is called 1",
        ),
        (
            format!(r#"{{"tag": "x", "tasks": [{}]}}"#, task(1, &[9], "pending")),
            "task 1 depends on 9, which is not there",
        ),
        (
            format!(
                r#"{{"tag": "x", "tasks": [{}, {}, {}]}}"#,
                task(1, &[3], "pending"),
                task(2, &[1], "pending"),
                task(3, &[2], "pending")
            ),
            "tasks wait for each other in a cycle: 1 -> 3 -> 2 -> 1",
        ),
    ] {
        testkit::write(&tasks_file(&sandbox), &text);
        let before = sandbox.snapshot();
        let said = run(&sandbox, &agent, &[]).with_code(2).stderr;
        assert!(said.contains(why), "{why}: {said}");
        assert_eq!(sandbox.snapshot(), before);
    }
}

#[test]
fn a_repository_that_tasks_cannot_begin_in_is_refused() {
    let (sandbox, agent) = project(&chain(), "");
    sandbox.git(&["switch", "-qc", "other"]);
    testkit::write(&sandbox.project().join("README.md"), "theirs\n");
    sandbox.git(&["commit", "-qam", "Theirs"]);
    sandbox.git(&["switch", "-q", "main"]);
    testkit::write(&sandbox.project().join("README.md"), "ours\n");
    sandbox.git(&["commit", "-qam", "Ours"]);
    sandbox.tool("git", &["merge", "-q", "other"]).run().with_code(1);
    let said = run(&sandbox, &agent, &[]).with_code(17).stderr;
    assert!(said.contains("a merge is in progress") && said.contains("git merge --abort"), "{said}");

    let bare = plain_folder();
    let agent = bare.agent("worker", "echo TASK_COMPLETE");
    fs::create_dir_all(bare.project().join(".scud/tasks")).unwrap();
    write_tasks(&bare, &chain());
    let said = run(&bare, &agent, &[]).with_code(2).stderr;
    assert!(said.contains("is in no git repository; run `git init`"), "{said}");
    bare.git(&["init", "-q"]);
    let said = run(&bare, &agent, &[]).with_code(17).stderr;
    assert!(said.contains("has no commit yet"), "{said}");
    assert!(!bare.project().join(".git/refrain").exists(), "nothing was begun");
}

#[test]
fn uncommitted_files_are_kept_and_those_in_the_way_are_named() {
    let (sandbox, agent) = project(&chain()[..2], "");
    for (file, text) in
        [("README.md", "dirty\n"), ("staged", "staged\n"), ("loose", "loose\n"), ("f2.txt", "mine\n")]
    {
        testkit::write(&sandbox.project().join(file), text);
    }
    sandbox.git(&["add", "staged"]);
    let said = run(&sandbox, &agent, &[]).with_code(14);
    assert!(said.stdout.contains("your own changes are in the way in f2.txt"), "{}", said.stdout);
    let found = sandbox.git(&["status", "--short", "--", "README.md", "staged", "loose", "f2.txt", "f1.txt"]);
    assert_eq!(found, " M README.md\nA  staged\n?? f2.txt\n?? loose\n");
    assert_eq!(
        (content(&sandbox, "README.md").as_str(), content(&sandbox, "f2.txt").as_str()),
        ("dirty\n", "mine\n")
    );
    assert_eq!(history(&sandbox)[0], "feat(x): complete wave 1", "the first wave was handed over");
    sandbox.git(&["stash", "-q", "--include-untracked", "--", "f2.txt"]);
    sandbox.refrain(&["plan", "resume", "x"]).with_code(0);
    assert_eq!(
        (content(&sandbox, "f2.txt").as_str(), content(&sandbox, "loose").as_str()),
        ("2\n", "loose\n")
    );
    assert_eq!(sandbox.git(&["show", "stash@{0}^3:f2.txt"]), "mine\n");
}

#[test]
fn waves_land_on_top_of_commits_made_meanwhile() {
    let (sandbox, agent) = project(
        &chain()[..2],
        "PROJECT=${NOTES%/notes}/project\n[ $number = 1 ] && { echo own > $PROJECT/own; git -C $PROJECT add own; git -C $PROJECT commit -qm Own; }",
    );
    run(&sandbox, &agent, &[]).with_code(0);
    assert_eq!(
        history(&sandbox),
        ["feat(x): complete wave 2", "feat(x): complete wave 1", "Own", "Plan", "Begin"]
    );
    assert_eq!((content(&sandbox, "own").as_str(), content(&sandbox, "f2.txt").as_str()), ("own\n", "2\n"));
}

#[test]
fn commits_of_a_person_are_verified_with_the_wave_before_its_handover() {
    let (sandbox, agent) = project(
        &chain()[..1],
        "PROJECT=${NOTES%/notes}/project\necho own > $PROJECT/own; git -C $PROJECT add own; git -C $PROJECT commit -qm Own",
    );
    let verify = ["--verify", "! { [ -e own ] && [ -e f1.txt ]; }"];
    let said = run(&sandbox, &agent, &verify).with_code(14).stdout;
    assert!(said.contains("with what was committed meanwhile, "), "{said}");
    assert_eq!(history(&sandbox), ["Own", "Plan", "Begin"], "nothing came to the branch");
    sandbox.git(&["rm", "-q", "own"]);
    sandbox.git(&["commit", "-qm", "Mend"]);
    sandbox.refrain(&["plan", "resume"]).with_code(0);
    assert_eq!(history(&sandbox)[0], "feat(x): complete wave 1");
}

#[test]
fn a_branch_that_is_not_checked_out_any_more_gets_its_waves_later() {
    let (sandbox, agent) =
        project(&chain()[..2], "[ $number = 1 ] && git -C ${NOTES%/notes}/project switch -qc side");
    let said = run(&sandbox, &agent, &[]).with_code(14);
    assert!(said.stdout.contains("side is checked out by now; git switch main"), "{}", said.stdout);
    assert_eq!(history(&sandbox), ["Plan", "Begin"]);
    sandbox.git(&["switch", "-q", "main"]);
    sandbox.refrain(&["plan", "resume"]).with_code(0);
    assert_eq!(history(&sandbox)[0], "feat(x): complete wave 2");
}

#[test]
fn a_task_that_gave_up_blocks_its_dependents_and_is_retried() {
    let tasks = [task(1, &[], "pending"), task(2, &[1], "pending"), task(3, &[], "pending")];
    let (sandbox, agent) = project(
        &tasks,
        "[ $number = 1 ] && [ ! -e $NOTES/oak ] && { echo 'TASK_BLOCKED: there is no oak'; exit 0; }",
    );
    let said = run(&sandbox, &agent, &[]).with_code(14).stdout;
    assert!(said.contains("task 1 is blocked after 1 iteration: there is no oak; 1 task waits on"), "{said}");
    let file = read_tasks(&sandbox);
    for part in [
        r#""status": "blocked", "blocked_reason": "there is no oak", "attempts": 1"#,
        r#""id": 2, "title": "Task 2", "status": "pending""#,
        r#""id": 3, "title": "Task 3", "status": "done""#,
    ] {
        assert!(file.contains(part), "{part}: {file}");
    }
    let shown = sandbox.refrain(&["plan", "status"]).with_code(0).stdout;
    assert!(shown.contains("(there is no oak)") && shown.contains("Waiting on Blocked: 2"), "{shown}");
    testkit::write(&sandbox.root().join("notes/oak"), "");
    sandbox.refrain(&["plan", "resume"]).with_code(0);
    let file = read_tasks(&sandbox);
    assert!(file.matches(r#""status": "done""#).count() == 3 && !file.contains("no oak"), "{file}");
    assert_eq!(
        history(&sandbox)[..3],
        ["feat(x): complete wave 2", "feat(x): complete the rest of wave 1", "feat(x): wave 1: 1 of 2 tasks"]
    );
    let body = sandbox.git(&["log", "--first-parent", "-1", "--skip=2", "--format=%b"]);
    assert!(body.contains("Left out:\n- 1: Task 1 (there is no oak)\n"), "{body}");
}

#[test]
fn agents_that_all_fail_in_the_same_way_stop_the_plan() {
    let tasks: Vec<_> = (1..=5).map(|id| task(id, &[], "pending")).collect();
    let (sandbox, agent) = project(&tasks, "[ -e $NOTES/mended ] || { echo boom; exit 1; }");
    let said = run(&sandbox, &agent, &["--jobs", "1"]).with_code(14).stdout;
    let why = "of 3 tasks in a row the agent ended with exit code 1: boom; nothing was changed";
    assert!(said.contains(why), "{said}");
    let shown = sandbox.refrain(&["plan", "status"]).with_code(0).stdout;
    let each = "not proven in 3 iterations; its agent ended with exit code 1: boom";
    assert!(shown.contains(why) && shown.contains(each), "{shown}");
    assert_eq!(sandbox.note("started"), "1\n1\n1\n2\n2\n2\n3\n3\n3\n");
    testkit::write(&sandbox.root().join("notes/mended"), "");
    sandbox.refrain(&["plan", "resume"]).with_code(0);
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
fn an_agent_that_sets_its_branch_back_takes_nothing_back_that_landed() {
    let tasks = [task(1, &[], "pending"), task(2, &[1], "pending")];
    let (sandbox, agent) = project(&tasks, "[ $number = 1 ] || git reset -q --hard HEAD~1");
    run(&sandbox, &agent, &[]).with_code(0);
    assert_eq!((content(&sandbox, "f1.txt").as_str(), content(&sandbox, "f2.txt").as_str()), ("1\n", "2\n"));
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
fn a_dependent_of_a_cancelled_task_continues_once_a_person_marks_it_done() {
    let tasks = [task(1, &[], "cancelled"), task(2, &[1], "pending"), task(3, &[], "pending")];
    let (sandbox, agent) = project(&tasks, "");
    let said = run(&sandbox, &agent, &[]).with_code(14);
    assert!(
        said.stderr.contains("task 2 waits on task 1, which is cancelled: it cannot begin"),
        "{}",
        said.stderr
    );
    testkit::write(&tasks_file(&sandbox), read_tasks(&sandbox).replace("cancelled", "done"));
    sandbox.refrain(&["plan", "resume"]).with_code(0);
    assert_eq!(sandbox.note("started"), "3\n2\n");
}

#[test]
fn a_task_file_that_is_edited_meanwhile_is_obeyed() {
    let tasks = [
        task(1, &[], "pending"),
        task(2, &[1], "pending"),
        task(3, &[1], "pending"),
        task(4, &[1], "blocked"),
    ];
    let script = "FILE=${NOTES%/notes}/project/.scud/tasks/x.json\n[ $number = 1 ] && { sed -e '/\"id\": 2/s/pending/cancelled/' -e '/\"id\": 3/s/pending/done/' -e '/\"id\": 4/s/blocked/pending/' -e 's/\"tasks\": \\[/&{\"id\": 5, \"title\": \"Task 5\", \"status\": \"pending\", \"depends_on\": [4]},/' $FILE > $NOTES/new; mv $NOTES/new $FILE; }";
    let (sandbox, agent) = project(&tasks, script);
    run(&sandbox, &agent, &[]).with_code(0);
    assert_eq!(sandbox.note("started"), "1\n4\n5\n");
    let file = read_tasks(&sandbox);
    assert!(file.matches(r#""status": "done""#).count() == 4 && file.contains("cancelled"), "{file}");
}

#[test]
fn a_task_file_that_cannot_be_read_meanwhile_does_not_stop_the_plan() {
    for spoil in ["echo '{' > $FILE", "rm $FILE"] {
        let script = "FILE=${NOTES%/notes}/project/.scud/tasks/x.json\ncase $number in 1) cp $FILE $NOTES/good; SPOIL;; 2) cp $NOTES/good $FILE;; esac";
        let (sandbox, agent) = project(&chain(), &script.replace("SPOIL", spoil));
        let said = run(&sandbox, &agent, &[]).with_code(0).stdout;
        assert!(said.contains("the task file has changed, and cannot be used as it is"), "{said}");
        assert_eq!(sandbox.note("started"), "1\n2\n3\n");
        let file = read_tasks(&sandbox);
        assert_eq!(file.matches(r#""status": "done""#).count(), 3, "{file}");
    }
}

#[test]
fn a_task_that_fails_only_with_landed_work_gets_the_gate_output() {
    let tasks = [task(1, &[], "pending"), task(2, &[], "pending")];
    let script = "echo begun >> $NOTES/begun\ncase $* in *'both are here'*) echo yes > mended;; *) read -r _ < $GATES/go;; esac";
    let (sandbox, agent) = project(&tasks, script);
    let check = sandbox.agent(
        "check",
        "if [ -e f1.txt ] && [ -e f2.txt ] && [ ! -e mended ]; then echo both are here; exit 1; fi",
    );
    let gate = sandbox.gate("go");
    let session = sandbox.spawn(&words(&agent, &["--verify", &check, "--jobs", "2"]));
    testkit::eventually("both have begun", || (sandbox.note("begun").lines().count() == 2).then_some(()));
    gate.let_one_pass();
    gate.let_one_pass();
    session.wait().with_code(0);
    assert_eq!(content(&sandbox, "mended"), "yes\n");
    assert_eq!(
        sandbox.note("started").lines().count(),
        3,
        "one of them had another round: {}",
        sandbox.note("started")
    );
    assert_eq!(history(&sandbox)[0], "feat(x): complete wave 1");
}

#[test]
fn a_verification_that_is_no_longer_needed_is_ended() {
    let tasks = [task(1, &[], "pending"), task(2, &[], "pending")];
    let (sandbox, agent) = project(&tasks, "echo begun >> $NOTES/begun; read -r _ < $GATES/go");
    let check = sandbox.agent(
        "check",
        "if [ -e f1.txt ] && [ -e f2.txt ]; then echo at >> $NOTES/at; read -r _ < $GATES/never; fi",
    );
    let (gate, never) = (sandbox.gate("go"), sandbox.gate("never"));
    let session = sandbox.spawn(&words(&agent, &["--verify", &check, "--jobs", "2"]));
    testkit::eventually("both have begun", || (sandbox.note("begun").lines().count() == 2).then_some(()));
    gate.let_one_pass();
    gate.let_one_pass();
    sandbox.wait_for_note("at");
    sandbox.refrain(&["plan", "pause", "x", "--now"]).with_code(0);
    session.wait().with_code(16);
    sandbox.no_process_is_left();
    let shown = sandbox.refrain(&["plan", "status", "x"]).with_code(0).stdout;
    assert!(!shown.contains("cannot be run"), "{shown}");
    let session = sandbox.spawn(&["plan", "resume", "x"]);
    testkit::eventually("it is asked again", || (sandbox.note("at").lines().count() == 2).then_some(()));
    never.let_one_pass();
    session.wait().with_code(0);
    assert_eq!(read_tasks(&sandbox).matches(r#""status": "done""#).count(), 2);
}

#[test]
fn tasks_that_all_change_the_same_line_all_land() {
    let tasks: Vec<_> = (1..=4).map(|id| task(id, &[], "pending")).collect();
    // An agent that finds a conflict settles it by keeping both sides.
    let script = "if grep -q '<<<<<<<' list; then grep -v '^<<<<<<<\\|^|||||||\\|^=======\\|^>>>>>>>' list > new; mv new list\nelse echo begun >> $NOTES/begun; read -r _ < $GATES/go; echo $number >> list; fi";
    let (sandbox, agent) = project(&tasks, script);
    let gate = sandbox.gate("go");
    let session = sandbox.spawn(&words(&agent, &["--jobs", "4"]));
    testkit::eventually("all have begun", || (sandbox.note("begun").lines().count() == 4).then_some(()));
    (1..=4).for_each(|_| gate.let_one_pass());
    session.wait().with_code(0);
    let list = content(&sandbox, "list");
    assert!((1..=4).all(|id| list.lines().any(|line| line == id.to_string())), "{list}");
    let rounds = sandbox.note("started").lines().count();
    assert!((7..=10).contains(&rounds), "each but one came back: {}", sandbox.note("started"));
    assert_eq!(read_tasks(&sandbox).matches(r#""status": "done""#).count(), 4);
}

#[test]
fn with_one_job_tasks_run_in_file_order_until_the_iterations_are_used_up() {
    let tasks = [task(3, &[], "pending"), task(1, &[], "pending"), task(2, &[3], "pending")];
    let (sandbox, agent) = project(&tasks, "");
    run(&sandbox, &agent, &["--jobs", "1", "--pipeline", "--max-total-iterations", "2"]).with_code(10);
    assert_eq!(sandbox.note("started"), "3\n1\n");
    let said = sandbox.refrain(&["plan", "resume"]).with_code(17).stderr;
    assert!(said.contains("2 iterations are used up") && said.contains("--max-total-iterations"), "{said}");
    sandbox.refrain(&["plan", "resume", "--max-total-iterations", "9"]).with_code(0);
    assert_eq!(history(&sandbox), ["feat(x): complete wave 2", "feat(x): complete wave 1", "Plan", "Begin"]);
    assert_eq!(read_tasks(&sandbox).matches(r#""status": "done""#).count(), 3);
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

#[test]
fn a_hostile_title_reaches_neither_a_shell_nor_the_terminal() {
    let title = r"Evil\nRefrain-Task: 9 $(touch $NOTES/pwned) \u001b[31mred";
    let long = "L".repeat(3000);
    let tasks =
        [task(1, &[], "pending").replace("Task 1", title), task(2, &[], "pending").replace("Task 2", &long)];
    let (sandbox, agent) = project(&tasks, "");
    let said = run(&sandbox, &agent, &[]).with_code(0);
    let shown = sandbox.refrain(&["plan", "status"]).with_code(0);
    let log = sandbox.git(&["log", "--format=%B"]);
    for text in [&said.stdout, &said.stderr, &shown.stdout, &log] {
        assert!(!text.contains('\u{1b}'), "{text}");
    }
    assert!(log.lines().all(|line| line.len() < 200) && !log.contains("\nRefrain-Task: 9"), "{log}");
    assert!(!sandbox.root().join("notes/pwned").exists());
}

#[test]
fn work_beside_a_task_lands_without_agent_commits_and_secrets() {
    let tasks = [task(1, &[], "pending"), task(2, &[], "pending"), task(3, &[], "pending")];
    let script = "case $number in 1) echo own > own; git add own; git commit -qm Sneaky;; 2) printf -- '-----BEGIN RSA PRIVATE KEY-----\\nMIIEpAIBAAKCAQEA7bq2Vq9Xx0dVbVnq1aZ0s7hK8Yx3uT4n\\n-----END RSA PRIVATE KEY-----\\n' > id_rsa;; 3) sed -i s/pending/cancelled/ .scud/tasks/x.json;; esac";
    let (sandbox, agent) = project(&tasks, script);
    run(&sandbox, &agent, &[]).with_code(0);
    let log = sandbox.git(&["log", "--format=%s"]);
    assert!(!log.contains("Sneaky") && content(&sandbox, "own") == "own\n", "{log}");
    assert_eq!(sandbox.git(&["log", "--format=%s", "--all", "--", "id_rsa"]), "");
    assert_eq!(sandbox.git(&["log", "--format=%s", "--", ".scud/tasks/x.json"]), "Plan\n");
    assert_eq!(read_tasks(&sandbox).matches(r#""status": "done""#).count(), 3);
}
