//! Plans from the command line: run, shown, stopped, tuned and resumed, and refusals.

use std::fs;

use testkit::Sandbox;

use crate::sandbox;

/// Five tasks in three waves: 3 follows 1, 4 follows 2, 5 follows both.
const TASKS: &str = r#"{
  "tag": "feature-x",
  "tasks": [
    {"id": 1, "title": "Describe the schema", "status": "pending", "complexity": 2, "depends_on": []},
    {"id": 2, "title": "Set up the router", "status": "pending", "complexity": 1, "depends_on": []},
    {"id": 3, "title": "Setup database", "status": "pending", "complexity": 3, "depends_on": [1]},
    {"id": 4, "title": "Implement auth middleware", "status": "pending", "complexity": 5, "depends_on": [2]},
    {"id": 5, "title": "Store sessions", "status": "pending", "complexity": 3, "depends_on": [3, 4]}
  ]
}
"#;

/// A project with those tasks, committed, and an agent that writes a file for each; task 3 only if its prompt says
/// pine.
pub(crate) fn feature() -> (Sandbox, String) {
    let sandbox = sandbox();
    fs::create_dir_all(sandbox.project().join(".scud/tasks")).unwrap();
    testkit::write(&sandbox.project().join(".scud/tasks/feature-x.json"), TASKS);
    testkit::write(&sandbox.project().join("README.md"), "A project.\n");
    sandbox.git(&["add", "-A"]);
    sandbox.git(&["commit", "-qm", "Begin"]);
    let agent = sandbox.agent(
        "worker",
        r#"task=$(git branch --show-current); task=${task##*/}
case $task in 3*) case $* in *pine*) ;; *) echo "I do not know which wood."; exit 0;; esac;; esac
echo "$task" > "$task.txt"
echo TASK_COMPLETE"#,
    );
    (sandbox, agent)
}

const VERIFY: &str = "test -e README.md";

pub(crate) fn run(sandbox: &Sandbox, agent: &str, words: &[&str]) -> testkit::Run {
    let usual = ["plan", "run", "--tag", "feature-x", "--command", agent, "--verify", VERIFY, "--name", "fx"];
    sandbox.refrain(&[&usual[..], words].concat())
}

#[test]
fn verbs_of_loops_mean_a_plan_too() {
    let (sandbox, _) = feature();
    let gate = sandbox.gate("go");
    let agent = sandbox.agent(
        "slow",
        r#"task=$(git branch --show-current); task=${task##*/}
echo begun > "$NOTES/$task"; read -r _ < $GATES/go
echo "$task" > "$task.txt"; echo TASK_COMPLETE"#,
    );
    let started = run(&sandbox, &agent, &["--jobs", "1", "--detach"]).with_code(0);
    assert_eq!(started.stdout, "fx\n");
    sandbox.wait_for_note("1");
    let view = sandbox.refrain(&["status", "--json"]).with_code(0).json();
    assert_eq!((view["status"].as_str(), view["current"][0]["task"].as_str()), (Some("running"), Some("1")));
    let shown = sandbox.refrain(&["status"]).with_code(0).stdout;
    assert!(shown.contains("Current Tasks: 1") && shown.contains("Complexity: 2, iteration 1/3"), "{shown}");
    let said = sandbox.refrain(&["steer", "fx", "Mind the cat."]).with_code(0).stdout;
    assert!(said.starts_with("fx-1-") && said.ends_with("later tasks are not\n"), "{said}");
    let said = run(&sandbox, &agent, &[]).with_code(17).stderr;
    assert!(said.contains("plan fx works on the tasks of feature-x; it runs: "), "{said}");
    for verb in ["watch", "plan pause", "plan cancel"] {
        assert!(said.contains(&format!("`refrain {verb} fx`")), "{said}");
    }
    let said = sandbox.refrain(&["pause", "--now"]).with_code(0).stdout;
    assert!(said.contains("fx"), "{said}");
    testkit::eventually("the plan pauses", || {
        (sandbox.refrain(&["status", "fx", "--json"]).json()["status"] == "paused").then_some(())
    });
    drop(gate);
    let said = sandbox.refrain(&["cancel"]).with_code(0).stdout;
    assert!(said.contains("fx is cancelled; 0 of 5 tasks have landed"), "{said}");
    let said = sandbox.refrain(&["cancel", "fx"]).with_code(0).stdout;
    assert!(said.contains("already cancelled"), "{said}");
    sandbox.no_process_is_left();
}

#[test]
fn a_git_that_is_too_old_is_named_before_anything_is_spent() {
    let (sandbox, agent) = feature();
    let usual = sandbox.env().into_iter().find(|(name, _)| *name == "PATH").unwrap().1;
    let script = format!(
        "for word; do [ \"$word\" = --version ] && {{ echo git version 2.37.9; exit; }}; done\nPATH={usual} exec git \"$@\""
    );
    let git = sandbox.agent("git", &script);
    let path = format!("{}:{usual}", std::path::Path::new(&git).parent().unwrap().display());
    for words in [
        ["plan", "check", "--tag", "feature-x"].as_slice(),
        &["plan", "run", "--tag", "feature-x"],
        &["plan", "run", "--tag", "feature-x", "--dry-run"],
        &["start", "Mend it.", "--git-workflow", "commit"],
        &["start", "Mend it.", "--gate", "true"],
    ] {
        let words = [words, &["--command", &agent]].concat();
        let run = sandbox.command(&words).env("PATH", &path).run().with_code(1);
        assert!(run.stderr.contains("git 2.37.9 is older than 2.38, which Refrain needs"), "{}", run.stderr);
    }
    assert_eq!(sandbox.refrain(&["list", "--json"]).json(), serde_json::json!([]), "nothing was begun");
}

