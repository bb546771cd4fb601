//! `refrain run`: one task until its tests pass and a reviewer finds its specification met, as in seed 004.

use std::fs;

use serde_json::{Value, json};
use testkit::{Sandbox, write};

use crate::surfaces::terminal::Terminal;
use crate::{plain_folder, sandbox};

/// A project whose test looks for a word, and the task to put it there.
fn project() -> Sandbox {
    let sandbox = sandbox();
    let test = "#!/bin/sh\ngrep -q good work.txt && echo 1 passed || { echo 'FAILED test_work: no good' >&2; exit 1; }\n";
    fs::rename(sandbox.agent("test.sh", test), sandbox.project().join("test.sh")).unwrap();
    write(&sandbox.project().join("task.md"), "Put the word good into work.txt.\n");
    sandbox.git(&["add", "-A"]);
    sandbox.git(&["commit", "-qm", "Task"]);
    sandbox.trust();
    sandbox
}

/// A reviewer that finds the specification met.
fn content(sandbox: &Sandbox) -> String {
    sandbox.agent("content", "echo SPEC_PASS")
}

/// Puts the word there in the given iteration.
fn able_in(sandbox: &Sandbox, iteration: u32) -> String {
    let script = format!(
        "echo try $REFRAIN_ITERATION >> tries.txt\n[ $REFRAIN_ITERATION -lt {iteration} ] || echo good > work.txt"
    );
    sandbox.agent("worker", &script)
}

fn words<'a>(agent: &'a str, reviewer: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut words = vec!["run", "add-auth", "task.md", "--command", agent, "--reviewer", reviewer];
    words.extend(more);
    words
}

