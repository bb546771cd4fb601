//! What a person does with a loop that has stopped: answer it, look at its differences, merge its branch or discard it.

use serde_json::{Value, json};
use testkit::{Sandbox, write};

use crate::surfaces::terminal::Terminal;
use crate::{CLAIM, sandbox};

/// An agent that adds a file, and claims.
const ADDS: &str = "echo work > work.txt";

/// A loop in a worktree of its own, verified by a gate.
fn verified(sandbox: &Sandbox, id: &str, gate: &str) {
    verified_with(sandbox, id, gate, &[]);
}

fn verified_with(sandbox: &Sandbox, id: &str, gate: &str, options: &[&str]) {
    let agent = sandbox.agent(id, &format!("{ADDS}\n{CLAIM}"));
    let start = ["start", "--command", &agent, "--name", id, "--worktree", "--git-workflow", "commit"];
    let run = sandbox.refrain(
        &[&start[..], options, &["--branch-template", "work-{loop}", "--gate", gate, "Add work."]].concat(),
    );
    let out = run.with_code(0).stdout;
    for part in ["✔ verified after 1 iteration", &format!("  branch work-{id}, 1 file, +1 -0\n")] {
        assert!(out.contains(part), "{part}: {out}");
    }
    assert!(
        out.contains(&format!("  next: refrain diff {id}, refrain merge {id}, refrain report {id}\n")),
        "{out}"
    );
}

fn head(sandbox: &Sandbox, revision: &str) -> String {
    sandbox.git(&["rev-parse", revision]).trim().to_owned()
}

#[test]
fn an_answer_steers_and_resumes() {
    let sandbox = sandbox();
    let script = format!(
        "case \"$*\" in *'Use staging.'*) {CLAIM}; exit;; esac\n\
         sed -i '/^question:/d; s/^status:.*/status: blocked\\nquestion: Which database: A or B?/' \"$REFRAIN_STATE_FILE\""
    );
    let agent = sandbox.agent("agent", &script);
    let run = sandbox.refrain(&["start", "--command", &agent, "--name", "job", "Migrate."]).with_code(14);
    assert!(
        run.stdout.contains("blocked after 2 iterations")
            && run.stdout.contains("the agent asks: Which database: A or B?")
    );
    assert!(
        run.stdout.contains("next: answer it and continue with refrain answer job TEXT\n"),
        "{}",
        run.stdout
    );
    let status = sandbox.status("job");
    assert_eq!(
        (&status["waits_for"], &status["question"]),
        (&json!("answer"), &json!("Which database: A or B?"))
    );
    let shown = sandbox.refrain(&["status", "job"]).with_code(0).stdout;
    assert!(
        shown.contains("question     Which database: A or B?\n") && shown.contains("verified     not yet\n"),
        "{shown}"
    );

    sandbox.refrain(&["answer", "job"]).with_code(2);
    sandbox.refrain(&["answer", "ghost", "x"]).with_code(3);
    sandbox.refrain(&["answer", "job", " "]).with_code(2);
    let run = sandbox.refrain(&["answer", "job", "Use", "staging."]).with_code(0);
    assert!(run.stdout.contains("◐ unverified after 3 iterations"), "{}", run.stdout);
    let status = sandbox.status("job");
    assert_eq!((&status["waits_for"], &status["question"]), (&Value::Null, &Value::Null));
    sandbox.refrain(&["answer", "job", "More."]).with_code(17);
}