#[test]
fn a_plan_can_be_inspected_like_a_loop() {
    let (sandbox, agent) = feature();
    run(&sandbox, &agent, &["--quiet", "--max-iterations-per-task", "1"]).with_code(14);
    let loops: Vec<_> =
        sandbox.refrain(&["list", "--plan", "fx", "--json"]).json().as_array().unwrap().clone();
    let shown = sandbox.refrain(&["show", "fx"]).with_code(0).stdout;
    assert!(shown.contains("  plan.started ") && shown.contains("  wave.completed "), "{shown}");
    let events = sandbox.refrain(&["show", "--json"]).with_code(0).json();
    assert_eq!(events[0]["event"]["type"], "plan.started", "it is the only one that there is");
    let logs = sandbox.refrain(&["logs", "fx"]).with_code(0).stdout;
    let third = loops.iter().find(|it| it["task"]["id"] == "3").unwrap()["id"].as_str().unwrap();
    let heading = format!("=== task 3, round 1 ({third})\n");
    let of_third = logs.split(&heading).nth(1).unwrap_or_default();
    assert!(of_third.contains("== iteration 1\nI do not know which wood."), "{logs}");
    let said = sandbox.refrain(&["logs", "fx", "--follow"]).with_code(2).stderr;
    assert!(said.contains("refrain watch fx"), "{said}");

    let report = sandbox.refrain(&["report", "fx"]).with_code(0).stdout;
    for part in ["Report on plan fx: blocked, not verified", "verify on tree", "nothing", third] {
        assert!(report.contains(part), "{part}: {report}");
    }
    assert!(!report.contains("nothing but the claim"), "its agent claimed nothing: {report}");
    let object = sandbox.refrain(&["report", "fx", "--json"]).with_code(0).json();
    assert_eq!((object["plan"]["id"].as_str(), object["loops"].as_array().unwrap().len()), (Some("fx"), 4));
    let page = sandbox.refrain(&["report", "fx", "--html"]).with_code(0).stdout;
    assert!(page.contains("Report on plan fx") && page.contains("Times are those of UTC"), "{page}");

    let verified = sandbox.refrain(&["verify", "fx"]).with_code(0).stdout;
    assert_eq!(verified.matches("every byte as it was written").count(), 5, "{verified}");
    let kept = sandbox.project().join(".git/refrain/loops").join(third).join("iterations/0001/output.log");
    testkit::write(&kept, "I knew.\n");
    let verified = sandbox.refrain(&["verify", "fx"]).with_code(1).stdout;
    assert!(verified.contains("DIFFERS"), "{verified}");
    for (words, code, part) in [
        (&["steer", "fx", "Hello."][..], 17, "no task of fx is at work"),
        (&["archive", "fx"], 2, "refrain discard fx"),
    ] {
        let said = sandbox.refrain(words).with_code(code).stderr;
        assert!(said.contains(part), "{words:?}: {said}");
    }
}

#[test]
fn of_two_plans_for_the_same_tasks_that_start_at_once_one_is_refused() {
    let (sandbox, _) = feature();
    let idle = sandbox.agent("idle", "echo at >> $NOTES/at; read -r _ < $GATES/go");
    let _gate = sandbox.gate("go");
    let data = sandbox.project().join(".git/refrain");
    fs::create_dir_all(&data).unwrap();
    let lock = fs::File::create(data.join("plans.lock")).unwrap();
    lock.lock().unwrap();
    let words = ["plan", "run", "--tag", "feature-x", "--command", &idle, "--verify", VERIFY, "--detach"];
    let both: Vec<_> =
        ["one", "two"].map(|name| sandbox.spawn(&[&words[..], &["--name", name]].concat())).into();
    drop(lock);
    let mut codes: Vec<_> = both.into_iter().map(|session| session.wait().code).collect();
    codes.sort_unstable();
    assert_eq!(codes, [0, 17]);
    sandbox.refrain(&["plan", "cancel", "--now"]).with_code(0);
    sandbox.no_process_is_left();
}

/// A plan whose two first tasks are at work, and wait at a gate.
fn waiting() -> (Sandbox, testkit::Gate, testkit::Session) {
    let (sandbox, _) = feature();
    let gate = sandbox.gate("go");
    let agent = sandbox.agent(
        "waiter",
        "task=$(git branch --show-current); task=${task##*/}\necho x > \"$NOTES/${task%%-*}\"
trap '' INT TERM\nread -r _ < $GATES/go\necho done > $task.txt\necho TASK_COMPLETE",
    );
    let words =
        ["plan", "run", "--tag", "feature-x", "--command", &agent, "--verify", VERIFY, "--name", "fx"];
    let session = sandbox.spawn(&[&words[..], &["--jobs", "2"]].concat());
    sandbox.wait_for_note("1");
    sandbox.wait_for_note("2");
    (sandbox, gate, session)
}

