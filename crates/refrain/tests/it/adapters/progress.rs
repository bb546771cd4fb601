//! What counts as progress: the work, not what gates, commits and messages say of it. Each test is a finding of the
//! audit.

use serde_json::{Value, json};
use testkit::{Sandbox, write};

use crate::{CLAIM, plain_folder, sandbox};

/// Runs a loop of this script with these options, and returns its status.
fn run(sandbox: &Sandbox, script: &str, more: &[&str], code: i32) -> Value {
    let agent = sandbox.agent("agent", script);
    let words = ["start", "--command", &agent, "--name", "job", "-p", "Do it."];
    sandbox.refrain(&[&words[..], more].concat()).with_code(code);
    sandbox.status("job")
}

fn prompt(sandbox: &Sandbox, iteration: u32) -> String {
    sandbox.kept_text("job", &format!("{iteration:04}"), "prompt.md")
}

/// A git repository, and a folder without one.
fn both() -> [Sandbox; 2] {
    [sandbox(), plain_folder()]
}

#[test]
fn an_agent_that_builds_one_part_a_run_is_let_build_it() {
    for sandbox in both() {
        let script =
            format!("echo part >> parts.txt\n[ $(wc -l < parts.txt) -lt 8 ] || {{ touch done; {CLAIM}; }}");
        let gate = ["--gate", "acceptance=test -f done || { echo 'FAILED: not done'; exit 1; }"];
        let status = run(&sandbox, &script, &gate, 0);
        assert_eq!((&status["iteration"], &status["verified"]), (&json!(8), &json!(true)));
    }
}

/// Exit code 0 only shows that the agent ended.
#[test]
fn an_agent_that_cannot_claim_is_let_build_part_by_part_too() {
    let sandbox = sandbox();
    let script = "echo part >> parts.txt\n[ $(wc -l < parts.txt) -lt 8 ] || touch done";
    let gate = ["--no-promise", "--gate", "acceptance=test -f done || { echo 'FAILED: not done'; exit 1; }"];
    let status = run(&sandbox, script, &gate, 0);
    assert_eq!((&status["iteration"], &status["verified"]), (&json!(8), &json!(true)));
    assert!(
        prompt(&sandbox, 2).contains("\nRun 1: no claim; gate acceptance failed"),
        "{}",
        prompt(&sandbox, 2)
    );
}

#[test]
fn a_gate_that_failed_from_the_start_never_ends_a_loop_that_works() {
    let sandbox = sandbox();
    let gate = ["--gate", "t=echo 'FAILED: not yet'; exit 1", "--max-iterations", "14"];
    let status = run(&sandbox, "echo more >> work.txt", &gate, 10);
    assert_eq!(status["last_failure"]["count"], 14);
    assert!(!prompt(&sandbox, 6).contains("STRATEGY SHIFT:"));
    assert!(prompt(&sandbox, 7).contains("STRATEGY SHIFT: the same failure came 6 times in a row"));
}

#[test]
fn a_gate_that_passed_before_ends_it_after_ten() {
    let sandbox = sandbox();
    let gate = ["--gate", "t=[ ! -e work.txt ] || { echo 'FAILED: broken'; exit 1; }"];
    let status = run(&sandbox, "echo more >> work.txt", &gate, 13);
    assert_eq!(status["iteration"], 10);
}

#[test]
fn an_agent_that_does_nothing_is_noticed_without_a_gate() {
    for sandbox in both() {
        for (name, script) in [("nothing", "true"), ("words", "echo trying")] {
            let status = run(&sandbox, script, &[], 13);
            assert_eq!(status["iteration"], 5, "{name}");
            let reason = status["reason"].as_str().unwrap();
            assert!(reason.starts_with("5 iterations in a row did not change the work"), "{reason}");
            assert!(
                prompt(&sandbox, 4).contains("STRATEGY SHIFT: 3 runs in a row changed nothing in the work.")
            );
            sandbox.refrain(&["archive", "job"]).with_code(0);
        }
    }
}

#[test]
fn activity_without_a_change_of_work_is_no_progress() {
    let sandbox = sandbox();
    write(&sandbox.project().join(".gitignore"), "*.log\n");
    sandbox.git(&["add", "."]);
    sandbox.git(&["commit", "-qm", "rules"]);
    for script in [
        "git commit -q --allow-empty -m x",
        "touch README.md",
        "date +%N > noise.log",
        "date +%N > .refrain/job/notes.txt",
        "echo $REFRAIN_ITERATION > README.md; git checkout -q README.md",
    ] {
        for more in [&[][..], &["--git-workflow", "commit"]] {
            let status = run(&sandbox, script, more, 13);
            assert_eq!(status["iteration"], 5, "{script}");
            sandbox.refrain(&["archive", "job"]).with_code(0);
        }
    }
}