#[test]
fn a_loop_says_who_paused_it_and_when_it_crashed() {
    let sandbox = sandbox();
    let gate = sandbox.gate("go");
    let agent = sandbox.agent("agent", "echo x >> $NOTES/began; read -r _ < $GATES/go");
    let session = sandbox.spawn(&["start", "--command", &agent, "--name", "job", "p"]);
    sandbox.wait_for_note("began");
    sandbox.refrain(&["pause", "job"]).with_code(0);
    gate.let_one_pass();
    session.wait().with_code(16);
    assert_eq!(sandbox.status("job")["reason"], "by a person");
    let session = sandbox.spawn(&["resume", "job"]);
    sandbox.wait_for_event("job", "loop.resumed");
    testkit::eventually("the second attempt runs", || (sandbox.note("began") == "x\nx\n").then_some(()));
    session.kill();
    sandbox.wait_for_status("job", "crashed");
    // Its supervisor ends the agent a moment later; until then the reason names that.
    let reason = testkit::eventually("the agent has ended", || {
        let reason = sandbox.status("job")["reason"].as_str().unwrap().to_owned();
        reason.starts_with("its runner is gone, its last record is of ").then_some(reason)
    });
    assert!(reason.contains("nothing is lost"), "{reason}");
    let shown = sandbox.refrain(&["status", "job"]).with_code(0).stdout;
    assert!(shown.contains("  2      interrupted"), "{shown}");
    sandbox.refrain(&["cancel", "job"]).with_code(0);
    let shown = sandbox.refrain(&["status", "job"]).with_code(0).stdout;
    assert!(shown.contains("verified     no\n"), "{shown}");
}

#[test]
fn a_verified_branch_is_merged_as_a_fast_forward() {
    let sandbox = sandbox();
    verified(&sandbox, "job", "test -f work.txt");
    let listed = sandbox.refrain(&["list"]).with_code(0).stdout;
    assert!(listed.contains(" completed      ✔ verified "), "{listed}");
    let ascii = sandbox.command(&["list"]).env("LC_ALL", "C").run().with_code(0).stdout;
    assert!(ascii.contains(" completed      [v] verified "), "{ascii}");
    let diff = sandbox.refrain(&["diff"]).with_code(0);
    assert!(diff.stdout.contains("+++ b/work.txt\n@@ -0,0 +1 @@\n+work\n"), "{}", diff.stdout);
    let stat = sandbox.refrain(&["diff", "job", "--stat"]).with_code(0).stdout;
    assert!(stat.contains("work.txt | 1 +"), "{stat}");
    let first = sandbox.refrain(&["diff", "job", "--iteration", "1"]).with_code(0).stdout;
    assert!(first.contains("+work\n"), "{first}");
    sandbox.refrain(&["diff", "job", "--iteration", "2"]).with_code(2);

    // What is changed here and not committed stays.
    write(&sandbox.project().join("README.md"), "mine\n");
    let run = sandbox.refrain(&["merge", "job"]).with_code(0);
    assert!(run.stdout.starts_with("merged work-job into main: fast-forward to "), "{}", run.stdout);
    assert_eq!(head(&sandbox, "main"), head(&sandbox, "work-job"));
    assert_eq!(sandbox.git(&["status", "--porcelain"]), " M README.md\n");
    let again = sandbox.refrain(&["merge", "job"]).with_code(0);
    assert_eq!(again.stdout, "main has all of work-job already\n");
}

#[test]
fn what_a_gate_compiled_does_not_stop_a_merge() {
    let sandbox = sandbox();
    // As `python3 -m unittest` does in a project without .gitignore.
    let gate = "mkdir -p __pycache__ && echo compiled > __pycache__/work.cpython-313.pyc";
    verified(&sandbox, "job", gate);
    assert_eq!(sandbox.git(&["worktree", "list"]).lines().count(), 1, "nothing keeps its worktree");
    sandbox.refrain(&["merge", "job"]).with_code(0);
    assert!(sandbox.project().join("work.txt").is_file());
    assert_eq!(sandbox.git(&["status", "--porcelain"]), "");
}

#[test]
fn a_verified_loop_with_a_file_in_no_commit_names_it_and_the_remedy() {
    let sandbox = sandbox();
    let token = ["ghp_", "q8R2mXv5Lz0Tn7Wd4Kc9Hs1Jb6Yf3GpUeaoA"].concat();
    let agent = sandbox.agent("agent", &format!("{ADDS}; echo 'token = {token}' > settings.conf\n{CLAIM}"));
    let start = ["start", "--command", &agent, "--name", "job", "--worktree", "--git-workflow", "commit"];
    let run = sandbox.refrain(&[&start[..], &["--gate", "true", "p"]].concat()).with_code(0).stdout;
    let kept = "it holds 1 file that is in no commit: settings.conf; refrain open job opens it\n";
    assert!(run.contains(kept), "{run}");
    let refused = sandbox.refrain(&["merge", "job"]).with_code(17).stderr;
    for part in
        ["job has 1 file in no commit: settings.conf, in ", "remove them there, then refrain merge job; or"]
    {
        assert!(refused.contains(part), "{part}: {refused}");
    }
    let worktree = sandbox.status("job")["worktree"].as_str().unwrap().to_owned();
    std::fs::remove_file(std::path::Path::new(&worktree).join("settings.conf")).unwrap();
    sandbox.refrain(&["merge", "job"]).with_code(0);
}

