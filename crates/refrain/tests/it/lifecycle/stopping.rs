//! Requests to a loop: pause, cancel, steer; to a running one, a waiting one, an ended one.

use refrain_core::r#loop::Grant;
use refrain_engine::{EngineError, Host, Service};
use serde_json::json;
use testkit::{Gate, Sandbox, Session};

use crate::commits::hosted;
use crate::{CLAIM, sandbox};

/// A loop whose every iteration waits at a gate, and claims in its third; it is waiting in its first now.
fn running(sandbox: &Sandbox, id: &str) -> (Gate, Session) {
    let gate = sandbox.gate(id);
    let script = format!(
        "echo \"$REFRAIN_ITERATION.$REFRAIN_ATTEMPT\" >> $NOTES/{id}\nread -r _ < $GATES/{id}\ntest $REFRAIN_ITERATION -lt 3 || {CLAIM}"
    );
    let agent = sandbox.agent(id, &script);
    let session = sandbox.spawn(&["start", "--command", &agent, "--name", id, "--prompt", "Go."]);
    sandbox.wait_for_note(id);
    (gate, session)
}

/// As when `pause` or another `resume` comes between the two processes of `resume --detach`.
#[test]
fn a_detached_runner_that_comes_too_late_leaves_the_loop_as_it_is() {
    let sandbox = sandbox();
    let (gate, session) = running(&sandbox, "job");
    let host = hosted::host(&sandbox);
    sandbox.refrain(&["pause", "job"]).with_code(0);
    gate.let_one_pass();
    session.wait().with_code(16);
    let before = sandbox.journal("job");
    sandbox.refrain(&["drive", "job"]).with_code(16);
    assert_eq!(sandbox.journal("job"), before);

    let other = format!(
        "cd {}; mkfifo ../ready; {} drive job > ../ready & read -r _ < ../ready; exit 1",
        sandbox.project().display(),
        env!("CARGO_BIN_EXE_refrain")
    );
    let program = sandbox.agent("late", &other).into();
    let host = Host { program, ..host };
    let project = camino::Utf8PathBuf::from_path_buf(sandbox.project()).unwrap();
    let service = Service::open(&project, host).unwrap();
    let id = "job".parse().unwrap();
    let runner = service.resume(&id, &Grant::default(), false).unwrap();
    let refused = service.detach(runner, &[]).unwrap_err();
    assert!(matches!(&refused, EngineError::Driven { pid: Some(_), .. }), "{refused}");
    gate.let_one_pass();
    gate.let_one_pass();
    sandbox.wait_for_status("job", "completed");
}

#[test]
fn a_pause_lets_the_iteration_end_and_resume_continues() {
    let sandbox = sandbox();
    let (gate, session) = running(&sandbox, "job");
    let pause = sandbox.refrain(&["pause", "job"]).with_code(0);
    assert!(pause.stdout.contains("after this iteration"), "{}", pause.stdout);
    assert_eq!(sandbox.status("job")["status"], "running", "the iteration continues");
    gate.let_one_pass();
    let run = session.wait().with_code(16);
    assert!(run.stdout.contains("refrain resume job"), "it says how to go on: {}", run.stdout);
    let status = sandbox.status("job");
    assert_eq!((&status["status"], &status["charged"]), (&json!("paused"), &json!(1)));
    let again = sandbox.refrain(&["pause", "job"]).with_code(17);
    assert!(again.stderr.contains("paused"), "{}", again.stderr);

    gate.let_one_pass();
    gate.let_one_pass();
    sandbox.refrain(&["resume", "job"]).with_code(0);
    assert_eq!(sandbox.note("job"), "1.1\n2.1\n3.1\n");
}

#[test]
fn a_pause_in_the_iteration_that_completes_is_too_late_and_the_end_says_so() {
    let sandbox = sandbox();
    let gate = sandbox.gate("go");
    let agent = sandbox.agent("agent", &format!("echo x > $NOTES/began; read -r _ < $GATES/go; {CLAIM}"));
    let session = sandbox.spawn(&["start", "--command", &agent, "--name", "job", "p"]);
    sandbox.wait_for_note("began");
    sandbox.refrain(&["pause", "job"]).with_code(0);
    gate.let_one_pass();
    let run = session.wait().with_code(0);
    assert!(
        run.stdout.contains("the pause came too late: the loop ended in that iteration"),
        "{}",
        run.stdout
    );
}

