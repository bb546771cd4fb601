//! What the program says to a newcomer about work that it cannot show, merge or tell apart: each sentence was wrong or missing once.

use serde_json::{Value, json};
use testkit::{Sandbox, write};

use crate::surfaces::terminal::Terminal;
use crate::{CLAIM, sandbox};

#[test]
fn changes_to_a_file_that_had_changes_before_are_named_and_never_called_nothing() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", &format!("echo more >> README.md\n{CLAIM}"));
    for (name, workflow) in [("none", "none"), ("commit", "commit")] {
        write(&sandbox.project().join("README.md"), "mine\n");
        let start =
            ["start", "--command", &agent, "--name", name, "--git-workflow", workflow, "--gate", "true"];
        sandbox.refrain(&[&start[..], &["p"]].concat()).with_code(0);
        let shown = sandbox.refrain(&["diff", name]).with_code(0);
        assert_eq!(shown.stdout, "", "{workflow}");
        for part in [
            "Not shown: README.md, which had changes that were in no commit when it began, and has changed since",
            "git diff HEAD -- README.md shows your changes and the loop's together",
            "no differences to show",
        ] {
            assert!(shown.stderr.contains(part), "{workflow}: {part}: {}", shown.stderr);
        }
        let report = sandbox.refrain(&["report", name]).with_code(0).stdout;
        assert!(report.contains("Not counted: README.md."), "{workflow}: {report}");
    }
}

#[test]
fn a_merge_without_an_id_means_the_only_loop_with_work_that_is_not_merged() {
    let sandbox = sandbox();
    let start = |name: &str, more: &[&str]| {
        let agent = sandbox.agent(name, &format!("echo work > {name}.txt\n{CLAIM}"));
        let words = ["start", "--command", &agent, "--name", name, "--gate", "true", "-q", "p"];
        sandbox.refrain(&[&words[..], more].concat()).with_code(0);
    };
    let apart = ["--worktree", "--git-workflow", "commit", "--branch-template", "work-{loop}"];
    start("merged", &apart);
    sandbox.refrain(&["merge", "merged"]).with_code(0);
    start("squashed", &apart);
    sandbox.refrain(&["merge", "squashed", "--squash"]).with_code(0);
    start("here", &["--git-workflow", "commit"]);
    let refused = sandbox.refrain(&["merge"]).with_code(2).stderr;
    assert!(refused.contains("no completed loop here has a branch that is not merged yet"), "{refused}");
    start("fresh", &apart);
    let run = sandbox.refrain(&["merge"]).with_code(0);
    assert!(run.stdout.starts_with("merged work-fresh into main: "), "{}", run.stdout);
}

#[test]
fn no_limit_is_a_value_that_stays_in_the_file_and_what_applies_is_said() {
    let sandbox = sandbox();
    let set = |words: &[&str]| sandbox.refrain(&[&["config", "set"], words].concat()).with_code(0);
    let said = set(&["start.max-cost", "none"]);
    assert!(said.stderr.ends_with("start.max-cost is \"none\": no limit applies\n"), "{said:?}");
    let path = sandbox.refrain(&["config", "path"]).with_code(0).stdout;
    let file = std::fs::read_to_string(path.trim_end()).unwrap();
    assert_eq!(file, "[start]\nmax-cost = \"none\"\n", "as the message says");
    assert!(set(&["start.max-cost", "5"]).stderr.ends_with("start.max-cost is set\n"));
    // A model may have this name.
    assert!(set(&["start.model", "none"]).stderr.ends_with("start.model is set\n"));
    assert!(
        set(&["git.workflow", "none"]).stderr.ends_with("git.workflow is \"none\": loops commit nothing\n")
    );
    let other = ["config", "set", "start.max-iterations", "30"];
    let said = sandbox.command(&other).env("REFRAIN_MAX_ITERATIONS", "7").run().with_code(0).stderr;
    assert!(said.contains("REFRAIN_MAX_ITERATIONS overrides it: start.max-iterations is 7 here"), "{said}");
}

#[test]
fn a_suggestion_that_only_looks_alike_is_not_made() {
    let sandbox = sandbox();
    for words in [&["completions", "tcsh"][..], &["open", "--iteration", "3"]] {
        let said = sandbox.refrain(words).with_code(2).stderr;
        assert!(!said.contains("similar"), "{said}");
    }
    for (words, meant) in
        [(["list", "--project"], "--all-projects"), (["plan", "watch"], "did you mean refrain watch?")]
    {
        let said = sandbox.refrain(&words).with_code(2).stderr;
        assert!(said.contains(meant), "{said}");
    }
    let said = sandbox.refrain(&["start", "--max-iteratons", "3"]).with_code(2).stderr;
    assert!(said.contains("--max-iterations"), "{said}");
}

