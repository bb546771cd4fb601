//! What an agent plants in git is not run by Refrain's own git: hooks, filters, signing programs, a `git` of its own,
//! with or without a repository in the repository. What the user set up before is run, and no process of it lives on.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rstest::rstest;
use serde_json::{Value, json};
use testkit::{Run, Sandbox, eventually, write};

use crate::{CLAIM, plain_folder, sandbox};

/// A program that leaves a trace; as a filter it changes nothing.
fn evil(sandbox: &Sandbox) -> String {
    let fired = fired(sandbox);
    program(sandbox, "evil", &format!("echo \"$0 $*\" >> '{}'\n[ -t 0 ] || cat", fired.display()))
}

fn fired(sandbox: &Sandbox) -> PathBuf {
    sandbox.root().join("fired")
}

fn program(sandbox: &Sandbox, name: &str, script: &str) -> String {
    let path = sandbox.root().join(name);
    executable(&path, script);
    path.to_str().unwrap().to_owned()
}

fn executable(path: &Path, script: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    write(path, format!("#!/bin/sh\n{script}\n"));
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// An agent that plants something in its first run, with `$EVIL` as the program, works and claims.
fn agent(sandbox: &Sandbox, plant: &str) -> String {
    let evil = evil(sandbox);
    sandbox.agent("planter", &format!("EVIL='{evil}'\necho line >> work.txt\n{plant}\n{CLAIM}"))
}

fn start(sandbox: &Sandbox, agent: &str, more: &[&str]) -> Run {
    let words = ["start", "--command", agent, "--name", "job", "-p", "Work.", "-m", "2", "--gate", "true"];
    sandbox.refrain(&[&words, more].concat())
}

/// The changes reported of the last attempt.
fn changed(sandbox: &Sandbox) -> Vec<Value> {
    let journal = sandbox.journal("job");
    let ended = journal.iter().rfind(|record| record["event"]["type"] == "attempt.finished").unwrap();
    ended["event"]["data"]["git_changed"].as_array().cloned().unwrap_or_default()
}

#[track_caller]
fn nothing_fired(sandbox: &Sandbox) {
    let fired = fs::read_to_string(fired(sandbox)).unwrap_or_default();
    assert_eq!(fired, "", "what the agent planted was run");
}

const NONE: &[&str] = &[];
const COMMIT: &[&str] = &["--git-workflow", "commit"];
const WORKTREE: &[&str] = &["--git-workflow", "commit", "--worktree"];
const TEMPLATE: &[&str] = &["--git-workflow", "commit", "--commit-template", "One\n\nTwo: x"];
const HOOK: &str = "mkdir -p .git/hooks; for hook in pre-commit prepare-commit-msg commit-msg post-commit post-index-change \
    reference-transaction post-checkout fsmonitor-watchman; do cp $EVIL .git/hooks/$hook; done";
const FILTER: &str = "git config filter.q.clean $EVIL; git config filter.q.smudge $EVIL; echo '* filter=q' > .git/info/attributes; \
    touch README.md work.txt";

#[rstest]
#[case::hooks(HOOK, &[NONE, COMMIT], "hooks/post-index-change")]
#[case::a_folder_of_hooks(
    "mkdir own; cp $EVIL own/pre-commit; cp $EVIL own/post-index-change; git config core.hooksPath own",
    &[NONE, COMMIT],
    "core.hookspath"
)]
#[case::a_filter(FILTER, &[NONE, COMMIT, WORKTREE], "filter.q.clean")]
#[case::a_process_that_filters(
    "git config filter.q.process $EVIL; git config filter.q.required true; echo '* filter=q' > .gitattributes",
    &[NONE, COMMIT],
    "filter.q.process"
)]
#[case::a_filter_of_the_user("git config --global filter.q.clean $EVIL; echo '* filter=q' > .gitattributes", &[COMMIT], "filter.q.clean")]
#[case::a_file_that_is_included(
    "printf '[filter \"q\"]\\n\\tclean = %s\\n' $EVIL > .git/more; git config include.path more; echo '* filter=q' > .gitattributes",
    &[COMMIT],
    "filter.q.clean"
)]
#[case::a_signing_program(
    "git config gpg.program $EVIL; git config commit.gpgSign true",
    &[NONE, COMMIT],
    "gpg.program"
)]
#[case::a_trailer("git config trailer.x.cmd $EVIL", &[TEMPLATE], "")]
#[case::a_monitor("git config core.fsmonitor $EVIL", &[NONE, COMMIT], "")]
#[case::a_differ("git config diff.external $EVIL; git config diff.d.textconv $EVIL; echo '* diff=d' > .gitattributes", &[COMMIT], "")]
fn programs_that_an_agent_plants_in_git_are_not_run(
    #[case] plant: &str,
    #[case] flags: &[&[&str]],
    #[case] named: &str,
) {
    for flags in flags {
        let sandbox = sandbox();
        let agent = agent(&sandbox, plant);
        let run = start(&sandbox, &agent, flags).with_code(0);
        nothing_fired(&sandbox);
        if named.is_empty() {
            continue;
        }
        assert!(changed(&sandbox).contains(&json!(named)), "{flags:?}: {:?}", changed(&sandbox));
        let line = run
            .stdout
            .lines()
            .find(|line| line.contains("changed since the start, and neither run nor used"));
        assert!(line.is_some_and(|line| line.contains(named)), "{}", run.stdout);
        if flags.contains(&"commit") {
            assert!(sandbox.git(&["show", "--stat", "--all", "--format="]).contains("work.txt"));
        }
    }
}

