//! `--sandbox` and git: whatever Refrain's git runs of the repository runs in the sandbox of the loop.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use rstest::rstest;
use testkit::Sandbox;

use super::sandbox::{configure, sandbox, start, write};
use crate::CLAIM;

/// What a program of the repository does: it says that it ran, and in a sandbox it cannot write the home.
pub(super) const ATTACK: &str = "(echo x > $HOME/escaped) 2> /dev/null; echo ran $0 $* >> $NOTES/said";

fn hook(sandbox: &Sandbox, name: &str, script: &str) {
    let path = sandbox.project().join(".husky").join(name);
    write(&path, format!("#!/bin/sh\n{script}\n"));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

pub(super) fn commit_all(sandbox: &Sandbox) {
    sandbox.git(&["add", "-A"]);
    sandbox.git(&["commit", "--quiet", "--no-verify", "-m", "Begin"]);
}

#[track_caller]
pub(super) fn nothing_escaped(sandbox: &Sandbox) {
    assert!(!sandbox.root().join("home/escaped").exists(), "{}", sandbox.note("said"));
    sandbox.no_process_is_left();
}

#[test]
fn hooks_and_filters_run_in_the_sandbox_of_the_loop() {
    let Some(sandbox) = sandbox() else { return };
    hook(&sandbox, "pre-commit", "sh ./check.sh");
    write(&sandbox.project().join("check.sh"), "true\n");
    write(&sandbox.project().join(".gitattributes"), "*.up filter=up\n");
    sandbox.git(&["config", "core.hooksPath", ".husky"]);
    sandbox.git(&["config", "filter.up.clean", "tr a-z A-Z"]);
    commit_all(&sandbox);
    // What the agent writes, the hook runs. A worktree of the loop's own lies in the state home, of which nothing else is seen.
    let attack = format!(
        "test -n \"$(ls $HOME/state/refrain | grep -vx worktrees)\" && echo seen >> $NOTES/said; {ATTACK}"
    );
    let script = format!("cat > check.sh <<'END'\n{attack}\nEND\necho work >> work.up\n{CLAIM}");
    start(&sandbox, &script, &["--git-workflow", "commit"]).with_code(0);
    assert_eq!(sandbox.note("said"), "ran ./check.sh\n");
    assert_eq!(sandbox.git(&["show", "HEAD:work.up"]), "WORK\n");
    assert_eq!(sandbox.git(&["status", "--short"]).trim(), "", "the index is the new one");
    sandbox.refrain(&["archive", "job"]).with_code(0);
    start(&sandbox, &script, &["--worktree", "--git-workflow", "commit"]).with_code(0);
    assert_eq!(sandbox.note("said"), "ran ./check.sh\nran ./check.sh\n");
    let branches = sandbox.git(&["for-each-ref", "--format=%(refname)", "refs/heads"]);
    let own = branches.lines().find(|name| *name != "refs/heads/main").unwrap();
    assert_eq!(sandbox.git(&["show", &format!("{own}:work.up")]), "WORK\nWORK\n");
    nothing_escaped(&sandbox);
}

/// The filter is the user's, and the agent writes what it runs.
#[test]
fn no_filter_runs_outside_when_a_worktree_is_looked_at_and_removed() {
    let Some(sandbox) = sandbox() else { return };
    write(&sandbox.project().join(".gitattributes"), "*.up filter=up\n");
    write(&sandbox.project().join(".gitignore"), "check.sh\n");
    write(&sandbox.project().join("work.up"), "work\n");
    sandbox.git(&["config", "filter.up.clean", "sh ./check.sh 2> /dev/null; cat"]);
    commit_all(&sandbox);
    // Git has to look at a file whose time differs from that in its index.
    let script = format!("cat > check.sh <<'END'\n{ATTACK}\nEND\ntouch -d 2020-01-01 work.up\n{CLAIM}");
    start(&sandbox, &script, &["--worktree"]).with_code(0);
    assert_eq!(sandbox.git(&["worktree", "list"]).lines().count(), 1);
    assert!(sandbox.note("said").contains("ran ./check.sh"), "{}", sandbox.note("said"));
    nothing_escaped(&sandbox);
    sandbox.refrain(&["archive", "job"]).with_code(0);
    // Kept, as it has a new file: then the user's own verbs look at it.
    start(&sandbox, &format!("echo new > new\n{script}"), &["--worktree"]).with_code(0);
    for words in [&["diff", "job"][..], &["gc"], &["discard", "job"]] {
        sandbox.refrain(words).with_code(0);
        nothing_escaped(&sandbox);
    }
}

#[test]
fn the_hook_of_a_push_runs_in_the_sandbox_and_can_refuse_it() {
    let Some(sandbox) = sandbox() else { return };
    let remote = sandbox.root().join("remote.git");
    let remote = remote.to_str().unwrap();
    sandbox.git(&["init", "--quiet", "--bare", remote]);
    sandbox.git(&["remote", "add", "origin", remote]);
    hook(&sandbox, "pre-push", "cat >> $NOTES/said; sh ./check.sh $1");
    write(&sandbox.project().join("check.sh"), "true\n");
    sandbox.git(&["config", "core.hooksPath", ".husky"]);
    commit_all(&sandbox);
    sandbox.git(&["push", "--quiet", "--no-verify", "origin", "main"]);
    let begin = sandbox.git(&["rev-parse", "HEAD"]).trim().to_owned();
    let script = |end: &str| format!("cat > check.sh <<'END'\n{ATTACK}\n{end}\nEND\n{CLAIM}");
    let push = ["--git-workflow", "push"];
    start(&sandbox, &script("exit 1"), &push);
    let head = sandbox.git(&["rev-parse", "HEAD"]).trim().to_owned();
    let line = format!("{head} {head} refs/heads/main {begin}\nran ./check.sh origin\n");
    assert!(sandbox.note("said").starts_with(&line), "{}", sandbox.note("said"));
    let there = || sandbox.git(&["--git-dir", remote, "rev-parse", "main"]).trim().to_owned();
    assert_eq!(there(), begin);
    let journal = format!("{:?}", sandbox.journal("job"));
    assert!(journal.contains("hook"), "{journal}");
    sandbox.refrain(&["cancel", "job"]);
    sandbox.refrain(&["archive", "job"]).with_code(0);
    start(&sandbox, &script("exit 0"), &push).with_code(0);
    assert_eq!(there(), sandbox.git(&["rev-parse", "HEAD"]).trim());
    nothing_escaped(&sandbox);
}

#[test]
fn programs_that_git_runs_for_a_plan_stay_in_its_sandbox() {
    let Some(sandbox) = sandbox() else { return };
    for name in ["post-checkout", "reference-transaction"] {
        hook(&sandbox, name, "test -e check.sh || exit 0; sh ./check.sh > /dev/null");
    }
    let tasks = r#"{"tag": "x", "tasks": [
        {"id": 1, "title": "One", "status": "pending", "depends_on": []},
        {"id": 2, "title": "Two", "status": "pending", "depends_on": [1]}
    ]}"#;
    write(&sandbox.project().join(".scud/tasks/x.json"), tasks);
    write(&sandbox.project().join("check.sh"), "true\n");
    write(&sandbox.project().join(".gitattributes"), "*.up filter=up\n");
    sandbox.git(&["config", "core.hooksPath", ".husky"]);
    sandbox.git(&["config", "filter.up.clean", "sh ./check.sh; cat"]);
    sandbox.git(&["config", "filter.up.smudge", "sh ./check.sh; cat"]);
    write(&sandbox.project().join("setup.sh"), ATTACK);
    commit_all(&sandbox);
    configure(&sandbox, "[worktrees]\nsetup = \"sh ./setup.sh\"\n");
    let script = format!(
        "cat > check.sh <<'END'\n{ATTACK}\nEND\ntask=$(git branch --show-current)\necho $task > $(basename $task).up\necho TASK_COMPLETE"
    );
    let agent = sandbox.agent("worker", &script);
    let words = ["plan", "run", "--tag", "x", "--command", &agent, "--name", "x", "--sandbox"];
    // Each git that runs a filter starts a sandbox, which takes long on a busy machine.
    let plan = sandbox.spawn(&[&words[..], &["--verify", "sh ./check.sh"]].concat());
    plan.wait_at_most(Duration::from_secs(240)).with_code(0);
    let files = sandbox.git(&["ls-files", "*.up"]);
    assert_eq!(files.lines().count(), 2, "{files}");
    let said = sandbox.note("said");
    assert!(said.contains("ran ./setup.sh") && said.contains("ran ./check.sh"), "{said}");
    nothing_escaped(&sandbox);
    inspect_with(
        &sandbox,
        &[
            &["plan", "status", "x"],
            &["gc"],
            &["doctor"],
            &["doctor", "--fix"],
            &["discard", "x"],
            &["gc", "--yes"],
        ],
    );
}

