//! What a loop reports of its repository to avoid surprises: secrets in the history, hooks that take too much, lost
//! commits, who made which commit, worktrees that are kept or gone.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;
use testkit::{Sandbox, write};

use crate::{CLAIM, sandbox};

/// The script of an agent that commits a token by itself in its first iteration, and claims in its second.
fn careless() -> String {
    format!(
        r#"case $REFRAIN_ITERATION in
1) printf 'token = "ghp_%s"\n' 4fJ9sKq2LmZx8WbTn5RvYc1HdGp7Ue3Aio0Q > config.toml; git add config.toml; git commit -qm mine ;;
*) {CLAIM} ;;
esac"#
    )
}

fn start<'a>(agent: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let words = ["start", "--command", agent, "--name", "job", "--prompt", "Do it.", "--auto-commit"];
    words.into_iter().chain(more.iter().copied()).collect()
}

/// An agent that makes `part-N.txt`.
fn worker(sandbox: &Sandbox) -> String {
    sandbox.agent(
        "worker",
        r#"echo "part $REFRAIN_ITERATION" > "part-$REFRAIN_ITERATION.txt"; pwd > "$NOTES/where""#,
    )
}

fn hook(sandbox: &Sandbox, name: &str, script: &str) {
    let made = sandbox.agent("a-hook", script);
    fs::rename(made, sandbox.project().join(".git/hooks").join(name)).unwrap();
}

fn last_report(sandbox: &Sandbox) -> Value {
    let journal = sandbox.journal("job");
    let settled = journal.iter().rev().find(|record| record["event"]["type"] == "commit.settled");
    settled.unwrap()["event"]["data"].clone()
}

#[test]
fn a_secret_committed_by_the_agent_is_reported_to_user_and_agent() {
    let sandbox = sandbox();
    let agent = sandbox.agent("careless", &careless());
    let run = sandbox.refrain(&start(&agent, &[])).with_code(0);
    let commit = sandbox.git(&["rev-parse", "HEAD"]).trim().to_owned();
    let find = format!("config.toml of commit {}: line 1 looks like a GitHub token", &commit[..10]);
    let told: Vec<&str> = run.stdout.lines().filter(|line| line.contains("careful: ")).collect();
    assert_eq!(told.len(), 1, "told once: {}", run.stdout);
    assert!(told[0].contains(&find), "{}", told[0]);
    let prompt = sandbox.kept_text("job", "0002", "prompt.md");
    assert!(prompt.contains("YOU COMMITTED WHAT LOOKS LIKE A SECRET"), "{prompt}");
    assert!(prompt.contains(&format!("- {find}")), "{prompt}");
    let status = sandbox.status("job");
    assert!(status["reason"].as_str().unwrap().contains(&find), "{}", status["reason"]);
    assert_eq!(status["commits"].as_array().unwrap().len(), 1, "nothing is rewritten");
}

#[test]
fn a_false_alarm_can_be_called_off() {
    let sandbox = sandbox();
    let script = careless().replace("; git add config.toml; git commit -qm mine", "; echo x >> work.txt");
    let agent = sandbox.agent("careless", &script);
    let run = sandbox.refrain(&start(&agent, &[])).with_code(0);
    assert!(run.stdout.contains("refrain:allow-secret"), "the way out is named: {}", run.stdout);
    assert!(run.stdout.contains("allow-secrets"), "{}", run.stdout);
    sandbox.refrain(&["archive", "job"]).with_code(0);
    fs::remove_file(sandbox.project().join("config.toml")).unwrap();

    let config = sandbox.root().join("home/config/refrain/config.toml");
    fs::create_dir_all(config.parent().unwrap()).unwrap();
    write(&config, "[git]\nallow-secrets = [\"/*.toml\"]\n");
    let run = sandbox.refrain(&start(&agent, &[])).with_code(0);
    assert!(run.stdout.contains("line 1 looks like a GitHub token; it may be there"), "{}", run.stdout);
    assert!(!run.stdout.contains("left out"), "{}", run.stdout);
    assert!(sandbox.git(&["ls-files"]).contains("config.toml"));
    assert_eq!(sandbox.status("job")["reason"].as_str().unwrap().matches("secret").count(), 0);
}