#[test]
fn a_file_that_had_changes_before_the_loop_counts_as_changed() {
    let sandbox = sandbox();
    write(&sandbox.project().join("README.md"), "mine\n");
    let agent = sandbox.agent("agent", &format!("echo more >> README.md\n{CLAIM}"));
    let start = ["start", "--command", &agent, "--name", "job", "--gate", "true", "p"];
    let out = sandbox.refrain(&start).with_code(0).stdout;
    assert!(out.contains("\n  changed 1 file that had changes before\n  next: refrain diff job, "), "{out}");
}

#[test]
fn gates_run_on_a_merge_with_commits_made_since() {
    let sandbox = sandbox();
    verified(&sandbox, "job", "test ! -f broken");
    write(&sandbox.project().join("broken"), "");
    sandbox.git(&["add", "broken"]);
    sandbox.git(&["commit", "--quiet", "--message", "Break it"]);
    let before = head(&sandbox, "main");
    let refused = sandbox.refrain(&["merge", "job"]).with_code(1);
    assert!(
        refused.stderr.contains("gate test fails on the merged work; nothing was changed"),
        "{}",
        refused.stderr
    );
    let next = "--gate 'test=test ! -f broken' --worktree --git-workflow commit 'Merge work-job and make gate test pass.'";
    assert!(refused.stderr.contains(next), "{}", refused.stderr);
    assert!(refused.stderr.contains("or git merge work-job merges it by hand"), "{}", refused.stderr);
    assert_eq!(head(&sandbox, "main"), before);
    sandbox.git(&["rm", "--quiet", "broken"]);
    sandbox.git(&["commit", "--quiet", "--message", "Mend it"]);
    let run = sandbox.refrain(&["merge", "job"]).with_code(0);
    assert!(run.stdout.starts_with("merged work-job into main: merge commit "), "{}", run.stdout);
    assert_eq!(sandbox.git(&["log", "-1", "--format=%s|%p"]).split(' ').count(), 4, "it has two parents");
    assert_eq!(sandbox.git(&["status", "--porcelain"]), "");
    sandbox.no_process_is_left();
}

/// The gates take as long as they take: what they cannot change is said before them.
#[test]
fn a_file_in_the_way_is_named_before_the_gates_run() {
    let sandbox = sandbox();
    verified(&sandbox, "job", "echo ran >> $NOTES/gates");
    write(&sandbox.project().join("other"), "");
    sandbox.git(&["add", "other"]);
    sandbox.git(&["commit", "--quiet", "--message", "Other work"]);
    write(&sandbox.project().join("work.txt"), "mine\n");
    let (before, ran) = (head(&sandbox, "main"), sandbox.note("gates"));
    let refused = sandbox.refrain(&["merge", "job"]).with_code(17);
    assert!(
        refused.stderr.contains("job was not merged: ") && refused.stderr.contains("work.txt"),
        "{refused:?}"
    );
    assert_eq!(sandbox.note("gates"), ran, "no gate ran");
    let mine = sandbox.git(&["status", "--porcelain"]);
    assert_eq!((head(&sandbox, "main"), mine.as_str()), (before, "?? work.txt\n"));

    std::fs::remove_file(sandbox.project().join("work.txt")).unwrap();
    let run = sandbox.refrain(&["merge", "job"]).with_code(0);
    assert!(run.stdout.starts_with("merged work-job into main: merge commit "), "{}", run.stdout);
    assert_ne!(sandbox.note("gates"), ran, "they run before the branch moves");
}