#[test]
fn a_branch_that_was_deleted_is_named_with_the_command_that_brings_it_back() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", &format!("echo work > work.txt\n{CLAIM}"));
    let start = ["start", "--command", &agent, "--name", "job", "--worktree", "--git-workflow", "commit"];
    sandbox
        .refrain(&[&start[..], &["--branch-template", "work", "--gate", "true", "p"]].concat())
        .with_code(0);
    sandbox.git(&["branch", "-D", "work"]);
    let refused = sandbox.refrain(&["merge", "job"]).with_code(17).stderr;
    let command = refused.lines().nth(1).unwrap().trim().split(" brings it back").next().unwrap();
    assert!(command.starts_with("git branch work "), "{refused}");
    sandbox.git(&command.split(' ').skip(1).collect::<Vec<_>>());
    sandbox.refrain(&["merge", "job"]).with_code(0);
}

#[test]
fn work_that_its_gates_passed_is_verified_once_it_is_committed_by_hand() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", &format!("echo work > work.txt\n{CLAIM}"));
    let start = ["start", "--command", &agent, "--name", "job", "--worktree", "--gate", "true", "p"];
    sandbox.refrain(&start).with_code(0);
    let refused = sandbox.refrain(&["merge", "job"]).with_code(17).stderr;
    assert!(
        refused.contains("commit it there, then refrain merge job; it asks for --unverified if"),
        "{refused}"
    );
    let worktree = sandbox.status("job")["worktree"].as_str().unwrap().to_owned();
    sandbox.git(&["-C", &worktree, "add", "work.txt"]);
    sandbox.git(&["-C", &worktree, "commit", "--quiet", "--message", "Work"]);
    sandbox.refrain(&["merge", "job"]).with_code(0);
}

#[test]
fn packages_that_an_agent_installs_are_not_committed_and_keep_no_worktree() {
    let sandbox = sandbox();
    let installs = "mkdir -p node_modules/a; echo x > node_modules/a/index.js; echo work > work.txt";
    let agent = sandbox.agent("agent", &format!("{installs}\n{CLAIM}"));
    let start = ["start", "--command", &agent, "--name", "job", "--worktree", "--git-workflow", "commit"];
    sandbox.refrain(&[&start[..], &["--gate", "test -d node_modules", "p"]].concat()).with_code(0);
    assert_eq!(sandbox.git(&["worktree", "list"]).lines().count(), 1);
    sandbox.refrain(&["merge", "job"]).with_code(0);
    assert_eq!(sandbox.git(&["show", "--format=", "--name-only", "HEAD"]), "work.txt\n");
}

#[test]
fn a_plan_says_that_git_does_not_know_who_commits() {
    let sandbox = sandbox();
    sandbox.git(&["config", "user.useConfigOnly", "true"]);
    sandbox.git(&["config", "--global", "--unset-all", "user.email"]);
    write(&sandbox.project().join("PLAN.md"), "# Shop\n\n## Task 1: Write a.txt\n\nDo it.\n");
    let agent = sandbox.agent("agent", "exit 1");
    let words =
        ["plan", "run", "--plan", "PLAN.md", "--command", &agent, "--verify", "true", "--name", "shop"];
    let said = sandbox.refrain(&words).stderr;
    let commands = "git config --global user.name NAME; git config --global user.email ADDRESS";
    assert!(said.contains(&format!("no task can land: {commands}")), "{said}");
}

#[test]
fn a_loop_in_a_folder_without_git_has_nothing_to_merge_and_no_diff_is_advised() {
    let plain = Sandbox::without_git(env!("CARGO_BIN_EXE_refrain"));
    let agent = plain.agent("agent", &format!("echo work > work.txt\n{CLAIM}"));
    plain.refrain(&["start", "--command", &agent, "--name", "job", "-q", "p"]).with_code(0);
    let refused = plain.refrain(&["merge", "job"]).with_code(17).stderr;
    assert!(refused.contains("which has its work already and no git repository"), "{refused}");
    assert!(refused.contains("refrain report job") && !refused.contains("refrain diff"), "{refused}");
}