#[test]
fn a_hook_that_takes_a_persons_changes_along_has_its_commit_undone() {
    let sandbox = sandbox();
    let agent = worker(&sandbox);
    write(&sandbox.project().join("README.md"), "# A project\nmine\n");
    hook(&sandbox, "pre-commit", "git add -u");
    let run = sandbox.refrain(&start(&agent, &["-m", "1"])).with_code(10);
    assert!(
        run.stdout.contains("a hook put into it what is not the loop's (README.md), so it was undone"),
        "{}",
        run.stdout
    );
    assert_eq!(sandbox.git(&["log", "--format=%s"]), "Begin\n");
    assert_eq!(sandbox.git(&["status", "--porcelain"]), " M README.md\n?? part-1.txt\n");
    let reason = sandbox.status("job")["reason"].as_str().unwrap().to_owned();
    assert!(reason.contains("iteration 1 is not committed: a hook put into it"), "{reason}");
}

#[test]
fn commits_that_are_gone_are_named_with_the_way_back() {
    let sandbox = sandbox();
    let agent = sandbox.agent(
        "rewriter",
        r#"case $REFRAIN_ITERATION in 1) echo one > one.txt ;; *) git reset -q --hard HEAD~1 ;; esac"#,
    );
    let run = sandbox.refrain(&start(&agent, &["-m", "2"])).with_code(10);
    let lost = sandbox.git(&["rev-parse", "HEAD@{1}"]).trim().to_owned();
    assert!(run.stdout.contains(&format!("git branch rescue {lost} gets them back")), "{}", run.stdout);
    sandbox.git(&["branch", "rescue", &lost]);
    assert_eq!(sandbox.git(&["log", "-1", "--format=%s", "rescue"]), "Do it.\n");
}

#[test]
fn history_changes_of_a_person_during_a_pause_are_not_the_agents() {
    let sandbox = sandbox();
    let agent = worker(&sandbox);
    sandbox.refrain(&start(&agent, &["-m", "1"])).with_code(10);
    sandbox.git(&["switch", "-qc", "elsewhere"]);
    write(&sandbox.project().join("mine.txt"), "mine\n");
    sandbox.git(&["add", "mine.txt"]);
    sandbox.git(&["commit", "-qm", "mine"]);
    // On another branch nothing is committed, and the report blames no one.
    let run = sandbox.refrain(&["resume", "job", "-m", "2"]).with_code(10);
    assert!(run.stdout.contains("branch elsewhere is checked out"), "{}", run.stdout);
    assert!(!run.stdout.contains("itself") && !run.stdout.contains("rescue"), "{}", run.stdout);
    sandbox.git(&["commit", "-q", "--amend", "-m", "mine, amended"]);
    let run = sandbox.refrain(&["resume", "job", "-m", "3"]).with_code(10);
    assert!(!run.stdout.contains("itself") && !run.stdout.contains("rescue"), "{}", run.stdout);
    // Back on its own branch, it commits the earlier work too.
    sandbox.git(&["switch", "-q", "main"]);
    let run = sandbox.refrain(&["resume", "job", "-m", "4"]).with_code(10);
    assert!(!run.stdout.contains("itself") && !run.stdout.contains("rescue"), "{}", run.stdout);
    let committed = sandbox.git(&["show", "--name-only", "--format=", "HEAD"]);
    assert_eq!(committed, "part-2.txt\npart-3.txt\npart-4.txt\n");
    assert_eq!(sandbox.status("job")["commits"].as_array().unwrap().len(), 2);
}

#[test]
fn a_commit_made_without_a_runner_may_be_of_another_process() {
    let sandbox = sandbox();
    let agent = sandbox.agent(
        "holder",
        r#"[ -e "$NOTES/held" ] || { echo held > "$NOTES/held"; read -r _ < "$GATES/held"; }"#,
    );
    let _gate = sandbox.gate("held");
    let session = sandbox.spawn(&start(&agent, &["-m", "1"]));
    sandbox.wait_for_note("held");
    session.kill();
    sandbox.git(&["commit", "-q", "--allow-empty", "-m", "mine"]);
    let run = sandbox.refrain(&["resume", "job"]).with_code(10);
    assert!(
        run.stdout.contains("the agent, or another process while the loop stood still, committed"),
        "{}",
        run.stdout
    );
}