/// As `git lfs install` sets them, for example.
#[rstest]
#[case::namespaces("--sandbox")]
#[case::files("--sandbox=files")]
fn a_plan_merges_and_hands_over_where_the_user_has_filters(#[case] option: &str) {
    let Some(sandbox) = sandbox() else { return };
    write(&sandbox.project().join(".gitattributes"), "*.up filter=up\n");
    write(&sandbox.project().join("shared.up"), "a\nb\nc\nd\ne\nf\n");
    sandbox.git(&["config", "filter.up.clean", "cat"]);
    sandbox.git(&["config", "filter.up.smudge", "cat"]);
    let tasks = r#"{"tag": "x", "tasks": [
        {"id": 1, "title": "One", "status": "pending", "depends_on": []},
        {"id": 2, "title": "Two", "status": "pending", "depends_on": []}
    ]}"#;
    write(&sandbox.project().join(".scud/tasks/x.json"), tasks);
    commit_all(&sandbox);
    let script = "case $(git branch --show-current) in */1*) sed -i 1s/a/A/ shared.up ;; *) sed -i 6s/f/F/ shared.up ;; esac
echo TASK_COMPLETE";
    let agent = sandbox.agent("worker", script);
    let words = ["plan", "run", "--tag", "x", "--command", &agent, "--name", "x", "--verify", "true", option];
    // The folder for temporary files that the machine has, and a sandbox hides.
    let plan = sandbox.command(&words).env("TMPDIR", "/tmp").spawn();
    plan.wait_at_most(Duration::from_secs(240)).with_code(0);
    assert_eq!(fs::read_to_string(sandbox.project().join("shared.up")).unwrap(), "A\nb\nc\nd\ne\nF\n");
    nothing_escaped(&sandbox);
}

