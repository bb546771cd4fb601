//! `refrain gc`: what loops left that nothing needs, and what stays.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use testkit::{Sandbox, write};

use crate::{CLAIM, sandbox};

fn start(sandbox: &Sandbox, id: &str, more: &[&str]) -> testkit::Run {
    let agent = sandbox.agent(id, &format!("echo work > {id}.txt\n{CLAIM}"));
    let branch = format!("work-{id}");
    let words = ["start", "--command", &agent, "--name", id, "--worktree", "--auto-commit", "-p", "Work."];
    let rest = ["--branch-template", &branch, "--max-iterations", "1", "--quiet"];
    sandbox.refrain(&[&words[..], &rest, more].concat())
}

fn garbage(sandbox: &Sandbox) -> Vec<(String, String)> {
    let rows = sandbox.refrain(&["gc", "--json"]).with_code(0).json();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    rows.as_array().unwrap().iter().map(|row| (text(&row["kind"]), text(&row["name"]))).collect()
}

fn data(sandbox: &Sandbox) -> PathBuf {
    sandbox.project().join(".git/refrain")
}

#[test]
fn nothing_is_removed_that_could_still_be_needed() {
    let sandbox = sandbox();
    start(&sandbox, "done", &["--gate", "true"]).with_code(0);
    // Its work is in no commit.
    start(&sandbox, "capped", &["--gate", "test -f never"]).with_code(10);
    sandbox.refrain(&["archive", "done"]).with_code(0);
    assert_eq!(garbage(&sandbox), []);
    assert_eq!(sandbox.refrain(&["gc", "--yes"]).with_code(0).stdout, "Nothing to remove.\n");
    sandbox.refrain(&["cancel", "capped"]).with_code(0);
    assert_eq!(garbage(&sandbox), []);
    assert_eq!(sandbox.git(&["branch", "--format=%(refname:short)"]), "main\nwork-capped\nwork-done\n");
}

#[test]
fn folders_of_the_demo_are_removed() {
    let sandbox = sandbox();
    let said = sandbox.refrain(&["demo", "--plan"]).with_code(0).stdout;
    let folder = said.trim_end().rsplit(' ').next().unwrap().to_owned();
    assert!(Path::new(&folder).join("PLAN.md").is_file(), "{said}");
    // Of another maker, and a link.
    let tmp = Path::new(&folder).parent().unwrap();
    fs::create_dir(tmp.join("refrain-demo-mine")).unwrap();
    std::os::unix::fs::symlink(&folder, tmp.join("refrain-demo-link")).unwrap();
    assert_eq!(garbage(&sandbox), [("demo".to_owned(), folder.clone())]);
    let other_home = sandbox.root().join("other");
    let elsewhere = sandbox.command(&["gc", "--json"]).env("XDG_STATE_HOME", other_home.to_str().unwrap());
    assert_eq!(elsewhere.run().with_code(0).json(), serde_json::json!([]), "it is the demo of another home");
    let there = sandbox.refrain(&["-C", &folder, "gc", "--json"]).with_code(0).json();
    assert!(there.as_array().unwrap().iter().all(|row| row["kind"] != "demo"), "not from inside: {there}");
    sandbox.refrain(&["gc", "--yes"]).with_code(0);
    assert!(!Path::new(&folder).exists() && tmp.join("refrain-demo-mine").is_dir());
    assert_eq!(left_in_the_state_home(&sandbox), Vec::<String>::new());
}

/// The folders of projects among the worktrees and checkouts of this user.
fn left_in_the_state_home(sandbox: &Sandbox) -> Vec<String> {
    let state = sandbox.root().join("home/state/refrain");
    let entries = ["checkouts", "worktrees"].map(|all| fs::read_dir(state.join(all)));
    let entries = entries.into_iter().flatten().flatten().flatten();
    entries.map(|entry| entry.path().to_str().unwrap().to_owned()).collect()
}

#[test]
fn what_is_left_of_a_project_that_is_gone_is_removed() {
    let sandbox = sandbox();
    let said = sandbox.refrain(&["demo", "--plan"]).with_code(0).stdout;
    fs::remove_dir_all(said.trim_end().rsplit(' ').next().unwrap()).unwrap();
    let left = left_in_the_state_home(&sandbox);
    let listed = sandbox.refrain(&["gc"]).with_code(0).stdout;
    for folder in &left {
        assert!(listed.contains(folder.as_str()), "{folder}: {listed}");
    }
    assert!(listed.contains("clean checkout") && listed.contains("task worktree"), "{listed}");
    assert!(listed.lines().all(|line| line.contains("iB ")), "each has its size: {listed}");
    sandbox.refrain(&["gc", "--yes"]).with_code(0);
    assert_eq!(left_in_the_state_home(&sandbox), Vec::<String>::new());
    let checked = sandbox.refrain(&["doctor"]).stdout;
    assert!(!checked.contains("which is gone"), "{checked}");
}

