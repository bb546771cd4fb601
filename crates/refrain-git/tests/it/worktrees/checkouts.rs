//! Branches and worktrees of a loop.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use refrain_git::{Cancel, GitError, Removal};
use rstest::rstest;

use crate::place::{TestRepository, made};

#[test]
fn a_branch_is_made_in_place_and_only_once() {
    let place = TestRepository::new();
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
    let place = TestRepository::new();
    assert!(matches!(place.repository().check_branch_free(name), Err(GitError::BadBranch(_))), "{name}");
}

#[test]
fn a_branch_is_made_before_there_is_a_commit() {
    let place = TestRepository::unborn(&[]);
    place.repository().create_branch("first").unwrap();
    assert_eq!(place.git(&["symbolic-ref", "HEAD"]), "refs/heads/first");
}

#[test]
fn a_revision_resolves_to_a_commit_or_an_error() {
    let place = TestRepository::new();
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
    let place = TestRepository::new();
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
    assert_eq!(repository.remove_worktree(&path, "loop/one", &began, &[]).unwrap(), Removal::Removed);
    assert!(!path.exists());
    assert_eq!(place.git(&["branch", "--list", "loop/*"]), "");
}

#[test]
fn what_python_compiled_and_npm_installed_keeps_no_worktree() {
    let place = TestRepository::new();
    let repository = place.repository();
    let began = place.head();
    let path = place.top().join("state/one");
    repository.add_worktree(&path, "one", &began).unwrap();
    place.write_at(path.join("src/__pycache__/a.cpython-313.pyc"), "compiled\n");
    place.write_at(path.join("node_modules/left-pad/index.js"), "installed\n");
    assert_eq!(repository.worktree_value(&path, &[]).unwrap(), None);
    assert_eq!(repository.remove_worktree(&path, "one", &began, &[]).unwrap(), Removal::Removed);
    assert!(!path.exists());
}

#[test]
fn content_that_would_be_lost_keeps_a_worktree() {
    let place = TestRepository::new();
    let repository = place.repository();
    let began = place.head();
    let path = place.top().join("state/one");
    let git = |args: &[&str]| place.git(&[&["-C", path.as_str()], args].concat());
    repository.add_worktree(&path, "one", &began).unwrap();
    let kept = || match repository.remove_worktree(&path, "one", &began, &[]).unwrap() {
        Removal::Kept(reason) => reason,
        other => panic!("{other:?}"),
    };
    place.write_at(path.join("new.rs"), "new\n");
    assert_eq!(kept(), "it holds 1 file that is in no commit: new.rs");
    git(&["add", "new.rs"]);
    assert_eq!(kept(), "it holds 1 file that is in no commit: new.rs");
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
    assert_eq!(repository.remove_worktree(&path, "one", &began, &[]).unwrap(), Removal::BranchKept);
    assert_eq!(place.git(&["log", "-1", "--format=%s", "one"]), "New");
    assert!(!path.exists());
}

#[test]
fn only_the_named_one_of_the_vanished_worktrees_is_forgotten() {
    let place = TestRepository::new();
    let repository = place.repository();
    let began = place.head();
    let (one, two) = (place.top().join("one"), place.top().join("two"));
    for (path, branch) in [(&one, "one"), (&two, "two")] {
        repository.add_worktree(path, branch, &began).unwrap();
        fs::remove_dir_all(path).unwrap();
    }
    assert_eq!(repository.remove_worktree(&one, "one", &began, &[]).unwrap(), Removal::Removed);
    assert!(place.git(&["worktree", "list"]).contains("/two"));
    // A removal may be repeated.
    assert_eq!(repository.remove_worktree(&one, "one", &began, &[]).unwrap(), Removal::Removed);
    assert_eq!(place.git(&["branch", "--list", "two"]).trim_start_matches("+ "), "two");
}

#[test]
fn a_worktree_does_not_take_anothers_place_or_branch() {
    let place = TestRepository::new();
    let repository = place.repository();
    let began = place.head();
    let path = place.top().join("full");
    place.write_at(path.join("file"), "here\n");
    assert!(matches!(repository.add_worktree(&path, "one", &began), Err(GitError::Occupied(_))));
    let free = place.top().join("free");
    assert!(matches!(repository.add_worktree(&free, "main", &began), Err(GitError::BranchTaken(_))));
}