#[test]
fn a_hook_of_an_agent_does_not_approve_its_own_loop() {
    let sandbox = sandbox();
    let refrain = env!("CARGO_BIN_EXE_refrain");
    let approve = format!(
        "echo x >> '{}'\n(setsid sh -c 'unset REFRAIN_LOOP_ID REFRAIN_ATTEMPT REFRAIN_DEPTH; sleep 0.5; {refrain} approve job' \
         < /dev/null > /dev/null 2>&1 &)",
        fired(&sandbox).display()
    );
    let approve = program(&sandbox, "approve", &approve);
    let agent = agent(
        &sandbox,
        &format!("cp {approve} .git/hooks/post-index-change; cp {approve} .git/hooks/pre-commit"),
    );
    start(&sandbox, &agent, &["--git-workflow", "commit", "--require-approval"]).with_code(14);
    nothing_fired(&sandbox);
    assert_eq!(sandbox.status("job")["status"], "blocked");
    // The user's own yes commits, and the hooks stay off.
    sandbox.approve("job", &[]).with_code(0);
    nothing_fired(&sandbox);
    sandbox.no_process_is_left();
}

#[rstest]
#[case::that_is_added("git add sub")]
#[case::that_is_new("true")]
#[case::that_is_called_a_submodule(
    "git add sub; printf '[submodule \"sub\"]\\n\\tpath = sub\\n\\turl = ./sub\\n' > .gitmodules"
)]
fn a_repository_in_the_repository_is_not_entered(#[case] more: &str) {
    for flags in [NONE, COMMIT, &["--clean-checkout"]] {
        let sandbox = sandbox();
        let plant = format!(
            "git init -q sub; echo a > sub/a; git -C sub add a; git -C sub -c user.name=A -c user.email=a@b commit -qm a
             git -C sub config filter.q.clean $EVIL; git -C sub config core.fsmonitor $EVIL
             cp $EVIL sub/.git/hooks/post-index-change; echo '* filter=q' > sub/.git/info/attributes; echo b > sub/a; {more}; rm -f '{}'",
            fired(&sandbox).display()
        );
        let agent = agent(&sandbox, &plant);
        start(&sandbox, &agent, flags);
        nothing_fired(&sandbox);
    }
}

#[test]
fn a_repository_that_an_agent_makes_is_not_looked_at_in_its_way() {
    let sandbox = plain_folder();
    let plant =
        "git init -q .; git add work.txt; git -c user.name=A -c user.email=a@b commit -qm a; touch work.txt
        git config filter.q.clean $EVIL; echo '* filter=q' > .git/info/attributes";
    let agent = agent(&sandbox, &format!("{plant}; rm -f '{}'", fired(&sandbox).display()));
    start(&sandbox, &agent, NONE).with_code(0);
    sandbox.refrain(&["report", "job"]);
    nothing_fired(&sandbox);
}

