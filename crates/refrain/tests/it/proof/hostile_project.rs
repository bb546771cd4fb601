//! Agents that delete files of others, and places that cannot be written: nothing of Refrain's is lost.

use std::fs;

use serde_json::json;
use testkit::{Sandbox, write};

use crate::{CLAIM, plain_folder, sandbox};

/// The loop runs `vandal` in its first two iterations and claims in its third; nothing of it may be lost.
fn survives(sandbox: &Sandbox, vandal: &str) {
    let script = format!(
        "echo work $REFRAIN_ITERATION\ntest -f \"$REFRAIN_STATE_FILE\" && echo yes >> $NOTES/state\n{vandal}\ntest $REFRAIN_ITERATION -lt 3 || {CLAIM}"
    );
    let agent = sandbox.agent("vandal", &script);
    let run = sandbox.refrain(&["start", "--command", &agent, "--name", "job", "p"]).with_code(0);
    for n in 1..=3 {
        assert!(run.has_line(&format!("[loop job iteration {n}/20]")), "{vandal}: {}", run.stdout);
    }
    let status = sandbox.status("job");
    assert_eq!(
        (&status["status"], &status["charged"], &status["started"]),
        (&json!("completed"), &json!(3), &json!(3)),
        "{vandal}"
    );
    sandbox.refrain(&["verify", "job"]).with_code(0);
    assert_eq!(
        sandbox.note("state"),
        "yes\nyes\nyes\n",
        "{vandal}: the state file is there for every attempt"
    );
    sandbox.no_process_is_left();
}

#[test]
fn in_a_repository_nothing_is_lost_to_an_agent_that_cleans_up() {
    for vandal in [
        "git clean -fdxq",
        "git clean -ffdxq; git stash -a -q; git stash drop -q",
        "echo x > new; git add new; git stash -a -q",
        "rm -rf .refrain",
        "git add -A -f .; git commit -q -m all; git rm -r -q --cached .refrain; git checkout -q -f HEAD~1 2> /dev/null",
        "chmod -R a-w .refrain; true",
        "git gc -q --prune=now; git worktree prune",
    ] {
        let sandbox = sandbox();
        survives(&sandbox, vandal);
        for n in 1..=3 {
            let kept = sandbox.kept_text("job", &format!("000{n}"), "output.log");
            assert!(kept.starts_with(&format!("work {n}\n")), "{vandal}: {kept}");
        }
    }
}

#[test]
fn a_file_where_the_folder_for_the_agent_was_does_not_stop_the_loop() {
    survives(&sandbox(), "test $REFRAIN_ITERATION = 3 || { rm -rf .refrain; touch .refrain; }");
}

#[test]
fn outside_git_a_journal_that_was_deleted_is_written_back() {
    let sandbox = plain_folder();
    survives(&sandbox, "test $REFRAIN_ITERATION != 1 || rm -rf .refrain");
    let names = sandbox.event_names("job");
    assert!(names.contains(&"journal.restored".to_owned()), "{names:?}");
    assert_eq!(names[0], "loop.started");
}

#[test]
fn outside_git_a_log_that_a_later_iteration_deletes_is_named_by_verify() {
    let sandbox = plain_folder();
    let script = format!(
        "echo work $REFRAIN_ITERATION\ntest $REFRAIN_ITERATION = 1 || {{ rm -rf .refrain; {CLAIM}; }}"
    );
    let agent = sandbox.agent("vandal", &script);
    sandbox.refrain(&["start", "--command", &agent, "--name", "job", "p"]).with_code(0);
    let verified = sandbox.refrain(&["verify", "job"]).with_code(1);
    let gone = "DIFFERS: iterations/0001/output.log: it is not there any more";
    assert!(verified.stdout.contains(gone), "{}", verified.stdout);
    // What machines of a fleet leave of a long log excuses nothing in a loop that never left its machine.
    let place = sandbox.loop_dir("job").join("iterations/0001");
    fs::create_dir_all(&place).unwrap();
    write(&place.join("output.log.excerpt"), "work 9\n");
    let verified = sandbox.refrain(&["verify", "job"]).with_code(1);
    assert!(
        verified.stdout.contains("DIFFERS: iterations/0001/output.log: it is not as it was"),
        "{verified:?}"
    );
}

#[test]
fn outside_git_output_after_the_files_were_deleted_is_kept() {
    let sandbox = plain_folder();
    let agent = sandbox.agent("agent", &format!("rm -rf .refrain\necho still here\n{}", crate::CLAIM));
    sandbox.refrain(&["start", "--command", &agent, "--name", "job", "p"]).with_code(0);
    assert_eq!(sandbox.kept_text("job", "0001", "output.log"), "still here\n<promise>COMPLETE</promise>\n");
    sandbox.refrain(&["verify", "job"]).with_code(0);
}