#[test]
fn a_conflict_changes_nothing_and_a_squash_is_one_commit() {
    let sandbox = sandbox();
    verified_with(
        &sandbox,
        "job",
        "true",
        &["--timeout", "90s", "--env", "KIND=fast", "--prompt-mode", "file"],
    );
    write(&sandbox.project().join("work.txt"), "other\n");
    sandbox.git(&["add", "work.txt"]);
    sandbox.git(&["commit", "--quiet", "--message", "Other work"]);
    let before = head(&sandbox, "main");
    let refused = sandbox.refrain(&["merge", "job"]).with_code(1);
    assert!(
        refused.stderr.contains("work-job conflicts in work.txt; nothing was changed"),
        "{}",
        refused.stderr
    );
    for part in [
        "refrain start --command ",
        " --prompt-mode file --env KIND --timeout '1m 30s' --gate 'true=true' --worktree ",
    ] {
        assert!(refused.stderr.contains(part), "{}", refused.stderr);
    }
    assert_eq!((head(&sandbox, "main"), sandbox.git(&["status", "--porcelain"])), (before, String::new()));

    sandbox.git(&["reset", "--quiet", "--hard", "HEAD~1"]);
    let run = sandbox.refrain(&["merge", "job", "--squash"]).with_code(0);
    assert!(run.stdout.starts_with("merged work-job into main: one commit, "), "{}", run.stdout);
    assert_eq!(
        sandbox.git(&["log", "-1", "--format=%s|%(trailers:separator=%x2c)"]),
        "Add work.|Refrain-Loop: job\n"
    );
}

#[test]
fn a_merge_that_is_not_possible_says_why() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", &format!("{ADDS}\n{CLAIM}"));
    let start = ["start", "--command", &agent, "-q", "--name"];
    sandbox.refrain(&[&start[..], &["here", "p"]].concat()).with_code(0);
    let refused = sandbox.refrain(&["merge", "here"]).with_code(17);
    for part in ["here has no branch of its own", ", where 1 file is not committed"] {
        assert!(refused.stderr.contains(part), "{}", refused.stderr);
    }
    std::fs::remove_file(sandbox.project().join("work.txt")).unwrap();
    let kept = ["start", "--command", &agent, "--name", "kept", "--worktree", "p"];
    for gate in [&[][..], &["--gate", "true"]] {
        let run = sandbox.refrain(&[&kept[..], gate].concat()).with_code(0).stdout;
        for part in
            [", 1 file, +1 -0\n", "  next: refrain diff kept, refrain report kept, refrain logs kept\n"]
        {
            assert!(run.contains(part), "{part}: {run}");
        }
        assert!(sandbox.refrain(&["diff", "kept"]).with_code(0).stdout.contains("+work"));
        let refused = sandbox.refrain(&["merge", "kept"]).with_code(17).stderr;
        assert!(refused.contains("kept has 1 file in no commit: work.txt, in "), "{refused}");
        sandbox.refrain(&["discard", "kept"]).with_code(0);
    }
    let apart = ["apart", "--worktree", "--auto-commit", "p"];
    sandbox.refrain(&[&start[..], &apart].concat()).with_code(0);
    let refused = sandbox.refrain(&["merge", "apart"]).with_code(17);
    assert!(refused.stderr.contains("apart is unverified: no gate verified it"), "{}", refused.stderr);
    let refused = sandbox.refrain(&["merge"]).with_code(17).stderr;
    assert!(
        refused.contains("apart is unverified"),
        "it is the only one with a branch of its own: {refused}"
    );
    sandbox.refrain(&["merge", "apart", "--unverified"]).with_code(0);
    assert!(sandbox.project().join("work.txt").is_file());
}