#[test]
fn only_the_loops_own_branch_goes_with_its_worktree() {
    let place = TestRepository::new();
    place.git(&["branch", "persons"]);
    let repository = place.repository();
    let began = place.head();
    let path = place.top().join("state/one");
    repository.add_worktree(&path, "loop/one", &began).unwrap();
    place.git(&["-C", path.as_str(), "switch", "-q", "persons"]);
    assert_eq!(repository.remove_worktree(&path, "loop/one", &began, &[]).unwrap(), Removal::Removed);
    assert_eq!(place.git(&["branch", "--list", "persons"]).trim(), "persons");
    assert_eq!(place.git(&["branch", "--list", "loop/*"]), "");
}

#[test]
fn a_branch_of_the_loop_that_the_person_has_checked_out_stays() {
    let place = TestRepository::new();
    let repository = place.repository();
    let began = place.head();
    let path = place.top().join("state/one");
    repository.add_worktree(&path, "loop/one", &began).unwrap();
    place.git(&["-C", path.as_str(), "checkout", "-q", "--detach"]);
    place.git(&["switch", "-q", "loop/one"]);
    assert_eq!(repository.remove_worktree(&path, "loop/one", &began, &[]).unwrap(), Removal::BranchKept);
    assert_eq!(place.head(), began);
}

#[test]
fn commits_of_a_submodule_are_not_lost_with_the_worktree() {
    let (place, sub) = (TestRepository::new(), TestRepository::new());
    place.git(&["submodule", "add", "-q", sub.root().as_str(), "sub"]);
    place.git(&["commit", "-qm", "Sub"]);
    let repository = place.repository();
    let began = place.head();
    let path = place.top().join("state/one");
    repository.add_worktree(&path, "loop/one", &began).unwrap();
    let own = TestRepository::new_at(&place, path.clone());
    own.git(&["submodule", "update", "-q", "--init"]);
    let base = own.survey();
    own.write("sub/README.md", "agent's\n");
    own.git(&["-C", "sub", "commit", "-qam", "Agent's"]);
    let inner = own.git(&["-C", "sub", "rev-parse", "HEAD"]);
    made(&own.commit(&base, 1));
    let removal = repository.remove_worktree(&path, "loop/one", &began, &[]).unwrap();
    let why = "it has submodules, whose commits or files may be nowhere else";
    assert_eq!(removal, Removal::Kept(why.to_owned()));
    own.git(&["-C", "sub", "cat-file", "-e", &inner]);
    fs::remove_dir_all(&path).unwrap();
    let Removal::Kept(why) = repository.remove_worktree(&path, "loop/one", &began, &[]).unwrap() else {
        panic!()
    };
    let (said, dir) = why.rsplit_once(' ').unwrap();
    assert_eq!(said, "its folder is gone, but the commits of its submodules are in");
    assert!(fs::exists(format!("{dir}/modules/sub/objects")).unwrap(), "{dir}");
}

#[test]
fn a_repository_that_the_agent_made_inside_is_not_lost_with_the_worktree() {
    let place = TestRepository::new();
    let repository = place.repository();
    let began = place.head();
    let path = place.top().join("state/one");
    repository.add_worktree(&path, "loop/one", &began).unwrap();
    let own = TestRepository::new_at(&place, path.clone());
    own.git(&["init", "-q", "inner"]);
    own.git(&["-C", "inner", "commit", "-q", "--allow-empty", "-m", "Inner"]);
    own.git(&["add", "inner"]);
    own.git(&["commit", "-qm", "Outer"]);
    let removal = repository.remove_worktree(&path, "loop/one", &began, &[]).unwrap();
    assert!(matches!(removal, Removal::Kept(_)), "{removal:?}");
}

#[test]
fn an_unfetched_submodule_or_own_folder_does_not_keep_a_worktree() {
    let (place, sub) = (TestRepository::new(), TestRepository::new());
    let repository = place.repository();
    let path = place.top().join("state/one");
    let first = place.head();
    repository.add_worktree(&path, "one", &first).unwrap();
    // The agent deleted its .gitignore.
    place.write_at(path.join(".refrain/notes.md"), "notes\n");
    assert_eq!(repository.remove_worktree(&path, "one", &first, &[]).unwrap(), Removal::Removed);
    place.git(&["submodule", "add", "-q", sub.root().as_str(), "sub"]);
    place.git(&["commit", "-qm", "Sub"]);
    let began = place.head();
    repository.add_worktree(&path, "one", &began).unwrap();
    assert_eq!(repository.remove_worktree(&path, "one", &began, &[]).unwrap(), Removal::Removed);
    assert!(!path.exists());
}

