//! What the program says to a newcomer about work that it cannot show, merge or tell apart: each sentence was wrong or missing once.

use testkit::{Sandbox, write};

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
fn a_limit_that_is_taken_back_is_unset_and_what_applies_is_said() {
    let sandbox = sandbox();
    let set = |words: &[&str]| sandbox.refrain(&[&["config", "set"], words].concat()).with_code(0);
    let said = set(&["start.max-cost", "none"]);
    assert!(said.stderr.ends_with("start.max-cost is unset (\"none\"): no limit applies\n"), "{said:?}");
    assert!(set(&["start.max-cost", "5"]).stderr.ends_with("start.max-cost is set\n"));
    // A model may have this name.
    assert!(set(&["start.model", "none"]).stderr.ends_with("start.model is set\n"));
    assert!(set(&["git.workflow", "none"]).stderr.ends_with("git.workflow is none: loops commit nothing\n"));
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
        refused.contains("commit them there, then refrain merge job; it asks for --unverified if"),
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