#[test]
fn a_relative_remote_is_meant_from_the_checkout_in_a_worktree_too() {
    let sandbox = sandbox();
    sandbox.git(&["init", "-q", "--bare", "../origin.git"]);
    sandbox.git(&["remote", "add", "origin", "../origin.git"]);
    let agent = sandbox.agent("agent", &format!("echo x > new.txt\n{CLAIM}"));
    let words =
        ["start", "--command", &agent, "--name", "job", "--git-workflow", "push", "--worktree", "Do it."];
    sandbox.refrain(&words).with_code(0);
    let pushed = sandbox.git(&["-C", "../origin.git", "for-each-ref", "--format=%(refname)"]);
    assert!(pushed.starts_with("refs/heads/") && pushed.contains("job"), "{pushed}");
}

#[test]
fn a_worktree_with_a_missing_folder_is_made_again() {
    let sandbox = sandbox();
    let agent = worker(&sandbox);
    let branch = ["--worktree", "--branch-template", "loop/{loop}", "-m", "1"];
    let run = sandbox.refrain(&start(&agent, &branch)).with_code(10);
    let place = PathBuf::from(sandbox.note("where").trim());
    let stays = format!("its worktree stays on branch loop/job: {};", place.display());
    assert!(run.stdout.contains(&stays), "{}", run.stdout);
    fs::remove_dir_all(&place).unwrap();
    let run = sandbox.refrain(&["resume", "job", "-m", "2"]).with_code(10);
    assert!(run.stderr.contains("worktree was gone; it is made anew from its branch"), "{}", run.stderr);
    assert_eq!(fs::read_to_string(place.join("part-1.txt")).unwrap(), "part 1\n");
    assert_eq!(sandbox.git(&["log", "--format=%s", "loop/job"]), "Do it.\nDo it.\nBegin\n");

    fs::remove_dir_all(&place).unwrap();
    sandbox.git(&["worktree", "prune"]);
    let head = sandbox.git(&["rev-parse", "loop/job"]).trim().to_owned();
    sandbox.git(&["branch", "-D", "loop/job"]);
    let before = sandbox.journal("job").len();
    let run = sandbox.refrain(&["resume", "job", "-m", "3"]).with_code(17);
    assert!(run.stderr.contains(&format!("git branch loop/job {head} brings that back")), "{}", run.stderr);
    assert_eq!(sandbox.journal("job").len(), before, "the loop is as it was");
}

#[test]
fn a_kept_worktree_is_named_with_the_command_that_removes_it() {
    let sandbox = sandbox();
    let agent = worker(&sandbox);
    let words = ["start", "--command", &agent, "--name", "job", "-m", "1", "-p", "x", "--worktree"];
    sandbox.refrain(&words).with_code(10);
    let place = PathBuf::from(sandbox.note("where").trim());
    let run = sandbox.refrain(&["cancel", "job"]).with_code(0);
    let line = run.stdout.lines().find(|line| line.starts_with("its worktree is kept")).unwrap();
    assert!(
        line.contains("it holds 1 file that is in no commit: part-1.txt; refrain discard job "),
        "{line}"
    );
    sandbox.refrain(&["discard", "job"]).with_code(0);
    assert!(!place.exists());
    assert_eq!(sandbox.git(&["branch", "--list"]), "* main\n");
}

