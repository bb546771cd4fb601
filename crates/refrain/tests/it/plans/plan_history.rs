//! What a plan says of its commits and waves, and what a task that is tried again is told.

use serde_json::Value;
use testkit::{Sandbox, write};

use crate::sandbox;

/// Keeps what it was told, does the script, and claims.
const AGENT: &str = r#"task=$(git branch --show-current); task=${task##*/}; number=${task%%-*}
printf '%s\n' "$1" > "$NOTES/told-$number"
SCRIPT
echo "$number" > "f$number.txt"
echo TASK_COMPLETE"#;

fn project(tasks: &str, script: &str) -> (Sandbox, String) {
    let sandbox = sandbox();
    std::fs::create_dir_all(sandbox.project().join(".scud/tasks")).unwrap();
    tasks_are(&sandbox, tasks);
    sandbox.git(&["add", "-A"]);
    sandbox.git(&["commit", "-qm", "Plan"]);
    let agent = sandbox.agent("worker", &AGENT.replace("SCRIPT", script));
    (sandbox, agent)
}

fn tasks_are(sandbox: &Sandbox, tasks: &str) {
    write(&sandbox.project().join(".scud/tasks/x.json"), format!(r#"{{"tag": "x", "tasks": [{tasks}]}}"#));
}

fn task(id: u32, after: &[u32], status: &str) -> String {
    format!(r#"{{"id": {id}, "title": "Task {id}", "status": "{status}", "depends_on": {after:?}}}"#)
}

fn words<'a>(agent: &'a str, verify: &'a str) -> Vec<&'a str> {
    vec!["plan", "run", "--tag", "x", "--name", "x", "--command", agent, "--verify", verify]
}

fn status(sandbox: &Sandbox, name: &str) -> Value {
    sandbox.refrain(&["plan", "status", name, "--json"]).with_code(0).json()
}

/// The commits that the status names.
fn commits(status: &Value) -> Vec<String> {
    let of = |list: &str, key: &str| -> Vec<String> {
        let list = status[list].as_array().unwrap().iter();
        list.map(|one| one[key].as_str().unwrap().to_owned()).collect()
    };
    [of("tasks", "commit"), of("waves", "commit"), of("wave_commits", "commit_hash")].concat()
}

#[test]
fn the_commits_that_are_named_are_on_the_branch_also_after_a_commit_of_the_user() {
    let tasks = [task(1, &[], "pending"), task(2, &[1], "pending")].join(",");
    let (sandbox, agent) = project(&tasks, "echo at >> $NOTES/at; read -r _ < $GATES/go");
    let gate = sandbox.gate("go");
    let session = sandbox.spawn(&words(&agent, "true"));
    sandbox.wait_for_note("at");
    write(&sandbox.project().join("own.txt"), "mine\n");
    sandbox.git(&["add", "own.txt"]);
    sandbox.git(&["commit", "-qm", "Own"]);
    (1..=2).for_each(|_| gate.let_one_pass());
    session.wait().with_code(0);
    let named = commits(&status(&sandbox, "x"));
    assert_eq!(named.len(), 6);
    for commit in &named {
        sandbox.git(&["merge-base", "--is-ancestor", commit, "HEAD"]);
    }
    sandbox.git(&["merge-base", "--is-ancestor", "HEAD~2", "HEAD"]);
    let said = sandbox.refrain(&["verify", "x"]).with_code(0).stdout;
    assert!(said.contains("4 commits in the repository"), "{said}");
    sandbox.git(&["reset", "-q", "--hard", "HEAD~1"]);
    let said = sandbox.refrain(&["verify", "x"]).with_code(1).stdout;
    assert!(said.contains("it is on no branch"), "{said}");
}

#[test]
fn a_task_that_is_tried_again_gets_the_earlier_failure() {
    let script = "[ -e $NOTES/mended ] && rm -f bad || echo bad > bad";
    let (sandbox, agent) = project(&task(1, &[], "pending"), script);
    let verify = "if [ -e bad ]; then echo 'first line'; echo 'FAIL test_two: bad is there'; exit 1; fi";
    let words = words(&agent, verify);
    sandbox.refrain(&[&words[..], &["--max-iterations-per-task", "1"]].concat()).with_code(14);
    assert!(!sandbox.note("told-1").contains("TRIED BEFORE"));
    write(&sandbox.root().join("notes/mended"), "");
    sandbox.refrain(&["plan", "resume", "x"]).with_code(0);
    let told = sandbox.note("told-1");
    for part in ["TRIED BEFORE: another agent tried this task", "first line\nFAIL test_two: bad is there"] {
        assert!(told.contains(part), "{part}: {told}");
    }
}

#[test]
fn a_task_that_gave_up_is_tried_again_with_its_reason() {
    let script = "[ -e $NOTES/mended ] || { echo 'TASK_BLOCKED: no key for the service'; exit 0; }";
    let (sandbox, agent) = project(&task(1, &[], "pending"), script);
    sandbox.refrain(&words(&agent, "true")).with_code(14);
    write(&sandbox.root().join("notes/mended"), "");
    sandbox.refrain(&["plan", "resume", "x"]).with_code(0);
    let told = sandbox.note("told-1");
    assert!(told.contains("it was not done: no key for the service."), "{told}");
    assert!(!told.contains("on top."), "there was no work: {told}");
}

#[test]
fn a_task_that_was_blocked_before_is_named_and_does_not_block_the_plan() {
    let tasks = [task(1, &[], "done"), task(2, &[], "blocked"), task(3, &[], "pending")].join(",");
    let (sandbox, agent) = project(&tasks, "");
    let said = sandbox.refrain(&words(&agent, "true")).with_code(0).stdout;
    assert!(said.contains("not tried: task 2 is blocked"), "{said}");
    assert!(said.contains("✔ verified, without 1 of 2 tasks, after "), "{said}");
    assert_eq!(status(&sandbox, "x")["reason"], "1 task landed in 1 wave; not tried: task 2 is blocked");
}

#[test]
fn waves_keep_their_numbers_and_the_next_plan_continues_them() {
    let tasks = [task(1, &[], "pending"), task(2, &[], "pending"), task(3, &[1], "pending")].join(",");
    let script = "[ $number != 2 ] || [ -e $NOTES/mended ] || { echo 'TASK_BLOCKED: no oak'; exit 0; }";
    let (sandbox, agent) = project(&tasks, script);
    let said = sandbox.refrain(&words(&agent, "true")).with_code(14).stdout;
    assert!(said.contains("[plan x wave 1 of 2] 1 task, feat(x): wave 1: 1 of 2 tasks"), "{said}");
    write(&sandbox.root().join("notes/mended"), "");
    let said = sandbox.refrain(&["plan", "resume", "x"]).with_code(0).stdout;
    assert!(said.contains("[plan x wave 1 task 2 round 2]"), "{said}");
    let state = status(&sandbox, "x");
    let waves = state["waves"].as_array().unwrap().iter();
    let waves = waves.map(|wave| (wave["wave"].as_u64().unwrap(), wave["tasks_done"].as_u64().unwrap()));
    assert_eq!(waves.collect::<Vec<_>>(), [(1, 2), (2, 1)]);
    let of_tasks: Vec<_> =
        state["tasks"].as_array().unwrap().iter().map(|task| task["wave"].as_u64()).collect();
    assert_eq!(of_tasks, [Some(1), Some(1), Some(2)]);
    assert_eq!(state["reason"], "3 tasks landed in 2 waves");
    let more = [task(1, &[], "done"), task(4, &[], "pending")].join(",");
    tasks_are(&sandbox, &more);
    let second = ["plan", "run", "--tag", "x", "--name", "y", "--command", &agent, "--verify", "true"];
    sandbox.refrain(&second).with_code(0);
    let log = sandbox.git(&["log", "--first-parent", "--format=%s", "-4"]);
    let expected = [
        "feat(x): complete wave 3",
        "feat(x): complete the rest of wave 1",
        "feat(x): complete wave 2",
        "feat(x): wave 1: 1 of 2 tasks",
    ];
    assert_eq!(log.lines().collect::<Vec<_>>(), expected);
    assert_eq!(status(&sandbox, "y")["waves"][0]["wave"], 3);
}

#[test]
fn a_plan_is_shown_in_the_file_of_seed_001_while_it_runs() {
    let script = "cp \"$REFRAIN_PROJECT/.scud/loop-state.json\" $NOTES/live";
    let (sandbox, agent) = project(&task(1, &[], "pending"), script);
    let file = sandbox.project().join(".scud/loop-state.json");
    let shown = || -> Value { serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap() };
    for (words, said) in [
        (
            &["start", "--scud-tag", "x", "--mirror", "descartes"][..],
            "it shows a loop; accepted for a plan is scud",
        ),
        (&["start", "Mend it.", "--mirror", "scud"], "it shows a plan; accepted for a loop are"),
    ] {
        let refused = sandbox.refrain(&[words, &["--command", &agent]].concat()).with_code(2);
        assert!(refused.stderr.contains(said), "{}", refused.stderr);
    }
    write(&file, "{\"mine\": 1}\n");
    let words = [&words(&agent, "true")[..], &["--mirror", "scud"]].concat();
    let run = sandbox.refrain(&[&words[..], &["--dry-run"]].concat()).with_code(0);
    let said = format!("{}{}", run.stdout, run.stderr);
    assert!(said.contains("loop-state.json is not Refrain's, and stays as it is"), "{said}");
    std::fs::remove_file(&file).unwrap();
    sandbox.refrain(&words).with_code(0);
    let live: Value = serde_json::from_str(&sandbox.note("live")).unwrap();
    assert_eq!((&live["completed"], &live["config"]["tag"]), (&Value::Bool(false), &Value::from("x")));
    let last = shown();
    assert_eq!((&last["completed"], &last["tasks_completed"]), (&Value::Bool(true), &Value::from(1)));
    let exported = sandbox.refrain(&["export", "x", "--as", "scud"]).with_code(0).json();
    assert_eq!(last["wave_commits"], exported["wave_commits"]);
}

#[test]
fn branches_of_failed_work_are_named_after_the_plan_is_complete() {
    let script = "[ -e $NOTES/mended ] && rm -f bad || echo bad > bad";
    let (sandbox, agent) = project(&task(1, &[], "pending"), script);
    let words = words(&agent, "[ ! -e bad ]");
    sandbox.refrain(&[&words[..], &["--max-iterations-per-task", "1"]].concat()).with_code(14);
    write(&sandbox.root().join("notes/mended"), "");
    sandbox.refrain(&["plan", "resume", "x"]).with_code(0);
    let branches = sandbox.git(&["branch", "--format=%(refname:short)"]);
    let left: Vec<_> = branches.lines().filter(|branch| *branch != "main").collect();
    assert!(left.iter().all(|branch| branch.starts_with("wip/")), "{branches}");
    let named = status(&sandbox, "x")["branches"].clone();
    assert_eq!(named, serde_json::json!(left));
    let said = sandbox.refrain(&["plan", "status", "x"]).with_code(0).stdout;
    assert!(left.iter().all(|branch| said.contains(&format!("git branch -D {branch}"))), "{said}");
}

/// A person's words reach the next round by the plan: a loop that is over for its plan takes none, as no result of it
/// would count.
#[test]
fn the_question_of_a_task_is_answered_by_the_command_that_its_status_names() {
    let script = "case \"$1\" in *postgres*) ;; *) printf 'status: blocked\\nquestion: Which database?\\n' > $REFRAIN_STATE_FILE; exit 0;; esac";
    let (sandbox, agent) = project(&task(1, &[], "pending"), script);
    let next = "refrain plan tune x 1 --words TEXT --resume";
    let said = sandbox.refrain(&words(&agent, "true")).with_code(14).stdout;
    assert!(said.contains("Which database?") && said.contains(next), "{said}");
    let asking = status(&sandbox, "x")["tasks"][0]["loop"].as_str().unwrap().to_owned();
    let said = sandbox.refrain(&["status", &asking]).with_code(0).stdout;
    assert!(said.contains(next), "{said}");
    for verb in [
        &["answer", &asking, "Take postgres."][..],
        &["steer", &asking, "Take postgres."],
        &["resume", &asking],
    ] {
        let refused = sandbox.refrain(verb).with_code(17).stderr;
        assert!(refused.contains("is over for plan x, whose task 1 continues"), "{refused}");
        assert!(refused.contains(next), "{refused}");
    }
    let refused = sandbox.refrain(&["answer", "x", "Take postgres."]).with_code(2).stderr;
    assert!(refused.contains("refrain plan tune x TASK --words TEXT --resume"), "{refused}");
    sandbox.refrain(&["plan", "tune", "x", "1", "--words", "Take postgres.", "--resume"]).with_code(0);
    assert_eq!(status(&sandbox, "x")["verified"], true);
}