fn ralph(sandbox: &Sandbox) -> Value {
    let text = fs::read_to_string(sandbox.project().join(".ralph_state.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn wip(sandbox: &Sandbox) -> Vec<String> {
    let found = sandbox.git(&["branch", "--list", "--format=%(refname:short)", "wip/*"]);
    found.lines().map(str::to_owned).collect()
}

#[test]
fn a_task_is_done_when_its_tests_pass_and_its_specification_is_met() {
    let sandbox = project();
    let (agent, reviewer) = (able_in(&sandbox, 2), content(&sandbox));
    sandbox.refrain(&words(&agent, &reviewer, &[])).with_code(0);
    let status = sandbox.status("add-auth");
    assert_eq!(
        (&status["verified"], &status["iteration"], &status["max_iterations"]),
        (&json!(true), &json!(2), &json!(5))
    );
    let gates: Vec<_> =
        status["gates"].as_array().unwrap().iter().map(|gate| (&gate["name"], &gate["hard"])).collect();
    assert_eq!(gates, [(&json!("tests"), &json!(true)), (&json!("spec"), &json!(true))]);
    for name in [".ralph_state.json", ".ralph_context.md", ".ralph.lock"] {
        assert!(!sandbox.project().join(name).exists(), "{name} is left");
    }
    assert_eq!(wip(&sandbox), [""; 0]);
    let tree = status["tree"].as_str().unwrap();
    assert_eq!(
        sandbox.git(&["ls-tree", "--name-only", tree]),
        "README.md\ntask.md\ntest.sh\ntries.txt\nwork.txt\n"
    );
}

#[test]
fn ralph_run_is_the_same_verb_and_the_seeds_options_work() {
    let sandbox = project();
    let (agent, reviewer) = (able_in(&sandbox, 1), content(&sandbox));
    let dir = sandbox.project();
    let words = ["ralph-run", "t", "task.md", "-d", dir.to_str().unwrap(), "-n", "3", "--non-interactive"];
    let more = ["--command", &agent, "--reviewer", &reviewer];
    sandbox.refrain(&[&words[..], &more].concat()).with_code(0);
    assert_eq!(sandbox.status("t")["max_iterations"], 3);
}

#[test]
fn the_work_of_a_task_that_gave_up_is_kept_on_a_branch_with_its_state() {
    let sandbox = project();
    let (agent, reviewer) = (able_in(&sandbox, 9), content(&sandbox));
    sandbox.refrain(&words(&agent, &reviewer, &["-n", "2"])).with_code(10);
    let state = ralph(&sandbox);
    assert_eq!(
        (&state["task_id"], &state["iteration"], &state["max_iterations"]),
        (&json!("add-auth"), &json!(2), &json!(2))
    );
    assert_eq!(
        (&state["last_gate"], &state["exit_code"], &state["stuck_count"]),
        (&json!("tests"), &json!(1), &json!(2))
    );
    assert_eq!(state["error_hash"].as_str().unwrap().len(), 8);
    assert_eq!(state["attempts"].as_array().unwrap().len(), 2);
    assert_eq!(state["attempts"][1]["shift"], false);
    let context = fs::read_to_string(sandbox.project().join(".ralph_context.md")).unwrap();
    for part in [
        "# Ralph Loop Context: add-auth\n",
        "- Iteration: 2 of 2\n",
        "- Last gate failed: tests\n",
        "- Stuck count: 2 (threshold: 3)\n",
        "## Last Error Output (verbatim)\n",
        "FAILED test_work: no good",
    ] {
        assert!(context.contains(part), "{part:?} is not in {context}");
    }
    let branches = wip(&sandbox);
    assert_eq!(branches.len(), 1, "{branches:?}");
    assert!(branches[0].starts_with("wip/ralph-fail-add-auth-"), "{branches:?}");
    let kept = sandbox.git(&["ls-tree", "-r", "--name-only", &branches[0]]);
    assert!(kept.contains("tries.txt") && !kept.contains(".ralph"), "{kept}");
    assert_eq!(sandbox.git(&["rev-parse", "--abbrev-ref", "HEAD"]), "main\n");
    assert!(!sandbox.project().join(".ralph.lock").exists());
}

#[test]
fn an_earlier_run_is_archived_without_a_question() {
    let sandbox = project();
    let (agent, reviewer) = (able_in(&sandbox, 9), content(&sandbox));
    sandbox.refrain(&words(&agent, &reviewer, &["-n", "1"])).with_code(10);
    let able = able_in(&sandbox, 1);
    let run = sandbox.refrain(&words(&able, &reviewer, &["--non-interactive"])).with_code(0);
    let said = "the earlier run of add-auth (iteration-cap, iteration 1) is archived, and a new one begins; \
                refrain resume add-auth continues a run instead";
    assert!(run.stderr.contains(said), "{}", run.stderr);
    assert_eq!(sandbox.status("add-auth")["iteration"], 1, "begun anew");
    let run = sandbox.refrain(&words(&able, &reviewer, &[])).with_code(0);
    let said = "the earlier run of add-auth (completed, iteration 1) is archived, and a new one begins\n";
    assert!(run.stderr.contains(said), "{}", run.stderr);
}

/// `-n` is the total, also if an earlier run continues.
#[test]
fn the_number_of_iterations_is_a_total_where_an_earlier_run_continues() {
    let sandbox = project();
    let (agent, reviewer) = (able_in(&sandbox, 3), content(&sandbox));
    sandbox.refrain(&words(&agent, &reviewer, &["-n", "2"])).with_code(10);
    let again = |total: &str| {
        let mut terminal = Terminal::open(&sandbox, &words(&agent, &reviewer, &["-n", total]), &[]);
        terminal.wait_for("[y/N]");
        terminal.type_keys("y\n");
        terminal.wait()
    };
    let (code, text) = again("2");
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("has used 2 iterations, and -n is the total"), "{text}");
    let (code, text) = again("4");
    assert_eq!(code, 0, "{text}");
    let status = sandbox.status("add-auth");
    assert_eq!((&status["charged"], &status["max_iterations"]), (&json!(3), &json!(4)));
}

#[test]
fn an_earlier_run_continues_with_its_own_options_or_not_at_all() {
    let sandbox = project();
    let (agent, reviewer) = (able_in(&sandbox, 3), content(&sandbox));
    sandbox.refrain(&words(&agent, &reviewer, &["-n", "2"])).with_code(10);
    let other = sandbox.agent("other", "true");
    for (agent, reviewer, more, option) in [
        (&other, &reviewer, None, "--command"),
        (&agent, &other, None, "--reviewer"),
        (&agent, &reviewer, Some("--require-approval"), "--require-approval"),
    ] {
        let more: Vec<_> = ["-n", "4"].into_iter().chain(more).collect();
        let mut terminal = Terminal::open(&sandbox, &words(agent, reviewer, &more), &[]);
        terminal.wait_for("[y/N]");
        terminal.type_keys("y\n");
        let (code, text) = terminal.wait();
        assert_eq!(code, 2, "{text}");
        assert!(
            text.contains(&format!("{option}: the earlier run of add-auth continues as it was started")),
            "{text}"
        );
    }
    assert_eq!(sandbox.status("add-auth")["charged"], 2);
}

#[test]
fn ignored_settings_and_gates_are_noted_before_the_run_begins() {
    let sandbox = project();
    let (agent, reviewer) = (able_in(&sandbox, 1), content(&sandbox));
    write(&sandbox.project().join("go.mod"), "module empty\n");
    sandbox.trust();
    write(&sandbox.project().join("refrain.toml"), "[start]\nmax-iterations = 3\n");
    // Not every machine has Go.
    let run = sandbox.refrain(&words(&agent, &reviewer, &["--allow-missing-gates"])).with_code(0);
    for note in ["refrain.toml is not trusted", "note: go.mod has no *_test.go"] {
        assert!(run.stderr.contains(note), "{}", run.stderr);
    }
}

#[test]
fn a_reviewer_that_does_not_pass_refuses_and_is_heard() {
    let sandbox = project();
    let agent = able_in(&sandbox, 1);
    let reviewer = sandbox.agent("strict", "echo SPEC_FAIL\necho The word stands alone.");
    sandbox.refrain(&words(&agent, &reviewer, &["-n", "2"])).with_code(10);
    assert_eq!(ralph(&sandbox)["last_gate"], "spec");
    let prompt = sandbox.kept_text("add-auth", "0002", "prompt.md");
    assert!(prompt.contains("The word stands alone."), "{prompt}");
}

#[test]
fn the_variables_of_the_seed_set_its_limits() {
    let sandbox = project();
    let (agent, reviewer) = (sandbox.agent("slow", "exec sleep 60"), content(&sandbox));
    let variables =
        [("RALPH_TIMEOUT_IMPLEMENT", "0.2"), ("RALPH_TIMEOUT_GLOBAL", "1h"), ("RALPH_STUCK_THRESHOLD", "1")];
    let mut command = sandbox.command(&words(&agent, &reviewer, &["-n", "2"]));
    for (name, value) in variables {
        command = command.env(name, value);
    }
    command.run().with_code(10);
    let status = sandbox.status("add-auth");
    assert_eq!(status["iterations"][0]["outcome"], "time-limit");
    assert_eq!(
        (&status["limits"]["timeout_ms"], &status["limits"]["max_duration_ms"]),
        (&json!(200), &json!(3_600_000))
    );
    let bad =
        sandbox.command(&words(&agent, &reviewer, &[])).env("RALPH_TIMEOUT_TEST", "soon").run().with_code(2);
    assert!(bad.stderr.contains("RALPH_TIMEOUT_TEST: \"soon\": accepted: seconds"), "{}", bad.stderr);
}

#[test]
fn a_run_with_invalid_arguments_is_refused() {
    let sandbox = project();
    let (agent, reviewer) = (able_in(&sandbox, 1), content(&sandbox));
    for (args, words) in [(["run", "!?", "task.md"], "a letter of a-z"), (["run", "t", "gone.md"], "gone.md")]
    {
        let run = sandbox
            .refrain(&[&args[..], &["--command", &agent, "--reviewer", &reviewer]].concat())
            .with_code(2);
        assert!(run.stderr.contains(words), "{}", run.stderr);
    }
    // Another tool works there.
    write(&sandbox.project().join(".ralph.lock"), format!("{}\n", std::process::id()));
    let run = sandbox.refrain(&words(&agent, &reviewer, &[])).with_code(17);
    assert!(run.stderr.contains(".ralph.lock"), "{}", run.stderr);
    write(&sandbox.project().join(".ralph.lock"), "999999999\n");
    sandbox.refrain(&words(&agent, &reviewer, &[])).with_code(0);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a process that its parent does not wait for is wanted")]
fn a_lock_whose_process_has_ended_is_stale() {
    let sandbox = project();
    let (agent, reviewer) = (able_in(&sandbox, 1), content(&sandbox));
    let lock = sandbox.project().join(".ralph.lock");
    // This process is younger than the lock: its number was another's then.
    write(&lock, format!("{}\n", std::process::id()));
    let long_ago = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    fs::File::options().write(true).open(&lock).unwrap().set_modified(long_ago).unwrap();
    sandbox.refrain(&words(&agent, &reviewer, &[])).with_code(0);
    // One that is dead, and that its parent has not waited for.
    let mut dead = std::process::Command::new("true").spawn().unwrap();
    let stat = format!("/proc/{}/stat", dead.id());
    while !fs::read_to_string(&stat).unwrap().contains(") Z ") {
        std::thread::yield_now();
    }
    write(&lock, format!("{}\n", dead.id()));
    sandbox.refrain(&words(&agent, &reviewer, &[])).with_code(0);
    dead.wait().unwrap();
}

#[test]
fn a_project_without_tests_begins_with_a_warning_and_its_new_tests_decide() {
    let sandbox = plain_folder();
    write(&sandbox.project().join("task.md"), "Do it.\n");
    let reviewer = content(&sandbox);
    let agent = sandbox.agent(
        "worker",
        "echo 'grep -q good work.txt' > test.sh\n[ $REFRAIN_ITERATION = 1 ] || echo good > work.txt",
    );
    let run = sandbox.refrain(&words(&agent, &reviewer, &[])).with_code(0);
    assert!(
        run.stderr.contains("has no tests yet: gate new-tests runs those that the run makes; without any,")
    );
    let status = sandbox.status("add-auth");
    assert_eq!((&status["iteration"], &status["gates"][0]["name"]), (&json!(2), &json!("new-tests")));
    assert_eq!((&status["verified"], &status["gates"][0]["own_tests"]), (&json!(true), &json!(true)));
    let report = sandbox.refrain(&["report", "add-auth"]).with_code(0).stdout;
    assert!(report.contains("passed: tests that the loop itself made"), "{report}");

    fs::remove_file(sandbox.project().join("test.sh")).unwrap();
    let idle = sandbox.agent("idle", "echo more >> work.txt");
    let run = sandbox.refrain(&words(&idle, &reviewer, &[])).with_code(0);
    assert!(run.stdout.contains("◐ unverified") && !run.stdout.contains("✔ verified"), "{}", run.stdout);
    assert!(run.stdout.contains("; unverified, as there are no tests"), "{}", run.stdout);
    let status = sandbox.status("add-auth");
    assert_eq!((&status["iteration"], &status["verified"]), (&json!(1), &json!(false)));
    assert_eq!(status["gates"][0]["own_tests"], json!(false));
}

#[test]
fn run_accepts_the_options_of_start() {
    let sandbox = sandbox();
    write(&sandbox.project().join("task.md"), "Do it.\n");
    sandbox.git(&["add", "-A"]);
    sandbox.git(&["commit", "-qm", "Task"]);
    let reviewer = content(&sandbox);
    let agent = sandbox.agent("worker", "echo $WORD > work.txt");
    let gate = "work=grep -q good work.txt";
    let more = ["--gate", gate, "--env", "WORD=good", "--worktree", "--git-workflow", "commit"];
    let more = [&more[..], &["--memory", "off", "--soft-gate", "no=false", "--gate-timeout", "7s"]].concat();
    sandbox.refrain(&words(&agent, &reviewer, &more)).with_code(0);
    let status = sandbox.status("add-auth");
    let names: Vec<_> = status["gates"].as_array().unwrap().iter().map(|gate| &gate["name"]).collect();
    assert_eq!(names, ["work", "no", "spec"]);
    assert_eq!(status["commits"].as_array().unwrap().len(), 1);
    assert!(!sandbox.project().join("work.txt").exists(), "it works in a worktree of its own");
    for (more, says) in [
        (["--spec-gate", "task.md"].as_slice(), "--spec-gate: PROMPT_FILE is the specification"),
        (&["--max-cost", "3"], "max-cost"),
        (&["--gate", "no-such-program"], "no-such-program"),
    ] {
        let run = sandbox.refrain(&words(&agent, &reviewer, more)).with_code(2);
        assert!(run.stderr.contains(says), "{more:?}: {}", run.stderr);
    }
}

#[test]
fn a_task_id_may_have_any_shape() {
    let sandbox = project();
    let (agent, reviewer) = (able_in(&sandbox, 1), content(&sandbox));
    for (task, id) in [("Add Auth", "add-auth"), ("TASK_3", "task-3"), ("2.1", "2-1"), ("fix.bug", "fix-bug")]
    {
        let words = ["run", task, "task.md", "--command", &agent, "--reviewer", &reviewer];
        let run = sandbox.refrain(&words).with_code(0);
        assert!(run.stderr.contains(&format!("note: task {task:?} is loop {id}")), "{}", run.stderr);
        assert_eq!(sandbox.status(id)["status"], "completed");
    }
}