#[test]
fn git_programs_that_the_user_set_up_are_run() {
    let sandbox = sandbox();
    let evil = evil(&sandbox);
    let hooks = sandbox.project().join(".git/hooks");
    fs::create_dir_all(&hooks).unwrap();
    fs::copy(&evil, hooks.join("pre-commit")).unwrap();
    sandbox.git(&["config", "filter.q.clean", &evil]);
    write(&sandbox.project().join(".git/info/attributes"), "work.txt filter=q\n");
    let agent = agent(&sandbox, "true");
    let run = start(&sandbox, &agent, COMMIT).with_code(0);
    let fired = fs::read_to_string(fired(&sandbox)).unwrap();
    assert!(fired.contains("hooks/pre-commit") && fired.contains("/evil"), "{fired}");
    assert!(!run.stdout.contains("changed since the start"), "{}", run.stdout);
}

#[test]
fn a_hook_of_the_user_that_an_agent_changed_is_not_run() {
    let sandbox = sandbox();
    executable(&sandbox.project().join(".git/hooks/pre-commit"), "exit 0");
    executable(&sandbox.project().join("tools/clean.sh"), "cat");
    sandbox.git(&["config", "filter.q.clean", "sh tools/clean.sh"]);
    write(&sandbox.project().join(".gitattributes"), "work.txt filter=q\n");
    sandbox.git(&["add", "."]);
    sandbox.git(&["commit", "-qm", "A filter"]);
    let agent = agent(&sandbox, "cat $EVIL > .git/hooks/pre-commit; cat $EVIL > tools/clean.sh");
    start(&sandbox, &agent, COMMIT).with_code(0);
    nothing_fired(&sandbox);
    let changed = changed(&sandbox);
    for name in ["filter.q.clean", "hooks/pre-commit"] {
        assert!(changed.contains(&json!(name)), "{changed:?}");
    }
}

#[test]
fn processes_that_a_hook_left_do_not_outlive_the_commit() {
    let sandbox = sandbox();
    let left = sandbox.root().join("left");
    let stays = program(
        &sandbox,
        "stays",
        &format!("echo $$ > '{0}.part'; mv '{0}.part' '{0}'; exec sleep 1000", left.display()),
    );
    executable(
        &sandbox.project().join(".git/hooks/pre-commit"),
        &format!(
            "(env -i PATH=\"$PATH\" setsid {stays} < /dev/null > /dev/null 2>&1 &)\nuntil [ -e '{}' ]; do sleep 0.01; done",
            left.display()
        ),
    );
    let agent = agent(&sandbox, "true");
    start(&sandbox, &agent, COMMIT).with_code(0);
    let pid = fs::read_to_string(&left).unwrap();
    let gone = || (!Path::new("/proc").join(pid.trim()).exists()).then_some(());
    eventually("no process of the hook is left", gone);
}

#[test]
fn a_git_of_the_project_is_not_run() {
    let sandbox = sandbox();
    let evil = evil(&sandbox);
    let bin = sandbox.project().join("bin");
    fs::create_dir_all(&bin).unwrap();
    let usual = sandbox.env().into_iter().find(|(name, _)| *name == "PATH").unwrap().1;
    let agent = agent(&sandbox, &format!("cp {evil} bin/git; cp {evil} bin/ssh"));
    let words = [
        "start",
        "--command",
        &agent,
        "--name",
        "job",
        "-p",
        "Work.",
        "--gate",
        "true",
        "--git-workflow",
        "commit",
    ];
    let path = format!("{}:{usual}", bin.display());
    sandbox.command(&words).env("PATH", &path).run().with_code(0);
    nothing_fired(&sandbox);
}