#[test]
fn a_notify_command_with_shell_syntax_is_noted() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", CLAIM);
    let start = |command: &str| {
        sandbox.refrain(&["start", "--command", &agent, "--notify-command", command, "p"]).with_code(0).stderr
    };
    let note = "note: no shell runs --notify-command, so \"|\" is an argument of it; sh -c '…' runs a shell";
    assert!(start("cat | tee log").contains(note));
    assert!(!start("sh -c 'cat > /dev/null'").contains("no shell runs"));
}

#[test]
fn a_resumed_loop_does_not_call_its_own_work_the_users() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", "echo line >> made.txt");
    let start = ["start", "--command", &agent, "--name", "job", "--max-iterations", "1", "--worktree"];
    let more = ["--git-workflow", "commit", "--gate", "test $(wc -l < made.txt) -ge 2", "p"];
    sandbox.refrain(&[&start[..], &more].concat()).with_code(10);
    let agent = sandbox.agent("agent", &format!("echo line >> made.txt\n{CLAIM}"));
    assert!(std::path::Path::new(&agent).exists());
    let resumed = sandbox.refrain(&["resume", "job", "--max-iterations", "2"]).with_code(0);
    assert!(!resumed.stdout.contains("before the loop"), "{}", resumed.stdout);
    assert!(resumed.stdout.contains("committed "), "{}", resumed.stdout);
}

#[test]
fn a_reviewer_beside_the_project_is_found_from_the_worktree_of_the_loop() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", &format!("echo work > made.txt\n{CLAIM}"));
    let reviewer = sandbox.agent("reviewer", "echo SPEC_PASS");
    std::fs::rename(reviewer, sandbox.project().join("reviewer.sh")).unwrap();
    write(&sandbox.project().join("spec.md"), "There is a file.\n");
    let start = ["start", "--command", &agent, "--name", "job", "--worktree", "--git-workflow", "commit"];
    let review = ["--spec-gate", "spec.md", "--reviewer", "./reviewer.sh", "p"];
    sandbox.refrain(&[&start[..], &review].concat()).with_code(0);
}

#[test]
fn what_diff_hides_as_a_key_is_not_committed_and_a_header_in_code_is_neither() {
    let sandbox = sandbox();
    let key =
        "{ echo '-----BEGIN RSA PRIVATE KEY-----'; echo MIIEfake; echo '-----END RSA PRIVATE KEY-----'; }";
    let code =
        "echo 'grep -q \"-----BEGIN PRIVATE KEY-----\" \"$1\" && exit 1' > check.sh; echo done >> check.sh";
    let agent = sandbox.agent("agent", &format!("{key} > key.txt; {code}\n{CLAIM}"));
    let start = ["start", "--command", &agent, "--name", "job", "--git-workflow", "commit", "--gate", "true"];
    let said = sandbox.refrain(&[&start[..], &["p"]].concat()).with_code(0).stdout;
    assert!(said.contains("left out of the commit: key.txt: line 1 looks like a private key"), "{said}");
    assert_eq!(sandbox.git(&["show", "--format=", "--name-only"]), "check.sh\n");
    let shown = sandbox.refrain(&["diff", "job"]).with_code(0).stdout;
    assert!(shown.contains("+grep -q \"-----BEGIN PRIVATE KEY-----\"") && shown.contains("+done"), "{shown}");
    assert!(!shown.contains("redacted"), "{shown}");
}

/// A loop in a worktree of its own that makes `NAME.txt` on the branch `work-NAME`.
fn worked(sandbox: &Sandbox, name: &str, more: &[&str]) -> testkit::Run {
    let agent = sandbox.agent(name, &format!("echo work > {name}.txt\n{CLAIM}"));
    let words = ["start", "--command", &agent, "--name", name, "--worktree", "--git-workflow", "commit"];
    let rest = ["--branch-template", "work-{loop}", "p"];
    sandbox.refrain(&[&words[..], more, &rest].concat())
}