#[test]
fn work_that_waits_for_approval_is_not_merged_before_it() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", &format!("{ADDS}\n{CLAIM}"));
    let start = ["start", "--command", &agent, "--name", "job", "--worktree", "--git-workflow", "commit"];
    let rest = ["--gate", "true", "--require-approval", "-q", "p"];
    sandbox.refrain(&[&start[..], &rest].concat()).with_code(14);
    let refused = sandbox.refrain(&["merge", "job"]).with_code(17).stderr;
    assert!(refused.contains("job waits for your approval"), "{refused}");
    assert!(refused.contains("refrain approve job, then refrain merge job"), "{refused}");

    let start = ["start", "--command", &agent, "--name", "here", "--git-workflow", "commit"];
    sandbox.refrain(&[&start[..], &rest].concat()).with_code(14);
    let refused = sandbox.refrain(&["merge", "here"]).with_code(17).stderr;
    assert!(refused.contains("refrain approve here accepts it"), "{refused}");
    assert!(!refused.contains("then refrain merge"), "its work is here already: {refused}");
}

#[test]
fn refrain_without_a_verb_shows_the_last_ended_loop() {
    let sandbox = sandbox();
    verified(&sandbox, "job", "true");
    let (code, text) = Terminal::open(&sandbox, &[], &[("NO_COLOR", "1")]).wait();
    assert_eq!(code, 0, "{text}");
    for part in ["Ended last", "job ✔ verified: ", "next: refrain diff job"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_loop_that_changed_nothing_has_no_branch_to_open_or_merge() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", CLAIM);
    for workflow in ["none", "commit"] {
        let start =
            ["start", "--command", &agent, "--name", workflow, "--worktree", "--git-workflow", workflow];
        let run = sandbox.refrain(&[&start[..], &["--gate", "true", "p"]].concat()).with_code(0).stdout;
        assert!(run.contains("worktree and branch removed: the loop committed nothing"), "{run}");
        assert!(run.contains("\n  no file changed\n"), "{run}");
        let refused = sandbox.refrain(&["merge", workflow]).with_code(17).stderr;
        assert!(refused.contains("committed nothing, so there is nothing to merge"), "{refused}");
        let refused = sandbox.refrain(&["open", workflow]).with_code(17).stderr;
        assert!(
            refused.contains("committed nothing, so its worktree and its branch were removed"),
            "{refused}"
        );
    }
    assert_eq!(sandbox.git(&["branch", "--format=%(refname:short)"]), "main\n");
}

#[test]
fn a_loop_that_changed_nothing_is_discarded_at_once() {
    let sandbox = sandbox();
    let start = ["start", "--command", "true", "--name", "job", "--worktree", "--git-workflow", "commit"];
    sandbox.refrain(&[&start[..], &["--gate", "false", "-m", "1", "-q", "p"]].concat()).with_code(10);
    sandbox.refrain(&["discard", "job"]).with_code(0);
    assert_eq!(sandbox.git(&["worktree", "list"]).lines().count(), 1);
    assert_eq!(sandbox.status("job")["status"], "cancelled");
}

#[test]
fn a_discarded_branch_can_be_brought_back() {
    let sandbox = sandbox();
    for number in 1..=2 {
        verified(&sandbox, "job", "true");
        let tip = head(&sandbox, "work-job");
        let run = sandbox.refrain(&["discard", "job"]).with_code(0);
        assert!(
            run.stderr.contains("for 30 days git branch work-job refs/refrain/discarded/job"),
            "{}",
            run.stderr
        );
        assert_eq!(sandbox.git(&["branch", "--list", "work-*"]), "");
        let name = if number == 1 { "job".to_owned() } else { format!("job-{number}") };
        assert_eq!(head(&sandbox, &format!("refs/refrain/discarded/{name}")), tip);
        let again = sandbox.refrain(&["discard", "job"]).with_code(0).stderr;
        let back = format!("for 30 days git branch job refs/refrain/discarded/{name} brings its work back");
        assert_eq!(again, format!("note: job is archived already, and nothing was changed; {back}\n"));
        // The next one has another commit.
        sandbox.git(&["commit", "--quiet", "--allow-empty", "--message", "Next"]);
    }
    let gate = sandbox.gate("go");
    let agent = sandbox.agent("agent", "echo x >> $NOTES/began; read -r _ < $GATES/go");
    let session = sandbox.spawn(&["start", "--command", &agent, "--name", "busy", "p"]);
    sandbox.wait_for_note("began");
    let refused = sandbox.refrain(&["discard", "busy"]).with_code(17).stderr;
    assert!(refused.contains("refrain cancel busy --now"), "{refused}");
    sandbox.refrain(&["cancel", "busy", "--now"]).with_code(0);
    session.wait().with_code(15);
    drop(gate);
}

#[test]
fn discarding_an_archived_loop_names_the_branch_that_it_left() {
    let sandbox = sandbox();
    verified(&sandbox, "job", "true");
    sandbox.refrain(&["archive", "job"]).with_code(0);
    let refused = sandbox.refrain(&["discard", "job"]).with_code(17).stderr;
    assert!(refused.contains("job is archived already; its branch work-job is kept"), "{refused}");
    sandbox.git(&["branch", "-D", "work-job"]);
    sandbox.refrain(&["discard", "job"]).with_code(0);
}

#[test]
fn discarding_keeps_uncommitted_work() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", ADDS);
    let start =
        ["start", "--command", &agent, "--name", "cap", "--worktree", "--git-workflow", "commit", "-m", "1"];
    let rest = ["--branch-template", "work", "--gate", "test -f never", "Add work."];
    sandbox.refrain(&[&start[..], &rest].concat()).with_code(10);
    let worktree = sandbox.status("cap")["worktree"].as_str().unwrap().to_owned();
    assert!(std::path::Path::new(&worktree).is_dir());

    let said = sandbox.refrain(&["discard", "cap"]).with_code(0).stderr;
    let back = "git branch work refs/refrain/discarded/cap brings its work back";
    assert!(said.contains(back) && said.contains(", with 1 uncommitted file"), "{said}");
    assert_eq!(sandbox.git(&["show", "refs/refrain/discarded/cap:work.txt"]), "work\n");
    assert_eq!(sandbox.git(&["worktree", "list"]).lines().count(), 1);
    assert!(!std::path::Path::new(&worktree).exists());
    assert_eq!(sandbox.git(&["branch", "--list", "work"]), "");
    assert_eq!(sandbox.status("cap")["status"], "cancelled");
    for (words, code) in
        [(&["open", "cap"][..], 17), (&["merge", "cap", "--unverified"], 17), (&["discard", "cap"], 0)]
    {
        let said = sandbox.refrain(words).with_code(code).stderr;
        assert!(said.contains("refs/refrain/discarded/cap brings its work back"), "{words:?}: {said}");
    }
}