/// Leftovers of a git that is killed while it makes a worktree: before its `.git` file, with it, and while it writes
/// the files.
#[rstest]
#[case(true, false)]
#[case(false, false)]
#[case(false, true)]
fn a_worktree_that_was_never_finished_is_made_again(#[case] is_empty: bool, #[case] has_files: bool) {
    let place = TestRepository::new();
    let repository = place.repository();
    let began = place.head();
    let path = place.top().join("state/one");
    let add = ["worktree", "add", "-q", "--no-checkout", "--lock", "--reason", "initializing"];
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    place.git(&[&add[..], &["-b", "loop/one", path.as_str()]].concat());
    if is_empty {
        fs::remove_file(path.join(".git")).unwrap();
    }
    if has_files {
        place.write_at(path.join("src/a.rs"), "fn");
    }
    repository.add_worktree(&path, "loop/one", &began).unwrap();
    let own = TestRepository::new_at(&place, path.clone());
    assert!(own.status().is_empty(), "{:?}", own.status());
    assert_eq!(own.git(&["branch", "--show-current"]), "loop/one");
    assert_eq!(repository.remove_worktree(&path, "loop/one", &began, &[]).unwrap(), Removal::Removed);
}

#[test]
fn a_branch_that_was_made_before_its_worktree_is_taken_unless_it_is_in_use() {
    let place = TestRepository::new();
    let repository = place.repository();
    let began = place.head();
    let path = place.top().join("state/one");
    place.git(&["branch", "loop/one"]);
    place.git(&["worktree", "add", "-q", "../other", "loop/one"]);
    let taken = repository.add_worktree(&path, "loop/one", &began);
    assert!(matches!(taken, Err(GitError::BranchTaken(_))));
    place.git(&["worktree", "remove", "../other"]);
    repository.add_worktree(&path, "loop/one", &began).unwrap();
    place.git(&["branch", "loop/two"]);
    place.git(&["commit", "-q", "--allow-empty", "-m", "Next"]);
    let taken = repository.add_worktree(&place.top().join("state/two"), "loop/two", &place.head());
    assert!(matches!(taken, Err(GitError::BranchTaken(_))));
}

#[test]
fn a_removal_that_was_killed_in_the_middle_may_be_repeated() {
    let place = TestRepository::new();
    let repository = place.repository();
    let began = place.head();
    let path = place.top().join("state/one");
    for (is_worked_on, removal) in [(false, Removal::Removed), (true, Removal::BranchKept)] {
        repository.add_worktree(&path, "loop/one", &began).unwrap();
        if is_worked_on {
            place.git(&["-C", path.as_str(), "commit", "-q", "--allow-empty", "-m", "Work"]);
        }
        place.git(&["worktree", "remove", path.as_str()]);
        for _ in 0..2 {
            assert_eq!(repository.remove_worktree(&path, "loop/one", &began, &[]).unwrap(), removal);
        }
        assert_eq!(place.git(&["branch", "--list", "loop/*"]).is_empty(), !is_worked_on);
    }
}

#[test]
fn a_hook_that_hangs_while_a_place_is_made_can_be_ended() {
    let place = TestRepository::new();
    let told = place.top().join("told");
    place.hook("post-checkout", &format!("echo $$ > {told}.part; mv {told}.part {told}; exec sleep 1000"));
    let began = place.head();
    let path = place.top().join("state/one");
    let run = |what: &(dyn Fn(refrain_git::Repository) -> Result<(), GitError> + Sync)| {
        let cancel = Cancel::new().unwrap();
        let repository = place.repository().with_cancel(cancel.clone());
        std::thread::scope(|scope| {
            let asked = scope.spawn(|| what(repository));
            while !told.exists() {
                std::thread::yield_now();
            }
            cancel.cancel();
            assert!(matches!(asked.join().unwrap(), Err(GitError::Cancelled)));
        });
        fs::remove_file(&told).unwrap();
    };
    run(&|repository| repository.add_worktree(&path, "loop/one", &began));
    run(&|repository| repository.create_branch("loop/two"));
    // Both were made before the hook ran, and may be repeated.
    place.repository().add_worktree(&path, "loop/one", &began).unwrap();
    place.repository().create_branch("loop/two").unwrap();
}