#[test]
fn status_says_what_became_of_the_branch_of_a_loop() {
    let sandbox = sandbox();
    let branch = |name: &str| {
        let shown = sandbox.refrain(&["status", name]).with_code(0).stdout;
        let line = shown.lines().find_map(|line| line.strip_prefix("branch "));
        line.map(|line| line.trim().to_owned())
    };
    for name in ["merged", "squashed", "discarded", "deleted"] {
        worked(&sandbox, name, &["--gate", "true"]).with_code(0);
        assert_eq!(branch(name), Some(format!("work-{name}")));
    }
    sandbox.refrain(&["merge", "merged"]).with_code(0);
    assert_eq!(branch("merged").as_deref(), Some("work-merged (merged into main)"));
    sandbox.refrain(&["merge", "squashed", "--squash"]).with_code(0);
    assert_eq!(branch("squashed").as_deref(), Some("work-squashed (merged into main)"));
    for (name, merged_into) in
        [("merged", json!("main")), ("squashed", json!("main")), ("deleted", Value::Null)]
    {
        assert_eq!(sandbox.status(name)["merged_into"], merged_into);
        let watched = sandbox.refrain(&["watch", name]).with_code(0).stdout;
        assert_eq!(watched.contains(&format!("refrain merge {name}")), merged_into.is_null(), "{watched}");
    }
    sandbox.refrain(&["gc", "--yes"]).with_code(0);
    assert_eq!(branch("merged").as_deref(), Some("work-merged (merged into main, and removed)"));
    sandbox.refrain(&["discard", "discarded"]).with_code(0);
    let back = "work-discarded (discarded; git branch work-discarded refs/refrain/discarded/discarded brings it back)";
    assert_eq!(branch("discarded").as_deref(), Some(back));
    sandbox.git(&["branch", "-D", "work-deleted"]);
    let gone = branch("deleted").unwrap();
    assert_eq!(gone, "work-deleted (gone; refrain merge deleted says how to bring it back)");

    // Loops without a commit, on a branch of their own and on the user's.
    let agent = sandbox.agent("idle", CLAIM);
    let start = ["start", "--command", &agent, "--gate", "true", "p", "--name"];
    sandbox.refrain(&[&start[..], &["own", "--worktree"]].concat()).with_code(0);
    sandbox.refrain(&[&start[..], &["here"]].concat()).with_code(0);
    assert_eq!((branch("own"), branch("here")), (None, None));
}

#[test]
fn what_is_merged_is_not_proposed_again() {
    let sandbox = sandbox();
    let overview = || Terminal::open(&sandbox, &[], &[("NO_COLOR", "1")]).wait().1;
    worked(&sandbox, "job", &["--gate", "true"]).with_code(0);
    assert!(overview().contains("next: refrain diff job"), "{}", overview());
    sandbox.refrain(&["merge", "job"]).with_code(0);
    assert!(
        overview().contains("merged into main") && !overview().contains("refrain diff job"),
        "{}",
        overview()
    );
}

#[test]
fn the_end_names_files_that_the_gates_saw_and_no_commit_has() {
    let sandbox = sandbox();
    write(&sandbox.project().join("notes.txt"), "mine\n");
    let agent = sandbox.agent("agent", &format!("echo work > work.txt\n{CLAIM}"));
    let start = ["start", "--command", &agent, "--git-workflow", "commit", "p", "--name"];
    let gate = ["--gate", "test -f notes.txt"];
    let said = sandbox.refrain(&[&start[..], &["seen"], &gate].concat()).with_code(0).stdout;
    let line = "not in its commits: notes.txt (yours, from before the loop); its gates saw that\n";
    assert!(said.contains(line), "{said}");
    // A clean checkout has no such file.
    let clean = ["clean", "--gate", "true", "--clean-checkout"];
    let agent = sandbox.agent("agent", &format!("echo more > more.txt\n{CLAIM}"));
    assert!(std::path::Path::new(&agent).exists());
    let said = sandbox.refrain(&[&start[..], &clean].concat()).with_code(0).stdout;
    assert!(said.contains("committed ") && !said.contains("not in its commits"), "{said}");
}

#[test]
fn a_stopped_loop_that_asks_nothing_is_not_answered() {
    let sandbox = sandbox();
    let gate = sandbox.gate("go");
    let agent = sandbox.agent("agent", "echo x >> $NOTES/began; read -r _ < $GATES/go");
    let session = sandbox.spawn(&["start", "--command", &agent, "--name", "job", "p"]);
    sandbox.wait_for_note("began");
    sandbox.refrain(&["pause", "job", "--now"]).with_code(0);
    session.wait().with_code(16);
    let before = sandbox.journal("job").len();
    let refused = sandbox.refrain(&["answer", "job", "Blue."]).with_code(17).stderr;
    assert!(
        refused.contains("job asks nothing") && refused.contains("refrain resume job continues it"),
        "{refused}"
    );
    assert_eq!(sandbox.journal("job").len(), before, "nothing was kept for later");
    drop(gate);
}