#[test]
fn a_diff_that_is_no_terminal_is_a_patch_that_git_applies() {
    let sandbox = sandbox();
    let at = |name: &str| sandbox.project().join(name);
    write(&at("dos.txt"), "one\r\ntwo\r\n");
    write(&at("data.bin"), [0u8, 1, 2, 255]);
    write(&at("latin.txt"), b"caf\xe9\n");
    sandbox.git(&["add", "--all"]);
    sandbox.git(&["commit", "--quiet", "--message", "Files of all kinds"]);
    let script = format!(
        "printf 'one\\r\\nthree\\r\\n' > dos.txt; printf '\\0\\3\\377' > data.bin; printf 'caf\\351s \\033[1m\\n' > latin.txt
         printf 'new\\n' > \"$(printf 'r\\351sum\\351')\"; {CLAIM}"
    );
    let agent = sandbox.agent("agent", &script);
    let start = ["start", "--command", &agent, "--name", "job", "--worktree", "--git-workflow", "commit"];
    sandbox
        .refrain(&[&start[..], &["--branch-template", "work", "--gate", "true", "p"]].concat())
        .with_code(0);
    let diff = format!("{} diff job > {}/job.patch", env!("CARGO_BIN_EXE_refrain"), sandbox.root().display());
    sandbox.tool("sh", &["-c", &diff]).run().with_code(0);
    let patch = sandbox.root().join("job.patch");
    sandbox.git(&["apply", "--index", patch.to_str().unwrap()]);
    let tree = sandbox.git(&["write-tree"]);
    assert_eq!(tree, sandbox.git(&["rev-parse", "work^{tree}"]));
    assert_eq!(sandbox.git(&["diff", "--numstat", "--cached", "HEAD"]).lines().count(), 4);
}