/// The gate fails in the worktree, and would pass on files that the tree does not have.
#[rstest]
#[case::by_a_replaced_object(
    "git replace $(git hash-object -w sum.sh) $(sed 's/echo 0/echo $(($1 + $2))/' sum.sh | git hash-object -w --stdin)"
)]
#[case::by_a_filter_of_the_repository(
    "git config filter.f.smudge \"sed 's/echo 0/echo 3/'\"; git config filter.f.clean cat; echo 'sum.sh filter=f' > .git/info/attributes"
)]
#[case::by_a_filter_that_a_file_of_the_tree_names(
    "git config filter.f.smudge \"sed 's/echo 0/echo 3/'\"; git config filter.f.clean cat; echo 'sum.sh filter=f' > .gitattributes"
)]
#[case::by_a_filter_of_the_home(
    "git config --global filter.f.smudge \"sed 's/echo 0/echo 3/'\"; git config --global filter.f.clean cat
     mkdir -p \"${XDG_CONFIG_HOME:-$HOME/.config}/git\"; echo 'sum.sh filter=f' > \"${XDG_CONFIG_HOME:-$HOME/.config}/git/attributes\""
)]
fn a_clean_checkout_holds_the_content_of_its_objects(#[case] cheat: &str) {
    let sandbox = sandbox();
    write(&sandbox.project().join("sum.sh"), "sum() { echo 0; }\n");
    write(&sandbox.project().join("test.sh"), ". ./sum.sh\n[ \"$(sum 1 2)\" = 3 ]\n");
    sandbox.git(&["add", "."]);
    sandbox.git(&["commit", "-qm", "A sum"]);
    let agent = sandbox.agent("cheat", &format!("echo '# a note' >> sum.sh\n{cheat}\n{CLAIM}"));
    let words = [
        "start",
        "--command",
        &agent,
        "--name",
        "job",
        "-p",
        "Work.",
        "-m",
        "1",
        "--gate",
        "tests=sh test.sh",
    ];
    let run = sandbox.refrain(&[&words[..], &["--clean-checkout"]].concat());
    assert!(run.code != 0, "{}", run.stdout);
    assert_ne!(sandbox.status("job")["verified"], json!(true));
}

#[test]
fn git_does_not_wait_for_a_fifo_in_the_work_and_the_loop_names_it() {
    let sandbox = sandbox();
    let agent =
        sandbox.agent("agent", &format!("mkdir -p deep\nmkfifo deep/.gitignore\necho x > deep/x\n{CLAIM}"));
    let fifo = sandbox.project().join("deep/.gitignore");
    let named = format!("{} is a FIFO or a device, and git waits for it", fifo.display());
    let run = start(&sandbox, &agent, &["--git-workflow", "commit"]);
    assert_ne!(run.code, 0, "{}", run.stdout);
    assert!(format!("{}{}", run.stdout, run.stderr).contains(&named), "{}{}", run.stdout, run.stderr);
    let diff = sandbox.refrain(&["diff", "job"]);
    assert!(!diff.stderr.contains("panicked"), "{}", diff.stderr);
    sandbox.no_process_is_left();
}

#[test]
fn settings_of_submodules_that_git_refuses_hide_no_difference() {
    let sandbox = sandbox();
    let plant = "printf '[submodule \"x\"]\\n\\tpath = x\\n\\turl = ./y\\n\\tignore = all\\n\\tupdate = !%s\\n' \"$EVIL\" > .gitmodules\n\
                 git init -q x\ngit -C x commit -qm Inner --allow-empty\ngit add . 2> /dev/null\ngit commit -qm Plant";
    let agent = agent(&sandbox, plant);
    start(&sandbox, &agent, &["--git-workflow", "commit"]);
    let diff = sandbox.refrain(&["diff", "job"]).with_code(0).stdout;
    assert!(diff.contains("+line") && diff.contains("Subproject commit"), "{diff}");
    nothing_fired(&sandbox);
}

/// What the agent of an earlier loop left.
#[rstest]
#[case::a_branch("git branch loop", "git branch -m loop old-loop", "git branch -m loop old-loop")]
#[case::a_file("echo x > .git/refs/heads/loop", "/.git/refs/heads/loop", "rm .git/refs/heads/loop")]
#[case::a_log(
    "mkdir -p .git/logs/refs/heads; echo x > .git/logs/refs/heads/loop",
    "/.git/logs/refs/heads/loop",
    "rm .git/logs/refs/heads/loop"
)]
#[case::no_list_of_commits("echo garbage > .git/shallow", "/.git/shallow", "rm .git/shallow")]
fn a_start_names_what_is_in_its_way_and_the_command_that_removes_it(
    #[case] plant: &str,
    #[case] named: &str,
    #[case] mend: &str,
) {
    let sandbox = sandbox();
    sandbox.tool("sh", &["-ec", plant]).run().with_code(0);
    let agent = sandbox.agent("agent", CLAIM);
    let refused = start(&sandbox, &agent, &["--worktree"]);
    assert_ne!(refused.code, 0);
    assert!(refused.stderr.contains(named) && !sandbox.loop_dir("job").exists(), "{}", refused.stderr);
    sandbox.tool("sh", &["-ec", mend]).run().with_code(0);
    start(&sandbox, &agent, &["--worktree"]).with_code(0);
}