#[test]
fn requests_that_wait_are_listed_a_line_each() {
    let sandbox = sandbox();
    let (gate, session) = running(&sandbox, "job");
    for text in ["Mind the oak.", "Leave the parser alone."] {
        sandbox.refrain(&["steer", "job", text]).with_code(0);
    }
    let shown = sandbox.refrain(&["status", "job"]).with_code(0).stdout;
    let lines: Vec<_> = shown.lines().filter(|line| line.contains("refrain take-back job ")).collect();
    assert!(lines.len() == 2 && lines[0].starts_with("queued ") && lines[1].starts_with("   "), "{shown}");
    sandbox.refrain(&["cancel", "job", "--now"]).with_code(0);
    session.wait().with_code(15);
    drop(gate);
}

#[test]
fn pause_now_ends_the_agent_and_refunds_the_attempt() {
    let sandbox = sandbox();
    let (gate, session) = running(&sandbox, "job");
    sandbox.refrain(&["pause", "--now"]).with_code(0);
    session.wait().with_code(16);
    sandbox.no_process_is_left();
    let status = sandbox.status("job");
    assert_eq!((&status["charged"], &status["iterations"][0]["outcome"]), (&json!(0), &json!("interrupted")));
    (0..3).for_each(|_| gate.let_one_pass());
    sandbox.refrain(&["resume", "job"]).with_code(0);
    assert_eq!(sandbox.note("job"), "1.1\n1.2\n2.1\n3.1\n");
}

#[test]
fn more_steering_than_a_prompt_takes_is_wrong_usage() {
    let sandbox = sandbox();
    let (gate, session) = running(&sandbox, "job");
    let long = "x".repeat(8_193);
    let refused = sandbox.refrain(&["steer", "job", &long]).with_code(2);
    assert!(
        refused.stderr.contains("8193 bytes of steering are too many; accepted: 1 to 8192"),
        "{refused:?}"
    );
    sandbox.refrain(&["steer", "job", &long[..8_192]]).with_code(0);
    (0..3).for_each(|_| gate.let_one_pass());
    session.wait().with_code(0);
    assert!(sandbox.kept_text("job", "0002", "prompt.md").contains(&long[..8_192]));
}

#[test]
fn cancel_lets_the_iteration_end_and_is_final() {
    let sandbox = sandbox();
    let (gate, session) = running(&sandbox, "job");
    sandbox.refrain(&["cancel"]).with_code(0);
    gate.let_one_pass();
    session.wait().with_code(15);
    assert_eq!(sandbox.status("job")["status"], "cancelled");
    let again = sandbox.refrain(&["cancel", "job"]).with_code(0);
    assert!(again.stdout.contains("already cancelled"), "{}", again.stdout);
    for words in [["resume", "job"].as_slice(), &["pause", "job"], &["steer", "job", "left"]] {
        let refused = sandbox.refrain(words).with_code(17);
        assert!(refused.stderr.contains("cancelled"), "{words:?}: {}", refused.stderr);
    }
}

#[test]
fn cancel_now_ends_the_agent_at_once() {
    let sandbox = sandbox();
    let (_gate, session) = running(&sandbox, "job");
    sandbox.refrain(&["cancel", "job", "--now"]).with_code(0);
    session.wait().with_code(15);
    sandbox.no_process_is_left();
    let status = sandbox.status("job");
    assert_eq!(status["iterations"][0]["outcome"], "cancelled");
    assert_eq!(status["ended_at"].as_str().map(|at| at.ends_with('Z')), Some(true));
}

#[test]
fn cancel_now_is_stronger_than_a_cancel_before_it() {
    let sandbox = sandbox();
    let (_gate, session) = running(&sandbox, "job");
    sandbox.refrain(&["cancel", "job"]).with_code(0);
    sandbox.refrain(&["cancel", "job", "--now"]).with_code(0);
    session.wait().with_code(15);
}