#[test]
fn outside_git_a_loop_with_deleted_files_still_takes_requests() {
    let sandbox = plain_folder();
    let gate = sandbox.gate("go");
    let agent = sandbox
        .agent("agent", "rm -rf .refrain\necho x > $NOTES/up.$REFRAIN_ITERATION\nread -r _ < $GATES/go");
    let session = sandbox.spawn(&["start", "--command", &agent, "--name", "job", "p"]);
    sandbox.wait_for_note("up.1");
    gate.let_one_pass();
    sandbox.wait_for_note("up.2");
    gate.let_one_pass();
    sandbox.wait_for_note("up.3");
    session.signal(testkit::Signal::INT);
    testkit::eventually("the journal is written back", || {
        sandbox.loop_dir("job").join("journal.jsonl").exists().then_some(())
    });
    sandbox.refrain(&["cancel", "job", "--now"]).with_code(0);
    session.wait().with_code(15);
    assert_eq!(sandbox.status("job")["status"], "cancelled");
}

#[test]
fn a_deleted_inbox_and_doorbell_do_not_make_a_loop_deaf() {
    let sandbox = sandbox();
    let gate = sandbox.gate("go");
    let agent = sandbox.agent("agent", "echo x > $NOTES/up\nread -r _ < $GATES/go");
    let session = sandbox.spawn(&["start", "--command", &agent, "--name", "job", "p"]);
    sandbox.wait_for_note("up");
    let dir = sandbox.loop_dir("job");
    let _ = fs::remove_dir_all(dir.join("inbox"));
    sandbox.refrain(&["pause", "job"]).with_code(0);
    gate.let_one_pass();
    session.wait().with_code(16);
}

#[test]
fn a_deleted_doorbell_is_made_again_and_requests_are_read() {
    let sandbox = sandbox();
    let gate = sandbox.gate("go");
    let agent = sandbox.agent("agent", "echo x > $NOTES/up\nread -r _ < $GATES/go");
    let session = sandbox.spawn(&["start", "--command", &agent, "--name", "job", "p"]);
    sandbox.wait_for_note("up");
    fs::remove_file(sandbox.loop_dir("job").join("doorbell")).unwrap();
    sandbox.refrain(&["pause", "job"]).with_code(0);
    gate.let_one_pass();
    session.wait().with_code(16);
    assert_eq!(sandbox.status("job")["iteration"], 1, "nothing was begun that was not to be");
}

#[test]
fn a_worktree_that_vanished_blocks_the_loop_and_the_reason_is_on_record() {
    let sandbox = sandbox();
    let side = sandbox.root().join("side");
    let side = side.to_str().unwrap();
    sandbox.tool("git", &["worktree", "add", "-q", side]).run().with_code(0);
    let agent = sandbox.agent("agent", "cd / && rm -rf \"$OLDPWD\"");
    let run =
        sandbox.refrain(&["-C", side, "start", "--command", &agent, "--name", "job", "p"]).with_code(14);
    assert!(run.stdout.contains(side), "it names the place: {}", run.stdout);
    let status = sandbox.status("job");
    assert_eq!((&status["status"], &status["charged"]), (&json!("blocked"), &json!(1)));
    assert!(status["reason"].as_str().unwrap().contains(side), "{status}");
    sandbox.tool("git", &["worktree", "prune"]).run().with_code(0);
    sandbox.tool("git", &["worktree", "add", "-q", "-f", side, "side"]).run().with_code(0);
    let agent = sandbox.agent("agent", CLAIM);
    assert!(agent.ends_with("agent"));
    sandbox.refrain(&["-C", side, "resume", "job"]).with_code(0);
}

#[test]
fn a_state_file_that_is_no_file_does_not_stop_the_loop() {
    let sandbox = sandbox();
    let agent = sandbox.agent(
        "agent",
        &format!("rm -f \"$REFRAIN_STATE_FILE\"; test $REFRAIN_ITERATION = 2 && {{ {CLAIM}; exit; }}; mkfifo \"$REFRAIN_STATE_FILE\""),
    );
    sandbox.refrain(&["start", "--command", &agent, "--name", "job", "p"]).with_code(0);
}

/// Mounts a small file system over the project if this user may; prints a note if not.
fn mounted(sandbox: &Sandbox, options: &str) -> Option<Unmount> {
    let place = sandbox.project();
    let place = place.to_str().unwrap();
    let run =
        sandbox.tool("mount", &["-t", "tmpfs", "-o", options, "tmpfs", place]).dir(sandbox.root()).run();
    if run.code != 0 {
        eprintln!("SKIPPED: mount is not allowed here: {}", run.stderr.trim());
        return None;
    }
    Some(Unmount(Some(sandbox.tool("umount", &["--lazy", place]).dir(sandbox.root()))))
}

/// Takes the mount away again, also when the test fails.
struct Unmount(Option<testkit::Invocation>);

impl Drop for Unmount {
    fn drop(&mut self) {
        if let Some(umount) = self.0.take() {
            umount.run();
        }
    }
}