#[test]
fn files_of_a_task_are_inspected_in_its_sandbox() {
    let Some(sandbox) = sandbox() else { return };
    let tasks =
        r#"{"tag": "x", "tasks": [{"id": 1, "title": "One", "status": "pending", "depends_on": []}]}"#;
    write(&sandbox.project().join(".scud/tasks/x.json"), tasks);
    write(&sandbox.project().join(".gitattributes"), "*.up filter=up\n");
    write(&sandbox.project().join(".gitignore"), "check.sh\n");
    write(&sandbox.project().join("work.up"), "work\n");
    sandbox.git(&["config", "filter.up.clean", "sh ./check.sh 2> /dev/null; cat"]);
    commit_all(&sandbox);
    let agent = sandbox.agent("worker", "echo new > new");
    let words = ["plan", "run", "--tag", "x", "--command", &agent, "--name", "x"];
    let confined = [&words[..], &["--sandbox", "--max-iterations", "1"]].concat();
    sandbox.refrain(&confined);
    inspect_with(
        &sandbox,
        &[&["plan", "status", "x"], &["plan", "resume", "x"], &["merge", "x"], &["discard", "x"]],
    );
    // A task without a sandbox does not get its worktree.
    sandbox.refrain(&[
        "plan",
        "run",
        "--tag",
        "x",
        "--command",
        &agent,
        "--name",
        "y",
        "--no-sandbox",
        "--max-iterations",
        "1",
    ]);
    let slots =
        sandbox.tool("sh", &["-c", "cd $HOME/state/refrain/worktrees/*/_pool; ls -d [0-9]*"]).run().stdout;
    assert_eq!(slots, "1\n1.lock\n1.sandbox\n2\n2.lock\n");
    nothing_escaped(&sandbox);
}

/// Has verbs look at the worktrees of tasks: each time git has to look at files whose times differ from those in its index, with
/// a filter that runs what an agent left.
#[track_caller]
fn inspect_with(sandbox: &Sandbox, verbs: &[&[&str]]) {
    let script = "for folder in $HOME/state/refrain/worktrees/*/_pool/[0-9]/*/; do cp $HOME/../notes/attack.sh $folder/check.sh; touch -d 2020-01-01 $folder/*.up; done";
    write(&sandbox.root().join("notes/attack.sh"), ATTACK);
    for words in verbs {
        sandbox.tool("sh", &["-c", script]).run();
        let run = sandbox.refrain(words);
        assert!(!sandbox.root().join("home/escaped").exists(), "{words:?}: {}{}", run.stdout, run.stderr);
    }
    nothing_escaped(sandbox);
}