#[test]
fn init_says_which_options_the_file_that_is_there_leaves_without_effect() {
    let sandbox = sandbox();
    write(&sandbox.project().join("refrain.toml"), "[start]\nagent = \"claude\"\n");
    let said = sandbox.refrain(&["init", "--agent", "codex", "--yes"]).with_code(0).stdout;
    let note =
        "note: refrain.toml was there and is kept, so --agent, --yes changed and trusted nothing in it";
    assert!(said.contains("refrain.toml: left as it is") && said.contains(note), "{said}");
    assert!(!sandbox.refrain(&["init"]).with_code(0).stdout.contains("note:"));
}

#[test]
fn discard_without_an_id_names_what_it_discarded() {
    let sandbox = sandbox();
    worked(&sandbox, "job", &["--gate", "true"]).with_code(0);
    let mut terminal = Terminal::open(&sandbox, &["discard"], &[]);
    terminal.wait_for("Discard job? [y/N]");
    terminal.type_keys("n\n");
    assert_eq!(terminal.wait().0, 0);
    let said = sandbox.refrain(&["discard"]).with_code(0).stderr;
    assert!(said.contains("note: job is discarded: branch work-job is removed"), "{said}");
}

#[test]
fn without_an_id_where_there_is_nothing_is_the_same_error_for_loops_and_plans() {
    let sandbox = sandbox();
    for words in [&["status"][..], &["logs"], &["diff"], &["plan", "status"]] {
        let said = sandbox.refrain(words).with_code(2).stderr;
        assert!(said.contains("this project has no "), "{said}");
    }
    sandbox.refrain(&["status", "ghost"]).with_code(3);
    sandbox.refrain(&["plan", "status", "ghost"]).with_code(3);
    sandbox.refrain(&["plan", "status", "--tag", "ghost"]).with_code(3);
}

#[test]
fn a_merge_shows_the_gates_that_it_runs() {
    let sandbox = sandbox();
    worked(&sandbox, "job", &["--gate", "there=test -f README.md"]).with_code(0);
    write(&sandbox.project().join("other.txt"), "mine\n");
    sandbox.git(&["add", "other.txt"]);
    sandbox.git(&["commit", "--quiet", "--message", "Mine"]);
    let said = sandbox.refrain(&["merge", "job"]).with_code(0).stderr;
    assert_eq!(said, "gate there runs on the merged work\nPASS  there\n");
}

#[expect(clippy::disallowed_methods, reason = "it stands for an agent that lost its supervisor")]
#[test]
fn doctor_names_no_process_of_another_home() {
    let sandbox = sandbox();
    let orphan = |state_home: &str| {
        let mut command = std::process::Command::new("sleep");
        let loop_state = sandbox.project().join(".refrain/job/state.md");
        command.arg("1000").env("REFRAIN_LOOP_ID", "job").env("REFRAIN_STATE_FILE", loop_state);
        command
            .env("REFRAIN_PROJECT", sandbox.project())
            .env("XDG_STATE_HOME", sandbox.root().join(state_home));
        command.spawn().unwrap()
    };
    let [mut own, mut other] = ["home/state", "elsewhere"].map(orphan);
    let said = sandbox.refrain(&["doctor", "--json"]).stdout;
    for child in [&mut own, &mut other] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let [own, other] = [own, other].map(|child| format!("{} sleep 1000", child.id()));
    assert!(said.contains(&own) && !said.contains(&other), "{said}");
}

#[test]
fn a_merge_of_commits_that_are_on_another_branch_or_none_names_the_command_that_merges_them() {
    let sandbox = sandbox();
    write(&sandbox.project().join("mine.txt"), "mine\n");
    let start = |name: &str| {
        let agent = sandbox.agent(name, &format!("echo work > {name}.txt\n{CLAIM}"));
        let words =
            ["start", "--commit-only", "--command", &agent, "--name", name, "--gate", "true", "-q", "p"];
        sandbox.refrain(&words).with_code(0);
    };
    let merge = |name: &str| sandbox.refrain(&["merge", name]).with_code(17).stderr;
    sandbox.git(&["checkout", "--quiet", "--detach"]);
    start("apart");
    let commit = sandbox.git(&["rev-parse", "--short=7", "HEAD"]);
    sandbox.git(&["checkout", "--quiet", "-b", "feat", "main"]);
    start("other");
    sandbox.git(&["checkout", "--quiet", "main"]);
    for (name, revision) in [("apart", commit.trim()), ("other", "feat")] {
        let refused = merge(name);
        assert!(refused.contains("what is checked out here lacks its commits"), "{refused}");
        let command = format!("git merge {revision}");
        assert!(refused.contains(&command), "{command}: {refused}");
        assert!(!refused.contains("not committed") && !refused.contains("already"), "{refused}");
        sandbox.git(&["merge", "--quiet", "--no-edit", revision]);
        let refused = merge(name);
        assert!(refused.contains("which has its work already"), "{refused}");
    }
}