#[test]
fn discarding_puts_no_secret_into_git() {
    let sandbox = sandbox();
    let token = ["ghp_", "q8R2mXv5Lz0Tn7Wd4Kc9Hs1Jb6Yf3GpUeaoA"].concat();
    let agent =
        sandbox.agent("agent", &format!("echo work > work.txt; echo 'token = {token}' > settings.conf"));
    let start = ["start", "--command", &agent, "--name", "job", "--worktree", "--git-workflow", "commit"];
    sandbox.refrain(&[&start[..], &["--gate", "false", "-m", "1", "-q", "p"]].concat()).with_code(10);
    let worktree = sandbox.status("job")["worktree"].as_str().unwrap().to_owned();

    let before = sandbox.status("job")["status"].clone();
    let refused = sandbox.refrain(&["discard", "job"]).with_code(17).stderr;
    assert!(refused.contains("settings.conf (") && refused.contains("then refrain discard job"), "{refused}");
    assert!(!refused.contains("work.txt") && !refused.contains(&token), "{refused}");
    assert_eq!(sandbox.status("job")["status"], before, "nothing has happened");
    let kept = sandbox.root().join("settings.conf");
    std::fs::rename(std::path::Path::new(&worktree).join("settings.conf"), kept).unwrap();
    sandbox.refrain(&["discard", "job"]).with_code(0);
    let all = sandbox.git(&["log", "--all", "--patch"]);
    assert!(all.contains("+work\n") && !all.contains(&token), "{all}");
}

#[test]
fn nothing_is_merged_into_a_folder_where_a_loop_works() {
    let sandbox = sandbox();
    verified(&sandbox, "job", "true");
    let gate = sandbox.gate("go");
    let agent = sandbox.agent("busy", "echo x >> $NOTES/began; read -r _ < $GATES/go");
    let session = sandbox.spawn(&["start", "--command", &agent, "--name", "busy", "p"]);
    sandbox.wait_for_note("began");
    let before = head(&sandbox, "main");
    let refused = sandbox.refrain(&["merge", "job"]).with_code(17).stderr;
    assert!(refused.contains("busy works in "), "{refused}");
    assert_eq!(head(&sandbox, "main"), before);
    sandbox.refrain(&["cancel", "busy", "--now"]).with_code(0);
    session.wait().with_code(15);
    drop(gate);
    sandbox.refrain(&["merge", "job"]).with_code(0);
}

#[test]
fn open_starts_the_editor_in_the_folder_of_the_loop() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", CLAIM);
    sandbox.refrain(&["start", "--command", &agent, "--name", "job", "p"]).with_code(0);
    let editor = sandbox.agent("editor", "pwd > $NOTES/opened; echo \"$1\" >> $NOTES/opened");
    sandbox.command(&["open"]).env("EDITOR", &editor).run().with_code(0);
    assert_eq!(sandbox.note("opened"), format!("{}\n.\n", sandbox.project().display()));
    let failing = sandbox.agent("shell", "exit 3");
    sandbox.command(&["open", "job", "--shell"]).env("SHELL", &failing).run().with_code(1);
}

#[test]
fn a_short_timeout_without_a_unit_is_named() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", CLAIM);
    let start = |name: &str, timeout: &str| {
        sandbox
            .refrain(&["start", "--command", &agent, "--name", name, "--timeout", timeout, "p"])
            .with_code(0)
            .stderr
    };
    assert!(start("a", "20").contains("--timeout 20 is 20s for each attempt"));
    assert!(!start("b", "20s").contains("for each attempt"));
    assert!(!start("c", "600").contains("for each attempt"));
    let hasty = ["start", "--command", &agent, "--name", "d", "--timeout", "1ms", "-m", "1", "p"];
    let said = sandbox.refrain(&hasty).stderr;
    assert!(said.contains("--timeout 1ms ends each attempt in less than a second"), "{said}");
}