#[test]
fn work_that_is_taken_back_does_not_count() {
    let sandbox = sandbox();
    let status = run(&sandbox, "if [ -e a ]; then rm a; else touch a; fi", &[], 13);
    assert_eq!(status["iteration"], 6);
    let reason = status["reason"].as_str().unwrap();
    assert!(reason.contains("or took it back to an earlier state"), "{reason}");
}

#[test]
fn two_failures_in_turn_over_changed_work_do_not_end_it() {
    let sandbox = sandbox();
    let gate = "t=[ ! -e work.txt ] || { echo \"FAILED: $(tail -n 1 work.txt)\"; exit 1; }";
    let more = ["--gate", gate, "--max-iterations", "12"];
    run(&sandbox, "echo word $((REFRAIN_ITERATION % 2)) >> work.txt", &more, 10);
}

/// Half-done edits, in files that git knows and in files that it does not.
fn half_done(sandbox: &Sandbox) {
    let project = sandbox.project();
    write(&project.join("src.txt"), "v0\n");
    sandbox.git(&["add", "src.txt"]);
    sandbox.git(&["commit", "-qm", "x"]);
    write(&project.join("src.txt"), "v0\nmine\n");
    write(&project.join("new.txt"), "mine\n");
}

#[test]
fn work_on_files_that_were_dirty_before_is_work() {
    for file in ["src.txt", "new.txt"] {
        for workflow in ["none", "commit"] {
            let sandbox = sandbox();
            half_done(&sandbox);
            let gate = format!("t=echo \"seen $(wc -l < {file})\"; [ $(wc -l < {file}) -ge 9 ]");
            let script = format!("echo line >> {file}; [ $(wc -l < {file}) -lt 9 ] || {CLAIM}");
            let status = run(&sandbox, &script, &["--gate", &gate, "--git-workflow", workflow], 0);
            assert!(status["iteration"].as_u64().unwrap() >= 7, "{file} {workflow}: {status:#}");
            let told = prompt(&sandbox, 6);
            assert!(!told.contains("STRATEGY SHIFT:"), "{told}");
        }
    }
}

#[test]
fn a_gate_that_passes_does_not_hide_work_on_dirty_files() {
    let sandbox = sandbox();
    half_done(&sandbox);
    run(&sandbox, "echo x >> src.txt", &["--gate", "t=true", "--max-iterations", "8"], 10);
}

#[test]
fn the_failure_branch_has_the_work_in_dirty_files_and_names_them() {
    let sandbox = sandbox();
    half_done(&sandbox);
    let script = format!("echo line $REFRAIN_ITERATION >> src.txt\n{CLAIM}");
    let gate = ["--gate", "t=echo 'FAILED: no'; exit 1"];
    let agent = sandbox.agent("agent", &script);
    let words = ["start", "--command", &agent, "--name", "job", "-p", "Do it."];
    let out = sandbox.refrain(&[&words[..], &gate].concat()).with_code(13).stdout;
    let saved = &sandbox.status("job")["saved"];
    let branch = saved["branch"].as_str().unwrap();
    assert_eq!(saved["mixed"], json!(["src.txt"]));
    let kept = sandbox.git(&["show", &format!("{branch}:src.txt")]);
    assert_eq!(kept, std::fs::read_to_string(sandbox.project().join("src.txt")).unwrap());
    let files = sandbox.git(&["ls-tree", "-r", "--name-only", branch]);
    assert!(!files.contains("new.txt"), "what only the user changed is not the loop's: {files}");
    let last = out.lines().rev().find(|line| line.starts_with("stuck")).unwrap();
    assert!(
        last.ends_with(&format!("its work is on branch {branch}, with your own changes to src.txt")),
        "{out}"
    );
    assert!(out.contains("  changed 1 file that had changes before\n"), "{out}");
    assert!(sandbox.refrain(&["status", "job"]).with_code(0).stdout.contains(branch));
    let state = sandbox.git(&["show", &format!("{branch}:.refrain-failure/state.json")]);
    assert!(state.contains("with your own changes to src.txt") && !state.contains("0000000000"), "{state}");
}

#[test]
fn a_gate_that_writes_into_the_tree_is_named_and_does_not_burn_the_cap() {
    let sandbox = sandbox();
    let script = format!("echo more >> work.txt\n{CLAIM}");
    let agent = sandbox.agent("agent", &script);
    let gate = "t=date +%N > report.xml";
    let words = ["start", "--command", &agent, "--name", "job", "-p", "Do it.", "--gate", gate];
    let out = sandbox.refrain(&words).with_code(13).stdout;
    let status = sandbox.status("job");
    assert_eq!((&status["iteration"], &status["last_failure"]["count"]), (&json!(5), &json!(5)));
    let reason = status["reason"].as_str().unwrap();
    assert!(reason.contains("change files each time they run: report.xml, 5 times in a row"), "{reason}");
    assert!(out.contains("report.xml"), "{out}");
    let told = prompt(&sandbox, 2);
    assert!(told.contains("CLAIM REFUSED:") && told.contains("report.xml"), "{told}");
    assert!(prompt(&sandbox, 4).contains("STRATEGY SHIFT:"));
}

