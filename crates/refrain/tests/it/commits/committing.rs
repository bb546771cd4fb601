//! A loop in a user's own repository: what it commits and never commits, its branch and its worktree, and git in every
//! odd state.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use testkit::{Sandbox, write};

use crate::{CLAIM, sandbox};

/// Writes one file an iteration; claims in its second.
fn writer(sandbox: &Sandbox) -> String {
    sandbox.agent(
        "writer",
        &format!(
            r#"echo "part $REFRAIN_ITERATION" > "part-$REFRAIN_ITERATION.txt"
cp "$REFRAIN_STATE_FILE" "$NOTES/state" 2>/dev/null
pwd > "$NOTES/where"
[ "$REFRAIN_ITERATION" = 1 ] || {CLAIM}"#
        ),
    )
}

fn start<'a>(agent: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut words =
        vec!["start", "--command", agent, "--name", "job", "-m", "4", "--prompt", "Do all parts."];
    words.extend(more);
    words
}

const COMMIT: &[&str] = &["--git-workflow", "commit"];

fn executable(sandbox: &Sandbox, path: &str, script: &str) {
    let path = sandbox.project().join(path);
    let made = sandbox.agent("a-hook", script);
    fs::rename(made, path).unwrap();
}

fn reports(sandbox: &Sandbox) -> Vec<Value> {
    let settled = |record: &Value| record["event"]["type"] == "commit.settled";
    sandbox
        .journal("job")
        .iter()
        .filter(|record| settled(record))
        .map(|it| it["event"]["data"].clone())
        .collect()
}