#[test]
fn a_project_that_cannot_be_written_is_a_failure_that_names_it() {
    let sandbox = plain_folder();
    let agent = sandbox.agent("agent", "echo x > $NOTES/ran");
    let Some(_mount) = mounted(&sandbox, "ro,size=1m") else { return };
    let run = sandbox.refrain(&["start", "--command", &agent, "--name", "job", "p"]).with_code(1);
    assert_eq!(run.stderr.lines().filter(|line| !line.starts_with("  ")).count(), 1, "{}", run.stderr);
    assert!(run.stderr.contains(sandbox.project().to_str().unwrap()), "it names the place: {}", run.stderr);
    assert!(run.stderr.contains("give yourself the right to write there"), "{}", run.stderr);
    assert_eq!(sandbox.note("ran"), "", "nothing was begun");
    sandbox.refrain(&["list"]).with_code(0);
}

#[test]
fn a_full_disk_stops_the_loop_with_a_valid_journal_and_resume_continues() {
    let sandbox = plain_folder();
    let agent = sandbox.agent("agent", &format!("test -e $NOTES/second && {{ {CLAIM}; exit; }}; echo x > $NOTES/second; head -c 8000000 /dev/zero | tr '\\0' x"));
    let Some(_mount) = mounted(&sandbox, "size=1m") else { return };
    let ballast = sandbox.project().join("ballast");
    testkit::write(&ballast, vec![0; 500_000]);
    sandbox.refrain(&["start", "--command", &agent, "--name", "job", "--quiet", "p"]).with_code(14);
    sandbox.no_process_is_left();
    sandbox.refrain(&["verify", "job"]).with_code(0);
    let status = sandbox.status("job");
    assert!(status["reason"].as_str().unwrap().contains("No space left"), "{status}");
    assert_eq!(status["iterations"][0]["outcome"], "output-lost");
    assert_eq!(status["charged"], 0, "the disk is not the work's fault");
    fs::remove_file(ballast).unwrap();
    sandbox.refrain(&["resume", "job", "--quiet"]).with_code(0);
    assert_eq!(sandbox.status("job")["charged"], 1);
    sandbox.refrain(&["verify", "job"]).with_code(0);
}

#[test]
fn a_fifo_in_place_of_the_state_file_does_not_block_the_loop() {
    let sandbox = sandbox();
    let agent = sandbox
        .agent("plumber", r#"rm -f "$REFRAIN_STATE_FILE"; mkfifo "$REFRAIN_STATE_FILE"; echo x >> work.txt"#);
    for more in [&[][..], &["--worktree"]] {
        let mut words = vec!["start", "--command", &agent, "-m", "2", "-p", "x", "--auto-commit", "--name"];
        words.push(if more.is_empty() { "here" } else { "apart" });
        words.extend(more);
        sandbox.refrain(&words).with_code(10);
    }
    // Its notes are kept when its worktree goes.
    sandbox.refrain(&["cancel", "apart"]).with_code(0);
    assert_eq!(sandbox.status("apart")["status"], "cancelled");
}

#[test]
fn a_git_folder_in_which_git_would_wait_blocks_the_loop_by_name() {
    for (plant, says) in [
        ("rm .git/index; mkfifo .git/index", "/.git/index is no regular file"),
        ("truncate -s 8G .git/index", "/.git/index has more than 1024 MiB"),
        ("rm .git/HEAD; mkfifo .git/HEAD", "/.git/HEAD is no regular file"),
        ("rm .git/refs/heads/main; mkfifo .git/refs/heads/main", "/.git/refs/heads/main is no regular file"),
        ("rm -f .git/info/exclude; mkdir -p .git/info; mkfifo .git/info/exclude", "/.git/info/exclude is no"),
    ] {
        let sandbox = sandbox();
        let agent = sandbox.agent("agent", &format!("echo x > work.txt\n{plant}\n{CLAIM}"));
        let start = ["start", "--command", &agent, "--name", "job", "--gate", "true", "-p", "p"];
        let run = sandbox.refrain(&start).with_code(14);
        assert!(run.stdout.contains(says), "{plant}: {run:?}");
        // A look at it shows the same, and does not wait.
        let status = sandbox.refrain(&["status", "job"]);
        assert!(format!("{status:?}").contains(says), "{plant}: {status:?}");
        sandbox.no_process_is_left();
    }
}

#[test]
fn more_new_files_than_a_tree_is_made_of_block_the_loop() {
    let sandbox = sandbox();
    // They are only in the index, which git shows as new and gone: on disk they would take minutes.
    let agent = format!(
        "blob=$(git hash-object -w --stdin < /dev/null)
seq -f \"100644 $blob\t%.0f\" 200001 | git update-index --index-info
{CLAIM}"
    );
    let agent = sandbox.agent("agent", &agent);
    let start = ["start", "--command", &agent, "--name", "job", "--gate", "true", "--auto-commit", "p"];
    sandbox.refrain(&start).with_code(14);
    let status = sandbox.status("job");
    let reason = status["reason"].as_str().unwrap();
    assert!(reason.contains("more than 200000 files are changed or new"), "{status}");
    assert_eq!((&status["verified"], &status["charged"]), (&json!(false), &json!(1)), "{status}");
    // They are gone: the claim is proven.
    sandbox.git(&["read-tree", "HEAD"]);
    sandbox.refrain(&["resume", "job"]).with_code(0);
}
