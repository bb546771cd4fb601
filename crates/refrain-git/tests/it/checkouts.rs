//! Branches and worktrees of a loop.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use refrain_git::{GitError, Removal};
use rstest::rstest;

use crate::place::Place;

#[test]
fn a_branch_is_made_in_place_and_only_once() {
    let place = Place::new();
    place.write("src/a.rs", "mine\n");
    place.write("staged.rs", "mine\n");
    place.git(&["add", "staged.rs"]);
    let before = (place.snapshot(&["src/a.rs", "staged.rs"]), place.status());
    let repository = place.repository();
    repository.check_branch_free("loop/one").unwrap();
    repository.create_branch("loop/one").unwrap();
    repository.create_branch("loop/one").unwrap();
    assert_eq!(place.git(&["branch", "--show-current"]), "loop/one");
    assert_eq!((place.snapshot(&["src/a.rs", "staged.rs"]), place.status()), before);
    let taken = repository.create_branch("main").unwrap_err();
    assert_eq!(taken.to_string(), "a branch \"main\" exists already; choose another name, or delete it");
    assert!(matches!(repository.check_branch_free("main"), Err(GitError::BranchTaken(_))));
}

#[rstest]
#[case("")]
#[case("-x")]
#[case("a b")]
#[case("a..b")]
#[case("@{-1}")]
#[case("x.lock")]
#[case("HEAD")]
#[case("/x")]
fn a_name_that_no_branch_can_have_is_refused(#[case] name: &str) {
    let place = Place::new();
    assert!(matches!(place.repository().check_branch_free(name), Err(GitError::BadBranch(_))), "{name}");
}

#[test]
fn a_branch_is_made_before_there_is_a_commit() {
    let place = Place::unborn(&[]);
    place.repository().create_branch("first").unwrap();
    assert_eq!(place.git(&["symbolic-ref", "HEAD"]), "refs/heads/first");
}

#[test]
fn what_a_text_names_is_a_commit_or_an_error() {
    let place = Place::new();
    place.git(&["tag", "-am", "A tag", "v1"]);
    let repository = place.repository();
    for from in ["HEAD", "main", "v1", &place.head().to_string()] {
        assert_eq!(repository.resolve(from).unwrap(), place.head(), "{from}");
    }
    for from in ["nothing", "", "--all", "HEAD:README.md"] {
        assert!(matches!(repository.resolve(from), Err(GitError::NoCommit(_))), "{from}");
    }
}

#[test]
fn a_worktree_is_made_once_and_removed_when_nothing_is_lost() {
    let place = Place::new();
    let repository = place.repository();
    let began = place.head();
    let path = place.top().join("state/worktrees/one");
    for _ in 0..2 {
        repository.add_worktree(&path, "loop/one", &began).unwrap();
    }
    let mode = fs::metadata(path.parent().unwrap()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    assert_eq!(place.git(&["-C", path.as_str(), "branch", "--show-current"]), "loop/one");
    place.write_at(path.join(".refrain/.gitignore"), "*\n");
    assert_eq!(repository.remove_worktree(&path, &began).unwrap(), Removal::Removed);
    assert!(!path.exists());
    assert_eq!(place.git(&["branch", "--list", "loop/*"]), "");
}

#[test]
fn what_would_be_lost_keeps_a_worktree() {
    let place = Place::new();
    let repository = place.repository();
    let began = place.head();
    let path = place.top().join("state/one");
    let git = |args: &[&str]| place.git(&[&["-C", path.as_str()], args].concat());
    repository.add_worktree(&path, "one", &began).unwrap();
    let kept = || match repository.remove_worktree(&path, &began).unwrap() {
        Removal::Kept(reason) => reason,
        other => panic!("{other:?}"),
    };
    place.write_at(path.join("new.rs"), "new\n");
    assert_eq!(kept(), "it has 1 file that is not committed");
    git(&["add", "new.rs"]);
    assert_eq!(kept(), "it has 1 file that is not committed");
    git(&["commit", "-qm", "New"]);
    git(&["checkout", "-q", "--detach"]);
    git(&["commit", "-q", "--allow-empty", "-m", "On no branch"]);
    assert!(kept().contains("is on no branch"), "{}", kept());
    git(&["switch", "-q", "one"]);
    git(&["bisect", "start"]);
    assert_eq!(kept(), "a bisect is in progress in it");
    git(&["bisect", "reset"]);
    place.git(&["worktree", "lock", "--reason", "mine", path.as_str()]);
    assert_eq!(kept(), "it is locked: mine");
    place.git(&["worktree", "unlock", path.as_str()]);
    assert_eq!(repository.remove_worktree(&path, &began).unwrap(), Removal::BranchKept);
    assert_eq!(place.git(&["log", "-1", "--format=%s", "one"]), "New");
    assert!(!path.exists());
}

#[test]
fn of_worktrees_whose_folder_vanished_only_the_one_is_forgotten() {
    let place = Place::new();
    let repository = place.repository();
    let began = place.head();
    let (one, two) = (place.top().join("one"), place.top().join("two"));
    for (path, branch) in [(&one, "one"), (&two, "two")] {
        repository.add_worktree(path, branch, &began).unwrap();
        fs::remove_dir_all(path).unwrap();
    }
    assert_eq!(repository.remove_worktree(&one, &began).unwrap(), Removal::Removed);
    assert!(place.git(&["worktree", "list"]).contains("/two"));
    assert!(matches!(repository.remove_worktree(&one, &began).unwrap(), Removal::Kept(_)));
}

#[test]
fn a_worktree_does_not_take_anothers_place_or_branch() {
    let place = Place::new();
    let repository = place.repository();
    let began = place.head();
    let path = place.top().join("full");
    place.write_at(path.join("file"), "here\n");
    assert!(matches!(repository.add_worktree(&path, "one", &began), Err(GitError::Occupied(_))));
    let free = place.top().join("free");
    assert!(matches!(repository.add_worktree(&free, "main", &began), Err(GitError::BranchTaken(_))));
}