#[test]
fn each_iteration_is_a_commit_of_the_loops_own_changes() {
    let sandbox = sandbox();
    let agent = writer(&sandbox);
    write(&sandbox.project().join("README.md"), "# A project\nmine\n");
    write(&sandbox.project().join("notes.txt"), "mine too\n");
    let run = sandbox.refrain(&start(&agent, COMMIT)).with_code(0);
    let mut shown = sandbox.redact(&run.stdout);
    for commit in sandbox.git(&["rev-list", "HEAD"]).lines() {
        shown = shown.replace(&commit[..10], "[commit]");
    }
    insta::assert_snapshot!(shown, @r"
    loop job
      runs   [root]/agents/writer (generic)
      in     [root]/project
      until  it says <promise>COMPLETE</promise>, at most 4 iterations
      proof  no gates: a claim completes the loop, unverified; --gate CMD adds one
      git    commits what each iteration changed
    · on branch main at [commit]
    · 2 files were changed before the loop: they stay yours, and are not committed
    [loop job iteration 1/4]
    · iteration 1 took [took]: no claim
    · committed [commit]
    [loop job iteration 2/4]
    <promise>COMPLETE</promise>
    · iteration 2 took [took]: it claims to be done
    · committed [commit]
    ◐ unverified after 2 iterations in [took]: the agent made its promise; unverified, as no gate checks it
      branch main, 2 files, +2 -0
      next: refrain diff job, refrain report job, refrain logs job
    ");

    let log = sandbox.git(&["log", "--format=%s|%(trailers:separator=%x2c)"]);
    assert_eq!(
        log,
        "Do all parts.|Refrain-Loop: job,Refrain-Iteration: 2\n\
         Do all parts.|Refrain-Loop: job,Refrain-Iteration: 1\nBegin|\n"
    );
    assert_eq!(sandbox.git(&["show", "--name-only", "--format=", "HEAD"]), "part-2.txt\n");
    assert_eq!(sandbox.git(&["status", "--porcelain"]), " M README.md\n?? notes.txt\n");

    let status = sandbox.status("job");
    assert_eq!(status["branch"], "main");
    let commits: Vec<&str> =
        status["commits"].as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect();
    assert_eq!(commits.join("\n"), sandbox.git(&["rev-list", "--reverse", "HEAD~2.."]).trim());
    let prompt = sandbox.kept_text("job", "0001", "prompt.md");
    assert!(prompt.contains(", committed for you after each run (`git log`)."), "{prompt}");
}

#[test]
fn the_agents_summary_is_the_subject_of_a_commit() {
    let sandbox = sandbox();
    let summary = "<iteration-summary>Add the first part</iteration-summary>";
    let agent = sandbox.agent("agent", &format!("echo x > part.txt\n{CLAIM}\necho '{summary}'"));
    sandbox.refrain(&start(&agent, COMMIT)).with_code(0);
    assert_eq!(sandbox.git(&["log", "--format=%s"]), "Add the first part\nBegin\n");
}

#[test]
fn each_iteration_is_committed_on_a_branch_of_the_loops_own_on_request() {
    let sandbox = sandbox();
    let agent = writer(&sandbox);
    let each = ["--auto-commit", "--gate", "test -f part-2.txt", "--commit-when", "each"];
    let refused = sandbox.refrain(&start(&agent, &each)).with_code(2).stderr;
    assert!(refused.contains("--commit-when each needs --git-workflow commit and a branch"), "{refused}");
    let more = ["--worktree", "--branch-template", "try"];
    sandbox.refrain(&start(&agent, &[&each[..], &more].concat())).with_code(0);
    assert_eq!(sandbox.git(&["log", "--format=%s", "try"]), "Do all parts.\nDo all parts.\nBegin\n");
    assert_eq!(sandbox.git(&["log", "--format=%s", "main"]), "Begin\n");
    assert_eq!(sandbox.status("job")["verified"], true);
    let prompt = sandbox.kept_text("job", "0001", "prompt.md");
    assert!(prompt.contains(", committed for you after each run (`git log`)."), "{prompt}");
}

#[test]
fn a_suspected_secret_is_not_committed_and_is_reported_to_user_and_agent() {
    let sandbox = sandbox();
    let agent = sandbox.agent(
        "careless",
        &format!(
            r#"printf 'token = "ghp_%s"\n' 4fJ9sKq2LmZx8WbTn5RvYc1HdGp7Ue3Aio0Q > config.toml
echo work >> work.txt
[ "$REFRAIN_ITERATION" = 1 ] || {CLAIM}"#
        ),
    );
    let run = sandbox.refrain(&start(&agent, COMMIT)).with_code(0);
    let told: Vec<&str> = run.stdout.lines().filter(|line| line.contains("left out")).collect();
    assert_eq!(told.len(), 1, "told once: {}", run.stdout);
    assert!(told[0].contains("config.toml: line 1 looks like"), "{}", told[0]);
    assert_eq!(sandbox.git(&["ls-files"]), "README.md\nwork.txt\n");
    assert_eq!(reports(&sandbox)[1]["left_out"].as_array().unwrap().len(), 1);
    let prompt = sandbox.kept_text("job", "0002", "prompt.md");
    assert!(prompt.contains("NOT COMMITTED, AS IT LOOKS LIKE A SECRET. Remove the secret from the file:\n- config.toml: line 1"), "{prompt}");
}

#[test]
fn the_refusal_of_a_hook_reaches_the_agent_and_ends_nothing() {
    let sandbox = sandbox();
    executable(
        &sandbox,
        ".git/hooks/pre-commit",
        "grep -q fixed part-1.txt || { echo 'lint: part 1 is bad' >&2; exit 1; }",
    );
    let agent = sandbox.agent(
        "learner",
        &format!(
            r#"case $REFRAIN_ITERATION in 1) echo bad > part-1.txt ;; *) echo fixed > part-1.txt; {CLAIM} ;; esac"#
        ),
    );
    let run = sandbox.refrain(&start(&agent, COMMIT)).with_code(0);
    assert!(run.stdout.contains("not committed: a hook refused it: lint: part 1 is bad"), "{}", run.stdout);
    let prompt = sandbox.kept_text("job", "0002", "prompt.md");
    assert!(prompt.contains("COMMIT REFUSED: a hook"), "{prompt}");
    assert!(prompt.contains("lint: part 1 is bad"), "{prompt}");
    assert_eq!(sandbox.git(&["log", "--format=%s"]), "Do all parts.\nBegin\n");
    assert_eq!(sandbox.status("job")["status"], "completed");
    // It is said on one line, as each reason is.
    executable(&sandbox, ".git/hooks/pre-commit", "printf 'one\\ntwo\\n' >&2; exit 1");
    let agent = sandbox.agent("other", &format!("echo x > other.txt\n{CLAIM}"));
    sandbox.refrain(&["start", "--command", &agent, "--name", "other", "-m", "1", "--auto-commit", "p"]);
    let reason = sandbox.status("other")["reason"].as_str().unwrap().to_owned();
    assert!(reason.contains("a hook refused it: one two"), "{reason}");
}

#[test]
fn a_commit_that_was_made_when_its_runner_died_is_found_again() {
    let sandbox = sandbox();
    executable(
        &sandbox,
        ".git/hooks/post-commit",
        r#"[ -e "$NOTES/killed" ] || { echo yes > "$NOTES/killed"; kill -9 "$(cat "$NOTES/runner")"; }"#,
    );
    let agent = writer(&sandbox);
    let args = start(&agent, COMMIT);
    // The shell's number becomes the runner's.
    let words: Vec<String> = args.iter().map(|word| format!("'{word}'")).collect();
    let program = env!("CARGO_BIN_EXE_refrain");
    let script = format!("echo $$ > \"$NOTES/runner\"; exec {program} {}", words.join(" "));
    let _killed = sandbox.tool("sh", &["-c", &script]).run();
    assert_eq!(sandbox.note("killed"), "yes\n");
    assert_eq!(sandbox.status("job")["status"], "crashed");

    sandbox.refrain(&["resume", "job"]).with_code(0);
    assert_eq!(sandbox.git(&["log", "--format=%s"]), "Do all parts.\nDo all parts.\nBegin\n");
    assert_eq!(sandbox.status("job")["commits"].as_array().unwrap().len(), 2);
    assert_eq!(sandbox.git(&["status", "--porcelain"]), "");
}

#[test]
fn a_hook_that_hangs_is_ended_with_a_pause_and_the_commit_made_later() {
    let sandbox = sandbox();
    let _gate = sandbox.gate("hook");
    executable(
        &sandbox,
        ".git/hooks/pre-commit",
        r#"[ -e "$NOTES/held" ] || { echo held > "$NOTES/held"; read -r _ < "$GATES/hook"; }"#,
    );
    let agent = writer(&sandbox);
    let session = sandbox.spawn(&start(&agent, COMMIT));
    sandbox.wait_for_note("held");
    sandbox.refrain(&["pause", "job", "--now"]).with_code(0);
    session.wait().with_code(16);
    sandbox.no_process_is_left();
    assert_eq!(sandbox.git(&["log", "--format=%s"]), "Begin\n");

    sandbox.refrain(&["resume", "job"]).with_code(0);
    assert_eq!(sandbox.git(&["log", "--format=%s"]), "Do all parts.\nDo all parts.\nBegin\n");
}

#[test]
fn a_loop_on_a_branch_of_its_own_leaves_the_old_one_where_it_was() {
    let sandbox = sandbox();
    let agent = writer(&sandbox);
    let run = sandbox
        .refrain(&start(&agent, &["--auto-commit", "--create-branch", "--branch-template", "try/{loop}"]));
    let run = run.with_code(0);
    assert!(run.stdout.contains("git switch - && refrain merge job --unverified"), "{}", run.stdout);
    assert_eq!(sandbox.git(&["log", "--format=%s", "main"]), "Begin\n");
    assert_eq!(sandbox.git(&["log", "--format=%s", "try/job"]), "Do all parts.\nDo all parts.\nBegin\n");
    assert_eq!(sandbox.git(&["branch", "--show-current"]), "try/job\n");
    assert_eq!(sandbox.status("job")["branch"], "try/job");
    sandbox.refrain(&["merge", "job", "--unverified"]).with_code(17);
    // As the last lines say.
    sandbox.git(&["switch", "--quiet", "-"]);
    let run = sandbox.refrain(&["merge", "job", "--unverified"]).with_code(0);
    assert!(run.stdout.starts_with("merged try/job into main: fast-forward to "), "{}", run.stdout);
}

#[test]
fn a_worktree_of_its_own_is_made_outside_and_removed_when_nothing_is_lost() {
    let sandbox = sandbox();
    let agent = writer(&sandbox);
    write(&sandbox.project().join("README.md"), "# A project\nmine\n");
    let run = sandbox
        .refrain(&start(
            &agent,
            &["--git-workflow", "commit", "--worktree", "--branch-template", "loop/{loop}"],
        ))
        .with_code(0);
    assert!(
        run.stdout.contains("worktree removed; all its work except ignored files is on the branch"),
        "{}",
        run.stdout
    );

    let place = PathBuf::from(sandbox.note("where").trim());
    assert!(place.starts_with(sandbox.root().join("home/state")), "{}", place.display());
    assert!(!place.exists());
    assert_eq!(sandbox.git(&["worktree", "list", "--porcelain"]).matches("worktree ").count(), 1);
    assert_eq!(sandbox.git(&["log", "--format=%s", "loop/job"]), "Do all parts.\nDo all parts.\nBegin\n");
    assert_eq!(sandbox.git(&["log", "--format=%s"]), "Begin\n");
    assert_eq!(sandbox.git(&["status", "--porcelain"]), " M README.md\n");
    assert!(sandbox.note("state").contains("loop_id: job"));
    assert!(sandbox.loop_dir("job").join("state.md").is_file(), "the agent's notes outlive the worktree");
}

#[test]
fn a_loop_that_changes_nothing_leaves_no_branch_and_says_so() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", CLAIM);
    let run = sandbox.refrain(&start(&agent, &["--git-workflow", "commit", "--worktree"])).with_code(0);
    assert!(run.stdout.contains("worktree and branch removed: the loop committed nothing"), "{}", run.stdout);
    assert!(!run.stdout.contains("\n  branch "), "{}", run.stdout);
    assert_eq!(sandbox.git(&["branch", "--format=%(refname:short)"]), "main\n");
    let refused = sandbox.refrain(&["merge", "job", "--unverified"]).with_code(17).stderr;
    assert!(refused.contains("job committed nothing, so there is nothing to merge"), "{refused}");
}