#[test]
fn a_worktree_that_was_never_made_is_not_called_removed() {
    let sandbox = sandbox();
    let usual = sandbox.env().into_iter().find(|(name, _)| *name == "PATH").unwrap().1;
    let refuses = "case \"$*\" in *'worktree add'*) echo no >&2; exit 1;; esac";
    let git = sandbox.agent("git", &format!("{refuses}\nPATH={usual} exec git \"$@\""));
    let path = format!("{}:{usual}", std::path::Path::new(&git).parent().unwrap().display());
    let agent = sandbox.agent("agent", CLAIM);
    let start = ["start", "--command", &agent, "--name", "job", "--worktree", "-q", "p"];
    sandbox.command(&start).env("PATH", &path).run().with_code(14);
    let status = sandbox.refrain(&["status", "job"]).with_code(0).stdout;
    assert!(status.contains("(not made yet)") && !status.contains("removed"), "{status}");
    let diff = sandbox.refrain(&["diff", "job"]);
    assert!(diff.stderr.contains("Its worktree is not made yet"), "{diff:?}");
    let refused = sandbox.refrain(&["open", "job"]).with_code(17).stderr;
    assert!(refused.contains("is not made yet") && !refused.contains("any more"), "{refused}");
}

#[test]
fn resume_last_says_that_it_resumes_only_if_it_does() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", "echo line >> made.txt");
    let start = ["start", "--command", &agent, "--name", "job", "--max-iterations", "1", "-q", "p"];
    sandbox.refrain(&start).with_code(10);
    let refused = sandbox.refrain(&["resume", "--last"]).with_code(17).stderr;
    assert!(!refused.contains("resuming"), "{refused}");
    let resumed = sandbox.refrain(&["resume", "--last", "--max-iterations", "2"]).with_code(10).stderr;
    assert!(resumed.contains("resuming job"), "{resumed}");
}

#[test]
fn a_state_folder_that_cannot_be_read_is_named_and_no_key_is_suspected() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", CLAIM);
    let start = ["start", "--command", &agent, "--name", "job", "--no-gates", "p"];
    sandbox.refrain(&start).with_code(0);
    let file = sandbox.project().join("file");
    write(&file, "");
    for words in [&["list"][..], &["status", "job"], &["report", "job"], &["doctor"], &start] {
        let run = sandbox.command(words).env("XDG_STATE_HOME", file.to_str().unwrap()).run().with_code(1);
        let said =
            format!("the folder of Refrain's state, {}/refrain, cannot be used: read ", file.display());
        assert!(run.stderr.contains(&said) && run.stderr.contains("Not a directory"), "{run:?}");
        assert!(
            run.stderr.contains("or set XDG_STATE_HOME to another one") && run.stdout.is_empty(),
            "{run:?}"
        );
    }
}

#[test]
fn archived_loops_are_listed_and_one_that_can_continue_comes_back() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", "echo working");
    let start = ["start", "--command", &agent, "--name", "job", "-m", "1", "--no-gates", "p"];
    sandbox.refrain(&start).with_code(10);
    let archived = || sandbox.refrain(&["list", "--archived"]).with_code(0);
    assert_eq!(archived().stdout, "No archived loops in this project.\n");
    sandbox.refrain(&["archive", "job"]).with_code(0);
    assert_eq!(sandbox.refrain(&["list"]).with_code(0).stdout, "No loops in this project.\n");
    let listed = archived();
    assert!(listed.stdout.starts_with("job ") && listed.stdout.contains("iteration-cap"), "{listed:?}");
    assert!(listed.stderr.contains("refrain resume ID brings one back that can continue"), "{listed:?}");
    let objects = sandbox.refrain(&["list", "--archived", "--json"]).with_code(0).json();
    assert_eq!(objects[0]["id"], "job");
    sandbox.refrain(&["resume", "job", "-m", "2"]).with_code(10);
    assert!(sandbox.refrain(&["list"]).with_code(0).stdout.starts_with("job "));
    assert_eq!(archived().stdout, "No archived loops in this project.\n");
}