#[test]
fn a_hook_of_one_worktree_holds_no_other_up() {
    let place = TestRepository::new();
    let (told, go) = (place.top().join("told"), place.top().join("go"));
    // Git passes it the same arguments as `git worktree add`.
    let hook = format!("echo $* >> {told}; while test -e one -a ! -e {go}; do sleep 0.01; done");
    place.hook("post-checkout", &hook);
    let began = place.head();
    place.write("one", "one\n");
    place.git(&["add", "one"]);
    place.git(&["commit", "-qm", "One"]);
    let path = |name: &str| place.top().join("state").join(name);
    std::thread::scope(|scope| {
        let one = scope.spawn(|| place.repository().add_worktree(&path("one"), "loop/one", &place.head()));
        while !told.exists() {
            std::thread::yield_now();
        }
        place.repository().add_worktree(&path("two"), "loop/two", &began).unwrap();
        let removal = place.repository().remove_worktree(&path("two"), "loop/two", &began, &[]).unwrap();
        assert_eq!(removal, Removal::Removed);
        place.write_at(go.clone(), "go\n");
        one.join().unwrap().unwrap();
    });
    let nothing = "0".repeat(40);
    let expected = format!("{nothing} {} 1\n{nothing} {began} 1\n", place.head());
    assert_eq!(fs::read_to_string(told).unwrap(), expected);
}

#[test]
fn a_worktree_with_a_missing_folder_is_made_again_from_its_branch() {
    let place = TestRepository::new();
    let repository = place.repository();
    let began = place.head();
    let path = place.top().join("state/worktrees/one");
    repository.add_worktree(&path, "loop/one", &began).unwrap();
    let there = TestRepository::new_at(&place, path.clone());
    there.write("src/a.rs", "done\n");
    there.git(&["commit", "-qam", "work"]);
    for _ in 0..2 {
        fs::remove_dir_all(place.top().join("state")).unwrap();
        repository.restore_worktree(&path, "loop/one", None).unwrap();
        assert_eq!(there.read("src/a.rs"), "done\n");
        assert_eq!(there.git(&["branch", "--show-current"]), "loop/one");
        // The next time git no longer lists it.
        fs::remove_dir_all(&path).unwrap();
        place.git(&["worktree", "prune"]);
        repository.restore_worktree(&path, "loop/one", None).unwrap();
    }

    // A crash while it was recreated.
    fs::remove_dir_all(&path).unwrap();
    place.git(&["worktree", "prune"]);
    let add = ["worktree", "add", "-q", "--no-checkout", "--lock", "--reason", "initializing"];
    place.git(&[&add[..], &[path.as_str(), "loop/one"]].concat());
    assert!(refrain_git::is_half_made(&path));
    repository.restore_worktree(&path, "loop/one", None).unwrap();
    assert!(!refrain_git::is_half_made(&path) && there.status().is_empty());

    let head = there.head();
    fs::remove_dir_all(&path).unwrap();
    place.git(&["worktree", "prune"]);
    place.git(&["switch", "-q", "loop/one"]);
    let error = repository.restore_worktree(&path, "loop/one", Some(&head)).unwrap_err().to_string();
    assert!(error.contains(&format!("is checked out in {}", place.root())), "{error}");
    place.git(&["switch", "-q", "main"]);
    place.git(&["branch", "-D", "loop/one"]);
    let error = repository.restore_worktree(&path, "loop/one", Some(&head)).unwrap_err().to_string();
    assert!(error.ends_with(&format!("git branch loop/one {head} brings that back")), "{error}");
}

#[test]
fn a_folder_is_looked_for_in_a_commit() {
    let place = TestRepository::new();
    place.write("new/a.rs", "new\n");
    let repository = place.repository();
    repository.check_folder("HEAD", "src".into()).unwrap();
    for folder in ["new", "src/a.rs", "nowhere"] {
        let error = repository.check_folder("HEAD", folder.into()).unwrap_err();
        assert!(matches!(error, GitError::NoFolder { .. }), "{folder}: {error}");
    }
}