#[test]
fn a_worktree_with_something_in_it_is_kept() {
    let sandbox = sandbox();
    let agent = writer(&sandbox);
    // The configuration may ask for a worktree.
    let run = sandbox.command(&start(&agent, &["--base", "main"])).env("REFRAIN_GIT_WORKTREE", "true");
    let run = run.run().with_code(0);
    assert!(run.stdout.contains("its worktree is kept"), "{}", run.stdout);
    let place = PathBuf::from(sandbox.note("where").trim());
    assert_eq!(fs::read_to_string(place.join("part-1.txt")).unwrap(), "part 1\n");
}

#[test]
fn a_worktree_waits_for_its_loop_to_be_over_for_good() {
    let sandbox = sandbox();
    let agent = sandbox.agent("idler", r#"pwd > "$NOTES/where""#);
    sandbox.refrain(&start(&agent, &["--worktree"])).with_code(10);
    let place = PathBuf::from(sandbox.note("where").trim());
    assert!(place.exists(), "resume needs it");
    sandbox.refrain(&["cancel", "job"]).with_code(0);
    assert!(!place.exists());
}

#[test]
fn a_loop_that_commits_has_its_worktree_for_itself() {
    let sandbox = sandbox();
    let _gate = sandbox.gate("held");
    let holder = sandbox.agent("holder", r#"echo held > "$NOTES/held"; read -r _ < "$GATES/held""#);
    let writer = writer(&sandbox);
    let first = sandbox.spawn(&start(&holder, COMMIT));
    sandbox.wait_for_note("held");
    for more in [&[][..], COMMIT] {
        let mut words = vec!["start", "--command", &writer, "--name", "second", "-p", "x"];
        words.extend(more);
        let refused = sandbox.refrain(&words).with_code(17);
        assert!(refused.stderr.contains("loop job works in"), "{}", refused.stderr);
        assert!(refused.stderr.contains("--worktree"), "{}", refused.stderr);
    }
    assert!(!sandbox.loop_dir("second").join("journal.jsonl").exists());
    let words = ["start", "--command", &writer, "--name", "second", "-p", "x", "--worktree", "--auto-commit"];
    sandbox.refrain(&words).with_code(0);
    drop(first);
}

#[test]
fn git_obstacles_are_reported_before_a_loop_begins() {
    let sandbox = sandbox();
    let agent = writer(&sandbox);
    sandbox.git(&["branch", "taken"]);
    let before = sandbox.git(&["for-each-ref"]);
    for (more, code, named) in [
        (&["--commit-template", "x"][..], 2, &["--commit-template", "--git-workflow commit"][..]),
        (&["--auto-commit", "--commit-template", "{iter}"], 2, &["{iter}", "{iteration}"]),
        (&["--branch-template", "x"], 2, &["--branch-template", "--create-branch"]),
        (&["--create-branch", "--branch-template", "taken"], 17, &["taken", "--branch-template"]),
        (&["--worktree", "--branch-template", "bad..name"], 2, &["bad..name"]),
        (&["--create-branch", "--branch-template", "a-{iteration}"], 2, &["a-{iteration}", "{timestamp}"]),
        (&["--worktree", "--base", "nowhere"], 2, &["nowhere"]),
        (&["--base", "main"], 2, &["--worktree"]),
        (&["--git-workflow", "push-force"], 2, &["push-force", "commit"]),
    ] {
        let run = sandbox.refrain(&start(&agent, more)).with_code(code);
        for name in named {
            assert!(run.stderr.contains(name), "{more:?}: {}", run.stderr);
        }
        assert!(!sandbox.loop_dir("job").join("journal.jsonl").exists(), "{more:?}");
    }
    assert_eq!(sandbox.git(&["for-each-ref"]), before);

    let plain = Sandbox::without_git(env!("CARGO_BIN_EXE_refrain"));
    let agent = writer(&plain);
    let run = plain.refrain(&start(&agent, COMMIT)).with_code(2);
    assert!(run.stderr.contains("no git repository"), "{}", run.stderr);
}

#[test]
fn odd_states_skip_the_commit_and_are_said() {
    for (name, before, agent, said) in [
        ("locked", "touch .git/index.lock", "echo x > new.txt", "git's index is locked"),
        (
            "no identity",
            "git config --global --unset-all user.email; git config user.useConfigOnly true",
            "echo x > new.txt",
            "does not know who commits",
        ),
        (
            "merging",
            "git checkout -qb side; echo a > a; git add a; git commit -qm a; git checkout -q main; echo b > a; git add a; git commit -qm b; git merge -q side || true",
            "echo x > new.txt",
            "a merge is in progress",
        ),
        (
            "switched",
            "true",
            "git checkout -q -b elsewhere; echo x > new.txt",
            "branch elsewhere is checked out",
        ),
    ] {
        let sandbox = sandbox();
        sandbox.tool("sh", &["-c", before]).run();
        let agent = sandbox.agent("odd", &format!("{agent}\n{CLAIM}"));
        let run = sandbox.refrain(&start(&agent, COMMIT)).with_code(0);
        assert!(run.stdout.contains(said), "{name}: {}", run.stdout);
        let is_warned = run.stderr.contains("git does not know who you are, so nothing will be committed");
        assert_eq!(is_warned, name == "no identity", "{name}: {}", run.stderr);
        assert_eq!(fs::read_to_string(sandbox.project().join("new.txt")).unwrap(), "x\n", "{name}");
        assert_eq!(sandbox.status("job")["commits"], json!([]), "{name}");
    }
}

#[test]
fn commits_of_the_agents_own_are_the_loops_too() {
    let sandbox = sandbox();
    let agent = sandbox.agent(
        "committer",
        &format!("echo x > new.txt; git add new.txt; git commit -qm mine; echo y > more.txt\n{CLAIM}"),
    );
    let run = sandbox.refrain(&start(&agent, COMMIT)).with_code(0);
    assert!(run.stdout.contains("itself"), "{}", run.stdout);
    assert_eq!(sandbox.git(&["log", "--format=%s"]), "Do all parts.\nmine\nBegin\n");
    assert_eq!(sandbox.status("job")["commits"].as_array().unwrap().len(), 2);
}

#[test]
fn changes_of_a_person_during_a_pause_are_not_committed() {
    let sandbox = sandbox();
    let agent = sandbox.agent("worker", "echo \"part $REFRAIN_ITERATION\" > part-$REFRAIN_ITERATION.txt");
    let words = ["start", "--command", &agent, "--name", "job", "-m", "1", "-p", "Work.", "--auto-commit"];
    sandbox.refrain(&words).with_code(10);
    write(&sandbox.project().join("README.md"), "# A project\nmine\n");
    write(&sandbox.project().join("private.txt"), "mine\n");
    sandbox.refrain(&["resume", "job", "-m", "2"]).with_code(10);
    assert_eq!(sandbox.git(&["show", "--name-only", "--format=", "HEAD"]), "part-2.txt\n");
    assert_eq!(sandbox.git(&["status", "--porcelain"]), " M README.md\n?? private.txt\n");
}

#[test]
fn a_loop_that_commits_can_be_handed_to_a_process_of_its_own() {
    let sandbox = sandbox();
    let agent = writer(&sandbox);
    for (name, more) in [("apart", &["--worktree"][..]), ("here", &[])] {
        let mut words =
            vec!["start", "--command", &agent, "--name", name, "-p", "x", "--auto-commit", "--detach"];
        words.extend(more);
        sandbox.refrain(&words).with_code(0);
        assert_eq!(sandbox.wait_for_status(name, "completed")["commits"].as_array().unwrap().len(), 2);
    }
}

#[test]
fn a_loop_without_a_runner_is_cancelled_despite_uncommitted_work() {
    let sandbox = sandbox();
    let _gate = sandbox.gate("hook");
    executable(&sandbox, ".git/hooks/pre-commit", r#"echo held > "$NOTES/held"; read -r _ < "$GATES/hook""#);
    let agent = writer(&sandbox);
    let session = sandbox.spawn(&start(&agent, COMMIT));
    sandbox.wait_for_note("held");
    session.kill();
    sandbox.refrain(&["cancel", "job"]).with_code(0);
    assert_eq!(sandbox.status("job")["status"], "cancelled");
    sandbox.no_process_is_left();
}