/// Git would run the filter and the monitor of a repository in the repository.
#[test]
fn programs_of_a_nested_repository_never_run_outside() {
    let Some(sandbox) = sandbox() else { return };
    let script = format!(
        "git init -q nested && cd nested\necho '* filter=evil' > .gitattributes\n\
         git config filter.evil.clean 'sh -c \"{ATTACK}; cat\"'\n\
         git config core.fsmonitor 'sh -c \"{ATTACK}\"'\necho x > file\ncd ..\necho work > work\n{CLAIM}"
    );
    start(&sandbox, &script, &["--git-workflow", "commit", "--gate", "tests=test -e work"]).with_code(0);
    sandbox.refrain(&["diff", "job"]);
    nothing_escaped(&sandbox);
}

#[test]
fn a_link_in_the_place_of_refrains_folder_is_not_followed() {
    let Some(sandbox) = sandbox() else { return };
    let target = sandbox.root().join("target");
    write(&target.join("state.md"), "mine\n");
    let variable = format!("TARGET={}", target.display());
    let script = format!("rm -rf .refrain/job && ln -s $TARGET .refrain/job\necho work > work\n{CLAIM}");
    let more = ["--gate", "tests=test -e work", "--env", &variable, "--git-workflow", "commit"];
    start(&sandbox, &script, &more).with_code(0);
    assert_eq!(fs::read_to_string(target.join("state.md")).unwrap(), "mine\n");
    assert_eq!(fs::read_dir(&target).unwrap().count(), 1);
    nothing_escaped(&sandbox);
}

/// What is created at an empty protected place is put aside, however the program ends.
#[test]
fn files_planted_by_a_killed_agent_are_put_aside() {
    let Some(sandbox) = sandbox() else { return };
    // In a folder that is missing nothing can be protected beforehand.
    let plant = "rm -rf .git/objects/info .git/remotes; mkdir .git/objects/info; echo x > .git/objects/info/alternates";
    fs::remove_dir(sandbox.project().join(".git/objects/info")).unwrap();
    for (end, limits) in [
        ("kill -KILL $$", &[][..]),
        ("trap '' TERM INT; sleep 600", &["--timeout", "1s", "--timeout-grace", "1s"]),
    ] {
        start(&sandbox, &format!("{plant}; {end}"), limits).with_code(10);
        for name in ["remotes", "objects/info/alternates", "commondir"] {
            assert!(!sandbox.project().join(".git").join(name).exists(), "{end} {name}");
        }
        sandbox.refrain(&["archive", "job"]).with_code(0);
        fs::remove_dir_all(sandbox.project().join(".git/objects/info")).unwrap();
    }
    nothing_escaped(&sandbox);
}

/// Without namespaces the agent writes what leads git to its settings. However it keeps that from being put back, git runs
/// nothing of it.
#[test]
fn no_name_and_no_mode_keeps_a_planted_file_in_its_place() {
    for keep in ["for i in $(seq 120); do : > .git.refrain-refused-$i; done", "chmod 555 ."] {
        let Some(sandbox) = sandbox() else { return };
        let script = format!(
            "git clone -q --bare $(git rev-parse --git-common-dir) evil
             printf '[core]\nbare = false\nworktree = %s\n[filter \"z\"]\nclean = sh %s/evil.sh\n' $PWD $PWD >> evil/config
             echo '{ATTACK}; cat' > evil.sh; echo '* filter=z' > .gitattributes; date > work
             chmod u+w .git; echo \"gitdir: $PWD/evil\" > .git
             {keep}"
        );
        let run = start(&sandbox, &script, &["--sandbox=files", "--worktree", "--git-workflow", "commit"]);
        assert!(run.stdout.contains("/.git is protected; it is as it was before"), "{keep}: {}", run.stdout);
        assert_eq!(sandbox.note("said"), "", "{keep}");
        nothing_escaped(&sandbox);
    }
}