/// The names of the events of the plan's journal.
fn events_of_plan(sandbox: &Sandbox) -> Vec<String> {
    let journal = fs::read_to_string(sandbox.project().join(".git/refrain/plans/fx/journal.jsonl")).unwrap();
    let events = journal.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    events.map(|record| record["event"]["type"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_request_survives_a_deleted_inbox() {
    let (sandbox, gate, session) = waiting();
    session.signal(testkit::Signal::STOP);
    let asker = sandbox.spawn(&["plan", "pause", "fx"]);
    let cure = format!("kill -CONT {}", session.pid());
    testkit::eventually("it says what continues the runner", || asker.stderr().contains(&cure).then_some(()));
    let view = sandbox.refrain(&["plan", "status", "fx", "--json"]).with_code(0).json();
    assert_eq!((&view["runner"]["stopped"], view["needs"].as_str()), (&true.into(), Some(cure.as_str())));
    fs::remove_dir_all(sandbox.project().join(".git/refrain/plans/fx/inbox")).unwrap();
    session.signal(testkit::Signal::CONT);
    asker.wait().with_code(0);
    (0..2).for_each(|_| gate.let_one_pass());
    session.wait().with_code(16);
}

#[test]
fn a_task_that_is_added_while_the_plan_pauses_is_in_its_status() {
    let (sandbox, _gate, session) = waiting();
    sandbox.refrain(&["plan", "pause", "fx", "--now"]).with_code(0);
    // Its runner is about to leave, or has left.
    let ids = (0..5).map(|number| {
        let title = format!("More {number}");
        let added = sandbox.refrain(&["plan", "add", &title, "--name", "fx"]).with_code(0).stdout;
        added.split_whitespace().nth(1).unwrap().to_owned()
    });
    let ids: Vec<String> = ids.collect();
    session.wait().with_code(16);
    let view = sandbox.refrain(&["plan", "status", "fx", "--json"]).with_code(0).json();
    let known: Vec<_> = view["tasks"].as_array().unwrap().iter().map(|task| task["id"].clone()).collect();
    for id in ids {
        assert!(known.contains(&id.as_str().into()), "{id} is not in {known:?}");
    }
}

#[test]
fn a_signal_that_is_repeated_is_recorded_once_and_ends_the_agents_at_once() {
    let (sandbox, _gate, session) = waiting();
    session.signal(testkit::Signal::TERM);
    let view = sandbox.refrain(&["plan", "status", "fx", "--json"]).with_code(0).json();
    for task in view["current"].as_array().unwrap() {
        sandbox.wait_for_event(task["loop"].as_str().unwrap(), "attempt.stop-requested");
    }
    session.signal(testkit::Signal::TERM);
    session.wait().with_code(16);
    let asked = events_of_plan(&sandbox).into_iter().filter(|name| name == "asked").count();
    assert_eq!(asked, 1);
    let first = view["current"][0]["loop"].as_str().unwrap();
    assert_eq!(sandbox.status(first)["iterations"][0]["signal"], 9, "without its stop sequence");
    sandbox.no_process_is_left();
}

/// For how long the threads of a process sleep in the call that waits for everything; none if it is not known, or they do not.
fn sleeps_for_ms(pid: i32) -> Option<i64> {
    let call = fs::read_to_string(format!("/proc/{pid}/syscall")).ok()?;
    let words: Vec<_> = call.split_whitespace().collect();
    // epoll_wait and epoll_pwait: on x86-64, and on all others.
    let is_epoll = matches!(words.first().copied(), Some("232" | "281" | "22"));
    let timeout = words.get(4).filter(|_| is_epoll)?.trim_start_matches("0x");
    let timeout = u64::from_str_radix(timeout, 16).ok()?;
    Some(match i32::try_from(timeout) {
        Ok(ms) => ms.into(),
        // Below zero: for ever.
        Err(_) => i64::MAX,
    })
}

#[test]
fn a_plan_that_waits_has_no_wake_ups_and_sees_that_its_file_changes() {
    let (sandbox, gate, session) = waiting();
    let taken =
        |sandbox: &Sandbox| events_of_plan(sandbox).iter().filter(|name| *name == "tasks.taken").count();
    let before = taken(&sandbox);
    testkit::eventually("it waits for nothing but news", || {
        sleeps_for_ms(session.pid()).filter(|ms| *ms > 10_000)
    });
    let path = sandbox.project().join(".scud/tasks/feature-x.json");
    let text = fs::read_to_string(&path).unwrap();
    let moved = path.with_extension("new");
    testkit::write(&moved, text.replace("Store sessions", "Keep sessions"));
    fs::rename(&moved, &path).unwrap();
    testkit::eventually("the file is read again", || (taken(&sandbox) > before).then_some(()));
    (0..5).for_each(|_| gate.let_one_pass());
    session.wait().with_code(0);
}