#[test]
fn uncommitted_work_is_not_merged_and_no_work_is_merged_twice() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", ADDS);
    let start =
        ["start", "--command", &agent, "--name", "cap", "--worktree", "--git-workflow", "commit", "-m", "1"];
    sandbox.refrain(&[&start[..], &["--gate", "test -f never", "Add work."]].concat()).with_code(10);
    let before = head(&sandbox, "main");
    let refused = sandbox.refrain(&["merge", "cap", "--unverified"]).with_code(17).stderr;
    assert!(refused.contains("cap has 1 file in no commit: work.txt, in "), "{refused}");
    assert_eq!(head(&sandbox, "main"), before);

    verified(&sandbox, "job", "true");
    sandbox.refrain(&["merge", "job", "--squash"]).with_code(0);
    let squashed = head(&sandbox, "main");
    for words in [&["merge", "job", "--squash"][..], &["merge", "job"]] {
        let again = sandbox.refrain(words).with_code(0).stdout;
        assert!(again.contains("already"), "{again}");
        assert_eq!(head(&sandbox, "main"), squashed, "{words:?}");
    }
}

#[test]
fn a_refused_answer_is_not_kept() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", "true");
    sandbox.refrain(&["start", "--command", &agent, "--name", "job", "-m", "1", "p"]).with_code(10);
    let before = sandbox.journal("job").len();
    sandbox.refrain(&["answer", "job", "Blue."]).with_code(17);
    assert_eq!(sandbox.journal("job").len(), before);
}

#[test]
fn a_plan_that_did_nothing_verified_nothing() {
    let sandbox = sandbox();
    write(&sandbox.project().join("PLAN.md"), "- [x] Paint the door\n");
    sandbox.git(&["add", "PLAN.md"]);
    sandbox.git(&["commit", "--quiet", "--message", "Plan"]);
    let agent = sandbox.agent("agent", "true");
    let run =
        ["plan", "run", "--plan", "PLAN.md", "--command", &agent, "--verify", "false", "--name", "none"];
    let said = sandbox.refrain(&run).with_code(0).stdout;
    assert_eq!(said, "PLAN.md: the only task is done, so nothing was begun\n");
    let said = sandbox.refrain(&[&run[..], &["--dry-run"]].concat()).with_code(0).stderr;
    assert!(
        said.ends_with("the only task is done, so without --dry-run nothing is begun either\n"),
        "{said}"
    );
    sandbox.refrain(&["plan", "status", "none"]).with_code(3);
    // A program that asks for the status gets one.
    let status = sandbox.refrain(&[&run[..], &["--json"]].concat()).with_code(0).json();
    assert_eq!((&status["status"], &status["verified"]), (&json!("completed"), &json!(false)));
    let said = sandbox.refrain(&["report", "none"]).with_code(0).stdout;
    assert!(!said.contains("✔ verified"), "{said}");
    assert_eq!(sandbox.refrain(&["plan", "status", "none", "--json"]).json()["verified"], json!(false));
}

/// As after a kill between the move of the branch and that of git's index: a commit of the user would take the file out.
#[test]
fn a_merge_that_was_killed_behind_the_branch_is_finished_by_the_next() {
    let sandbox = sandbox();
    verified(&sandbox, "job", "work=test -e work.txt");
    let (began, work) = (head(&sandbox, "main"), head(&sandbox, "work-job"));
    write(&sandbox.project().join("work.txt"), "work\n");
    sandbox.git(&["update-ref", "refs/heads/main", &work]);
    write(&sandbox.project().join(".git/refrain-handover"), format!("{began} {work}\n"));
    assert!(sandbox.git(&["status", "--porcelain"]).contains("D  work.txt"));
    let said = sandbox.refrain(&["merge", "job"]).with_code(0).stdout;
    assert!(said.contains("has all of work-job already"), "{said}");
    assert_eq!(sandbox.git(&["status", "--porcelain"]), "");
}

#[test]
fn a_merge_names_the_lock_that_holds_the_branch() {
    let sandbox = sandbox();
    verified(&sandbox, "job", "work=test -e work.txt");
    let lock = sandbox.project().join(".git/refs/heads/main.lock");
    write(&lock, "");
    let refused = sandbox.refrain(&["merge", "job"]).with_code(17).stderr;
    assert!(refused.contains("git did not move main: ") && refused.contains("main.lock"), "{refused}");
    std::fs::remove_file(lock).unwrap();
    sandbox.refrain(&["merge", "job"]).with_code(0);
}