/// Git appends to its logs where a link leads, and writes there.
#[test]
fn git_writes_through_no_link_that_an_agent_made() {
    let Some(sandbox) = sandbox() else { return };
    let home = sandbox.root().join("home");
    write(&home.join(".bashrc"), "# mine\n");
    for plant in [
        "rm -f .git/logs/HEAD; ln -s $HOME/.bashrc .git/logs/HEAD",
        "mv .git/logs .git/moved; ln -s $HOME .git/logs; ln -s $HOME/.bashrc .git/moved/refs/heads/main",
        "ln -s $HOME/.bashrc .git/COMMIT_EDITMSG; ln -sf $HOME/.bashrc .git/index",
        "mkdir -p .git/rr-cache/x; ln -s $HOME/.bashrc .git/rr-cache/x/thisimage",
        "ln -s $HOME/.bashrc .git/objects/info/commit-graph",
        "ln -s $HOME/.bashrc \"$(printf '.git/logs/refs/heads/w\\377')\"",
    ] {
        let script = format!("date +%N > work\n{plant}\n{CLAIM}");
        start(&sandbox, &script, &["--git-workflow", "commit", "--gate", "tests=test -e work"]);
        sandbox.refrain(&["cancel", "job"]);
        sandbox.refrain(&["archive", "job"]).with_code(0);
        let links = sandbox.tool("find", &[".git", "-type", "l"]).run().stdout;
        assert_eq!(links, "", "{plant}");
        assert_eq!(fs::read_to_string(home.join(".bashrc")).unwrap(), "# mine\n", "{plant}");
        let left = fs::read_dir(&home).unwrap().map(|entry| entry.unwrap().file_name());
        assert!(left.into_iter().all(|name| name != "HEAD" && name != "refs"), "{plant}");
        let _ = sandbox.tool("git", &["reset", "--quiet", "--hard"]).run();
    }
    nothing_escaped(&sandbox);
}

/// What a sandbox that was killed with its runner leaves, for example: git would run what the other folder's settings name.
#[test]
fn no_verb_runs_programs_of_a_planted_git_folder() {
    let Some(sandbox) = sandbox() else { return };
    write(&sandbox.project().join("work.up"), "work\n");
    commit_all(&sandbox);
    let script = format!("echo new > new\ngit add -A\ngit commit -qm New\n{CLAIM}");
    start(&sandbox, &script, &["--worktree"]).with_code(0);
    let evil = sandbox.root().join("notes/evil");
    let attack = format!("sh -c 'echo ran >> {}'", sandbox.root().join("notes/said").display());
    sandbox.git(&["clone", "--quiet", "--bare", ".", evil.to_str().unwrap()]);
    for key in [
        "core.fsmonitor",
        "core.sshCommand",
        "filter.evil.clean",
        "filter.evil.smudge",
        "diff.evil.textconv",
        "remote.evil.uploadpack",
    ] {
        sandbox.git(&["--git-dir", evil.to_str().unwrap(), "config", key, &attack]);
    }
    for name in ["post-checkout", "reference-transaction", "pre-commit", "post-index-change"] {
        let path = evil.join("hooks").join(name);
        write(&path, format!("#!/bin/sh\n{attack}\n"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    write(&evil.join("info/attributes"), "* filter=evil diff=evil\n");
    let planted = sandbox.project().join(".git/commondir");
    write(&planted, format!("{}\n", evil.display()));
    sandbox.tool("touch", &["-d", "2020-01-01", "work.up"]).run();
    for words in [
        &["status", "job"][..],
        &["show", "job"],
        &["diff", "job"],
        &["open", "job"],
        &["report", "job"],
        &["gc"],
        &["doctor"],
        &["merge", "job"],
        &["resume", "job", "--max-iterations", "2"],
        &["discard", "job"],
        &["start", "--command", "true", "-p", "x"],
    ] {
        let run = sandbox.refrain(words);
        assert_eq!(sandbox.note("said"), "", "{words:?}: {}{}", run.stdout, run.stderr);
    }
    let words = ["start", "--command", "true", "-p", "x", "--git-workflow", "commit"];
    let refused = sandbox.refrain(&words).with_code(1).stderr;
    assert!(refused.contains(&format!("rm {}", planted.display())), "{refused}");
    fs::remove_file(planted).unwrap();
    sandbox.refrain(&["gc"]).with_code(0);
    assert_eq!(sandbox.note("said"), "");
}