#[test]
fn a_worktree_is_not_begun_from_a_folder_that_it_would_not_have() {
    let sandbox = sandbox();
    let agent = worker(&sandbox);
    let below = sandbox.project().join("new");
    fs::create_dir(&below).unwrap();
    let run = sandbox.command(&start(&agent, &["--worktree"])).dir(&below).run().with_code(2);
    assert!(run.stderr.contains("new is not in commit") && run.stderr.contains("--base"), "{}", run.stderr);
    assert!(!sandbox.loop_dir("job").join("journal.jsonl").exists());

    write(&below.join("a.txt"), "a\n");
    sandbox.git(&["add", "."]);
    sandbox.git(&["commit", "-qm", "new"]);
    sandbox.command(&start(&agent, &["--worktree", "-m", "1"])).dir(&below).run().with_code(10);
    assert!(sandbox.note("where").ends_with("/job/new\n"), "{}", sandbox.note("where"));
}

#[test]
fn configured_git_options_can_be_switched_off_for_one_loop() {
    let sandbox = sandbox();
    let agent = worker(&sandbox);
    let config = sandbox.root().join("home/config/refrain/config.toml");
    fs::create_dir_all(config.parent().unwrap()).unwrap();
    write(&config, "[git]\nworktree = true\ncreate-branch = true\n");
    let run =
        sandbox.refrain(&start(&agent, &["-m", "1", "--no-worktree", "--no-create-branch"])).with_code(10);
    assert!(!run.stdout.contains("new branch"), "{}", run.stdout);
    assert_eq!(sandbox.git(&["branch", "--list"]), "* main\n");
    let words = ["start", "--command", &agent, "--name", "next", "-m", "1", "-p", "x", "--no-worktree"];
    sandbox.refrain(&words).with_code(10);
    let branch = sandbox.git(&["branch", "--show-current"]);
    assert!(branch.starts_with("loop/2") && branch.ends_with("-next\n"), "{branch}");
}

#[test]
fn a_git_operation_in_progress_is_reported_before_the_first_iteration() {
    let sandbox = sandbox();
    sandbox.git(&["bisect", "start"]);
    let agent = worker(&sandbox);
    let run = sandbox.refrain(&start(&agent, &["-m", "1"])).with_code(10);
    let said = run.stdout.find("a bisect is in progress: nothing is committed until it is over").unwrap();
    assert!(said < run.stdout.find("[loop job iteration 1/1]").unwrap(), "{}", run.stdout);
}

#[test]
fn git_has_the_persons_environment_however_little_the_agent_gets() {
    let sandbox = sandbox();
    let agent = sandbox.agent("bare", r#"echo x > "new.txt"; env > "$HOME/agent-env""#);
    hook(&sandbox, "pre-commit", r#"echo "$SSH_AUTH_SOCK" > "$HOME/hook-env""#);
    let mut words = start(&agent, &["-m", "1", "--clean-env"]);
    words.retain(|word| !word.is_empty());
    sandbox.command(&words).env("SSH_AUTH_SOCK", "/tmp/keys").run().with_code(10);
    let home = sandbox.env().into_iter().find(|(name, _)| *name == "HOME").unwrap().1;
    let read = |name: &str| fs::read_to_string(PathBuf::from(&home).join(name)).unwrap();
    assert_eq!(read("hook-env"), "/tmp/keys\n");
    assert!(!read("agent-env").contains("SSH_AUTH_SOCK"));
    assert!(last_report(&sandbox)["result"]["made"].is_object());
}

#[test]
fn a_worktree_in_which_another_loop_works_is_not_given_back() {
    let sandbox = sandbox();
    let _gate = sandbox.gate("held");
    let agent = worker(&sandbox);
    let branch = ["--worktree", "--branch-template", "loop/{loop}", "-m", "1"];
    sandbox.refrain(&start(&agent, &branch)).with_code(10);
    let place = PathBuf::from(sandbox.note("where").trim());
    let holder = sandbox.agent("holder", r#"echo held > "$NOTES/held"; read -r _ < "$GATES/held""#);
    let words = ["start", "--command", &holder, "--name", "second", "-p", "x", "--auto-commit"];
    let second = sandbox.command(&words).dir(&place).spawn();
    sandbox.wait_for_note("held");
    let run = sandbox.refrain(&["cancel", "job"]).with_code(0);
    assert!(
        run.stdout.contains("its worktree is kept") && run.stdout.contains(": second works in it;"),
        "{}",
        run.stdout
    );
    assert!(place.join("part-1.txt").exists());
    drop(second);
}