#[test]
fn files_that_a_gate_writes_are_no_progress() {
    let sandbox = sandbox();
    let status = run(&sandbox, "true", &["--gate", "t=date +%N >> report.xml; exit 1"], 13);
    assert_eq!(status["iteration"], 5);
}

#[test]
fn nanoseconds_since_1970_make_no_other_failure() {
    let sandbox = sandbox();
    for format in ["%s", "%s%3N", "%s%6N", "%s%N"] {
        let gate = format!("t=echo \"run at $(date +{format})\"; echo 'FAIL the bug is there'; exit 1");
        let script = format!("echo more >> work.txt\n{CLAIM}");
        let status = run(&sandbox, &script, &["--gate", &gate], 13);
        assert_eq!(status["iteration"], 5, "{format}");
        sandbox.refrain(&["archive", "job"]).with_code(0);
    }
}

#[test]
fn fewer_failing_tests_are_progress() {
    let sandbox = sandbox();
    let gate = "t=for n in 1 2 3 4 5 6 7 8; do [ -e fixed$n ] || { echo \"FAILED test_part_$n\"; bad=1; }; done; \
                [ -z \"$bad\" ]";
    let script = format!("touch fixed$REFRAIN_ITERATION\n{CLAIM}");
    let status = run(&sandbox, &script, &["--gate", gate], 0);
    assert_eq!((&status["iteration"], &status["verified"]), (&json!(8), &json!(true)));
    assert!(!prompt(&sandbox, 8).contains("STRATEGY SHIFT:"));
}

#[test]
fn a_run_counts_the_same_error_whatever_changes() {
    let sandbox = sandbox();
    write(&sandbox.project().join("test.sh"), "echo 'FAILED: not yet'; exit 1\n");
    write(&sandbox.project().join("spec.md"), "It works.\n");
    let agent = sandbox.agent("agent", "echo more >> work.txt");
    let words = ["run", "job", "spec.md", "--yes", "-n", "9", "--non-interactive", "--command", &agent];
    let run = sandbox.refrain(&words).with_code(13);
    assert_eq!(sandbox.status("job")["iteration"], 5, "{}", run.stdout);
    assert!(prompt(&sandbox, 4).contains("STRATEGY SHIFT:"));
}

#[test]
fn at_the_cap_the_branch_of_a_run_is_named() {
    let sandbox = sandbox();
    write(&sandbox.project().join("test.sh"), "echo 'FAILED: not yet'; exit 1\n");
    write(&sandbox.project().join("spec.md"), "It works.\n");
    let agent = sandbox.agent("agent", "echo more >> work.txt");
    let words = ["run", "job", "spec.md", "--yes", "-n", "2", "--non-interactive", "--command", &agent];
    let out = sandbox.refrain(&words).with_code(10).stdout;
    let status = sandbox.status("job");
    let branch = status["saved"]["branch"].as_str().unwrap();
    assert!(branch.starts_with("wip/ralph-fail-job-"), "{branch}");
    let last = out.lines().rev().find(|line| line.starts_with("iteration-cap")).unwrap();
    assert!(last.contains(branch), "{out}");
    assert!(sandbox.refrain(&["status", "job"]).with_code(0).stdout.contains(branch));
}

#[test]
fn a_session_that_changes_nothing_is_stuck_and_one_that_works_is_not() {
    for (works, turns) in [(false, 5), (true, 7)] {
        let sandbox = sandbox();
        half_done(&sandbox);
        let words =
            ["tick", "begin", "/refrain:loop", "--agent", "claude", "--session-id", "s", "--name", "job"];
        sandbox.refrain(&[&words[..], &["--args", "Do it.", "--gate", "false"]].concat()).with_code(0);
        sandbox.refrain(&["tick", "advance", "job"]).with_code(0);
        for turn in 1..=turns {
            if works {
                write(&sandbox.project().join("src.txt"), format!("{turn}\n"));
            }
            let input = json!({ "session_id": "s", "cwd": sandbox.project(), "hook_event_name": "Stop",
                "last_assistant_message": "I looked at it." });
            sandbox
                .command(&["hook", "stop", "--agent", "claude"])
                .stdin(input.to_string())
                .run()
                .with_code(0);
        }
        let word = if works { "running" } else { "stuck" };
        assert_eq!(sandbox.status("job")["status"], word);
    }
}