#[test]
fn cancel_all_ends_every_loop_of_the_project_that_is_not_over() {
    let sandbox = sandbox();
    let (_a, first) = running(&sandbox, "first");
    let (gate, second) = running(&sandbox, "second");
    sandbox.refrain(&["pause", "second"]).with_code(0);
    gate.let_one_pass();
    second.wait().with_code(16);
    let agent = sandbox.agent("done", CLAIM);
    sandbox.refrain(&["start", "--command", &agent, "--name", "done", "p", "--share-worktree"]).with_code(0);

    let run = sandbox.refrain(&["cancel", "--all", "--now"]).with_code(0);
    assert!(
        run.stdout.contains("first") && run.stdout.contains("second") && !run.stdout.contains("done"),
        "{}",
        run.stdout
    );
    first.wait().with_code(15);
    let words = ["first", "second", "done"].map(|id| sandbox.status(id)["status"].clone());
    assert_eq!(words, [json!("cancelled"), json!("cancelled"), json!("completed")]);
}

#[test]
fn cancelling_a_crashed_loop_ends_its_processes() {
    let sandbox = sandbox();
    let (_gate, session) = running(&sandbox, "job");
    session.kill();
    sandbox.refrain(&["cancel", "job"]).with_code(0);
    assert_eq!(sandbox.status("job")["status"], "cancelled");
    sandbox.no_process_is_left();
}

#[test]
fn a_cancel_that_a_killed_runner_missed_is_done_by_the_next_command() {
    for words in
        [["resume", "job"].as_slice(), &["resume", "job", "--max-iterations", "9"], &["cancel", "job"]]
    {
        let sandbox = sandbox();
        let (_gate, session) = running(&sandbox, "job");
        sandbox.refrain(&["cancel", "job"]).with_code(0);
        session.kill();
        let code = if words[0] == "resume" { 15 } else { 0 };
        sandbox.refrain(words).with_code(code);
        let status = sandbox.status("job");
        assert_eq!((&status["status"], &status["started"]), (&json!("cancelled"), &json!(1)), "{words:?}");
    }
}

#[test]
fn steering_that_would_not_fit_into_a_prompt_is_refused() {
    let sandbox = sandbox();
    let (_gate, _session) = running(&sandbox, "job");
    let words = "x".repeat(5000);
    sandbox.refrain(&["steer", "job", &words]).with_code(0);
    let refused = sandbox.refrain(&["steer", "job", &words]).with_code(2);
    assert!(refused.stderr.contains("5000") && refused.stderr.contains("8192"), "{}", refused.stderr);
    sandbox.refrain(&["steer", "job", "mind the gap"]).with_code(0);
}

#[test]
fn steering_stands_in_the_next_prompt_and_only_there() {
    let sandbox = sandbox();
    let (gate, session) = running(&sandbox, "job");
    sandbox.refrain(&["steer", "job", "Take", "the left $(way)"]).with_code(0);
    (0..3).for_each(|_| gate.let_one_pass());
    session.wait().with_code(0);
    let prompts = [1, 2, 3].map(|n| sandbox.kept_text("job", &format!("000{n}"), "prompt.md"));
    assert_eq!(
        prompts.each_ref().map(|prompt| prompt.contains("Take the left $(way)")),
        [false, true, false],
        "{prompts:#?}"
    );
}

#[test]
fn steering_of_a_stopped_loop_is_used_when_it_continues() {
    let sandbox = sandbox();
    let (gate, session) = running(&sandbox, "job");
    sandbox.refrain(&["pause", "job", "--now"]).with_code(0);
    session.wait().with_code(16);
    sandbox.refrain(&["steer", "job", "Mind the gap."]).with_code(0);
    (0..3).for_each(|_| gate.let_one_pass());
    sandbox.refrain(&["resume", "job"]).with_code(0);
    assert!(sandbox.kept_text("job", "0001.2", "prompt.md").contains("Mind the gap."));
}