#[test]
fn doctor_and_gc_agree_about_the_worktree_of_a_loop_that_is_over() {
    let sandbox = sandbox();
    start(&sandbox, "capped", &["--gate", "test -f never"]).with_code(10);
    let worktree = sandbox.status("capped")["worktree"].as_str().unwrap().to_owned();
    sandbox.refrain(&["cancel", "capped"]).with_code(0);
    let told = || sandbox.refrain(&["doctor", "--json"]).with_code(0).stdout;
    assert!(told().contains("refrain open capped goes there"), "{}", told());
    sandbox.git(&["-C", &worktree, "add", "--all"]);
    sandbox.git(&["-C", &worktree, "commit", "--quiet", "--message", "Mine"]);
    assert_eq!(garbage(&sandbox)[0], ("worktree".to_owned(), worktree));
    let told = told();
    assert!(told.contains("refrain gc frees") && !told.contains("capped is over"), "{told}");
}

#[test]
fn unneeded_branches_and_worktrees_are_listed_and_removed_on_request() {
    let sandbox = sandbox();
    // A merged branch, and a clean checkout.
    start(&sandbox, "merged", &["--gate", "true", "--clean-checkout"]).with_code(0);
    sandbox.refrain(&["merge", "merged"]).with_code(0);
    // The worktree of a loop that is over, whose work was committed by hand.
    start(&sandbox, "capped", &["--gate", "test -f never"]).with_code(10);
    let worktree = sandbox.status("capped")["worktree"].as_str().unwrap().to_owned();
    sandbox.refrain(&["cancel", "capped"]).with_code(0);
    sandbox.git(&["-C", &worktree, "add", "--all"]);
    sandbox.git(&["-C", &worktree, "commit", "--quiet", "--message", "Mine"]);
    // Discarded more than 30 days ago.
    start(&sandbox, "bad", &["--gate", "true"]).with_code(0);
    sandbox.refrain(&["discard", "bad"]).with_code(0);
    let note = data(&sandbox).join("discarded/bad");
    let text = fs::read_to_string(&note).unwrap();
    write(&note, format!("1000000000 {}", text.split_once(' ').unwrap().1));
    // Archived more than 30 days ago.
    start(&sandbox, "old", &["--gate", "true"]).with_code(0);
    let archived = sandbox.refrain(&["archive", "old"]).with_code(0).stdout;
    let old = data(&sandbox).join("archive/old-2001-09-09T01-46-40Z");
    fs::rename(archived.trim().strip_prefix("old: archived in ").unwrap(), &old).unwrap();

    let output = old.join("iterations");
    let listed = garbage(&sandbox);
    let has = |kind: &str, name: &str| listed.contains(&(kind.to_owned(), name.to_owned()));
    assert!(has("worktree", &worktree), "{listed:?}");
    assert!(has("branch", "work-merged"), "{listed:?}");
    assert!(has("discarded", "refs/refrain/discarded/bad"), "{listed:?}");
    assert!(has("output", output.to_str().unwrap()), "{listed:?}");
    assert!(listed.iter().any(|(kind, _)| kind == "checkout"), "{listed:?}");
    assert_eq!(listed.len(), 5, "{listed:?}");
    let checked = sandbox.refrain(&["doctor"]).stdout;
    assert!(checked.contains("refrain gc frees "), "{checked}");

    for words in [&["gc"][..], &["gc", "--dry-run"]] {
        let run = sandbox.refrain(words).with_code(0);
        assert_eq!(run.stdout.lines().count(), 5, "{}", run.stdout);
        assert!(run.stderr.contains("refrain gc --yes removes them"), "{}", run.stderr);
    }
    assert_eq!(garbage(&sandbox), listed);
    let run = sandbox.refrain(&["gc", "--yes"]).with_code(0);
    assert!(run.stdout.contains("removed 5 items, "), "{} {}", run.stdout, run.stderr);
    assert_eq!(garbage(&sandbox), []);
    assert!(!Path::new(&worktree).exists() && !output.exists());
    assert_eq!(sandbox.git(&["for-each-ref", "refs/refrain/discarded"]), "");
    let branches = sandbox.git(&["branch", "--format=%(refname:short)"]);
    assert_eq!(branches, "main\nwork-capped\nwork-old\n", "what is not merged stays");
    let main = sandbox.git(&["ls-tree", "--name-only", "main"]);
    assert!(main.contains("merged.txt"), "{main}");
}

/// Its repository is gone, so nothing says which files are in a commit.
#[test]
fn the_worktree_of_a_project_that_is_gone_is_named_and_not_removed() {
    let (sandbox, other) = (sandbox(), "other");
    start(&sandbox, "capped", &["--gate", "test -f never"]).with_code(10);
    let worktree = sandbox.status("capped")["worktree"].as_str().unwrap().to_owned();
    assert_eq!(sandbox.refrain(&["gc"]).with_code(0).stderr, "");
    let other = sandbox.root().join(other);
    fs::rename(sandbox.project(), &other).unwrap();
    let run = sandbox
        .command(&["-C", other.to_str().unwrap(), "gc", "--yes"])
        .dir(sandbox.root())
        .run()
        .with_code(0);
    assert!(run.stderr.contains(&format!("note: {worktree}, ")), "{run:?}");
    assert!(run.stderr.contains("is gone or was moved") && run.stderr.contains("rm -r it"), "{run:?}");
    assert!(Path::new(&worktree).is_dir());
}