#[test]
fn a_rest_between_iterations_can_be_cut_short_paused_and_cancelled() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", &format!("test $REFRAIN_ITERATION -lt 2 || {CLAIM}"));
    for (id, words, code) in [("p", ["pause", "p"], 16), ("c", ["cancel", "c"], 15)] {
        let session = sandbox.spawn(&["start", "--command", &agent, "--name", id, "--pause", "1h", "p"]);
        let status = sandbox.wait_for_status(id, "waiting");
        assert_eq!(status["wait"]["kind"], "pace");
        assert!(status["wait"]["until"].as_str().unwrap() > status["updated_at"].as_str().unwrap());
        sandbox.refrain(&words).with_code(0);
        session.wait().with_code(code);
    }
    sandbox.refrain(&["resume", "p", "--now"]).with_code(0);
}

#[test]
fn a_runner_that_drives_a_loop_keeps_others_from_it() {
    let sandbox = sandbox();
    let (_gate, session) = running(&sandbox, "job");
    let pid = session.pid().to_string();
    let refused = sandbox.refrain(&["resume", "job"]).with_code(17);
    assert!(refused.stderr.contains("job") && refused.stderr.contains(&pid), "{}", refused.stderr);
    sandbox.refrain(&["archive", "job"]).with_code(17);
    let refused = sandbox.refrain(&["start", "--command", "true", "--name", "job", "p"]).with_code(17);
    assert!(refused.stderr.contains("job"), "{}", refused.stderr);
    assert_eq!(sandbox.status("job")["status"], "running");
}

#[test]
fn a_second_loop_in_the_same_worktree_is_mentioned_unless_it_is_to_be_shared() {
    let sandbox = sandbox();
    let (_gate, _session) = running(&sandbox, "job");
    let agent = sandbox.agent("agent", CLAIM);
    let run = sandbox.refrain(&["start", "--command", &agent, "p"]).with_code(0);
    assert!(run.stderr.contains("job"), "{}", run.stderr);
    let run = sandbox.refrain(&["start", "--command", &agent, "p", "--share-worktree"]).with_code(0);
    assert!(!run.stderr.contains("job"), "{}", run.stderr);
}

#[test]
fn ctrl_c_while_the_files_are_looked_at_lets_no_iteration_begin() {
    let sandbox = sandbox();
    let _gate = sandbox.gate("git");
    // The look after the first iteration takes for ever.
    let usual = sandbox.env().into_iter().find(|(name, _)| *name == "PATH").unwrap().1;
    let script = format!(
        "case \"$*\" in *ls-files*--others*) [ ! -e \"$NOTES/ran\" ] || {{ echo x > \"$NOTES/looking\"; read -r _ < \"$GATES/git\"; }};; esac\n\
         PATH='{usual}' exec git \"$@\""
    );
    let git = sandbox.agent("git", &script);
    let path = format!("{}:{usual}", std::path::Path::new(&git).parent().unwrap().display());
    let agent = sandbox.agent("agent", "echo x > \"$NOTES/ran\"");
    let session =
        sandbox.command(&["start", "--command", &agent, "--name", "job", "p"]).env("PATH", &path).spawn();
    sandbox.wait_for_note("looking");
    session.signal(testkit::Signal::INT);
    session.wait().with_code(16);
    assert_eq!(sandbox.status("job")["charged"], 1);
}

#[test]
fn a_folder_without_git_is_named_and_a_large_one_too() {
    let sandbox = crate::plain_folder();
    let many = sandbox.project().join("many");
    std::fs::create_dir(&many).unwrap();
    (0..10_001).for_each(|number| testkit::write(&many.join(number.to_string()), ""));
    let run = sandbox.refrain(&["start", "--command", "true", "--name", "job", "-m", "1", "p"]).with_code(10);
    assert!(
        run.stdout.contains("git    no repository here: all files of the folder are read"),
        "{}",
        run.stdout
    );
    let note =
        "holds more than 10000 files and folders, which Refrain reads after each iteration; git init there";
    assert!(run.stderr.contains(note), "{}", run.stderr);
    let small = sandbox.project().join("small");
    std::fs::create_dir(&small).unwrap();
    let run =
        sandbox.command(&["start", "--command", "true", "-m", "1", "p"]).dir(&small).run().with_code(10);
    assert!(!run.stderr.contains("holds more than"), "{}", run.stderr);
}
