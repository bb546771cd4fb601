//! Every unusual state of a repository has a result, and none of them loses work of the user.

use refrain_core::git::{CommitResult, Operation, SkipReason};
use refrain_git::{GitError, Repository};
use rstest::rstest;

use crate::place::{TestRepository, made, skipped};

/// The user's dirty, staged and new files, which must stay byte for byte.
const PERSONS: &[&str] = &["README.md", "staged.rs", "notes.txt"];

fn make_dirty(place: &TestRepository) {
    place.write("README.md", "# Mine\n");
    place.write("staged.rs", "staged\n");
    place.git(&["add", "staged.rs"]);
    place.write("staged.rs", "staged, and more\n");
    place.write("notes.txt", "new\n");
}

#[test]
fn a_detached_head_is_committed_on() {
    let place = TestRepository::new();
    place.git(&["checkout", "-q", "--detach"]);
    make_dirty(&place);
    let base = place.survey();
    assert_eq!(base.branch, None);
    place.write("src/a.rs", "changed\n");
    let before = place.snapshot(PERSONS);
    let commit = made(&place.commit(&base, 1));
    assert_eq!((place.head(), place.snapshot(PERSONS)), (commit, before));
    assert_eq!(place.git(&["rev-parse", "main"]), base.head.unwrap().as_str(), "the branch stays");
}

#[rstest]
#[case::sha1(&[])]
#[case::sha256(&["--object-format=sha256"])]
fn a_branch_without_a_commit_gets_its_first(#[case] init: &[&str]) {
    let place = TestRepository::unborn(init);
    place.write("staged.rs", "mine\n");
    place.git(&["add", "staged.rs"]);
    let base = place.survey();
    assert_eq!((base.head.as_ref(), base.branch.as_deref()), (None, Some("main")));
    place.write("a.rs", "the loop's\n");
    let before = place.snapshot(&["staged.rs"]);
    let first = place.commit(&base, 1);
    assert_eq!((place.head(), place.snapshot(&["staged.rs"])), (made(&first), before));
    assert_eq!(place.status(), ["A  staged.rs"]);
    assert_eq!(place.git(&["log", "--format=%s %P"]), "loop: iteration 1 ");
    place.write("a.rs", "again\n");
    let second = place.commit_since(&base, first.head.as_ref(), 2).unwrap();
    made(&second);
    assert!(second.lost.is_none() && second.by_agent.is_empty());
}

#[rstest]
#[case::merge(Operation::Merge, &["merge", "-q", "other"])]
#[case::rebase(Operation::Rebase, &["rebase", "-q", "other"])]
#[case::cherry_pick(Operation::CherryPick, &["cherry-pick", "other"])]
#[case::revert(Operation::Revert, &["revert", "--no-edit", "HEAD~1"])]
fn in_the_middle_of_something_nothing_is_committed(#[case] operation: Operation, #[case] args: &[&str]) {
    let place = TestRepository::new();
    place.git(&["switch", "-qc", "other"]);
    place.write("src/a.rs", "theirs\n");
    place.git(&["commit", "-qam", "Theirs"]);
    place.git(&["switch", "-q", "main"]);
    for text in ["ours\n", "ours again\n"] {
        place.write("src/a.rs", text);
        place.git(&["commit", "-qam", "Ours"]);
    }
    let base = place.survey();
    place.try_git(args);
    place.write("src/b.rs", "changed\n");
    let before = (place.snapshot(&["src/a.rs"]), place.status());
    let report = place.commit(&base, 1);
    assert_eq!(skipped(&report), SkipReason::InProgress(operation));
    assert_eq!((place.snapshot(&["src/a.rs"]), place.status()), before);
}

#[test]
fn while_it_bisects_nothing_is_committed() {
    let place = TestRepository::new();
    place.git(&["bisect", "start"]);
    let base = place.survey();
    place.write("src/a.rs", "changed\n");
    assert_eq!(skipped(&place.commit(&base, 1)), SkipReason::InProgress(Operation::Bisect));
}

#[test]
fn conflicts_that_a_stash_left_are_not_committed() {
    let place = TestRepository::new();
    place.write("src/a.rs", "stashed\n");
    place.git(&["stash", "-q"]);
    place.write("src/a.rs", "committed\n");
    place.git(&["commit", "-qam", "Other"]);
    let base = place.survey();
    place.try_git(&["stash", "pop", "-q"]);
    let before = (place.snapshot(&["src/a.rs"]), place.status());
    assert_eq!(skipped(&place.commit(&base, 1)), SkipReason::InProgress(Operation::Merge));
    assert_eq!((place.snapshot(&["src/a.rs"]), place.status()), before);
}

#[test]
fn without_an_identity_nothing_is_committed() {
    let place = TestRepository::new();
    let base = place.survey();
    place.write("src/a.rs", "changed\n");
    place.write_at(place.top().join("home/.gitconfig"), "[user]\nuseConfigOnly = true\n");
    let before = place.snapshot(&["src/a.rs"]);
    assert_eq!(skipped(&place.commit(&base, 1)), SkipReason::NoIdentity);
    assert_eq!((place.snapshot(&["src/a.rs"]), place.head()), (before, base.head.clone().unwrap()));
    assert_eq!(place.status(), [" M src/a.rs"]);
    place.hook("pre-commit", "exit 0");
    assert_eq!(skipped(&place.commit(&base, 1)), SkipReason::NoIdentity, "with git commit, too");
}

#[test]
fn a_lock_of_the_index_is_respected_unless_it_is_the_loops_own() {
    let place = TestRepository::new();
    let base = place.survey();
    place.write("src/a.rs", "changed\n");
    let lock = place.git_path("index.lock");
    place.write_at(&lock, "");
    assert_eq!(skipped(&place.commit(&base, 1)), SkipReason::IndexLocked);
    assert!(lock.exists());
    place.write_at(&lock, "refrain loop another\n");
    assert_eq!(skipped(&place.commit(&base, 1)), SkipReason::IndexLocked);
    place.write_at(&lock, "refrain loop the-loop\n");
    made(&place.commit(&base, 1));
    assert!(!lock.exists() && place.status().is_empty());
}

#[test]
fn a_lock_is_whole_from_the_beginning_and_nothing_is_left_beside_it() {
    let place = TestRepository::new();
    let base = place.survey();
    place.write("src/a.rs", "changed\n");
    // Leftovers of a kill: before the lock existed, and after, when both are one file.
    let (lock, beside) = (place.git_path("index.lock"), place.git_path("index.refrain-the-loop"));
    place.write_at(&beside, "");
    made(&place.commit(&base, 1));
    place.write("src/a.rs", "changed again\n");
    place.write_at(&beside, "refrain loop the-loop\n");
    std::fs::hard_link(&beside, &lock).unwrap();
    made(&place.commit(&base, 2));
    assert!(!lock.exists() && !beside.exists() && place.status().is_empty());
}

#[test]
fn no_remote_is_no_trouble_and_a_gone_upstream_neither() {
    let place = TestRepository::new();
    place.git(&["config", "branch.main.remote", "origin"]);
    place.git(&["config", "branch.main.merge", "refs/heads/gone"]);
    let base = place.survey();
    place.write("src/a.rs", "changed\n");
    made(&place.commit(&base, 1));
}

#[test]
fn commits_of_the_agent_are_reported_separately() {
    let place = TestRepository::new();
    let base = place.survey();
    place.write("src/a.rs", "by hand\n");
    place.git(&["commit", "-qam", "By hand"]);
    let by_hand = place.head();
    place.write("src/b.rs", "left\n");
    let report = place.commit(&base, 1);
    assert_eq!(report.by_agent, [by_hand]);
    assert_eq!(report.lost, None);
    assert_eq!(place.committed(made(&report).as_str()), ["M src/b.rs"]);
    let next = place.commit_since(&base, report.head.as_ref(), 2).unwrap();
    assert_eq!((skipped(&next), next.by_agent), (SkipReason::Nothing, vec![]));
}

#[test]
fn copied_trailers_do_not_hide_uncommitted_work() {
    let place = TestRepository::new();
    let base = place.survey();
    place.write("src/a.rs", "agent\n");
    place.git(&["commit", "-qam", "x\n\nRefrain-Loop: the-loop\nRefrain-Iteration: 1"]);
    let by_agent = place.head();
    place.write("src/b.rs", "left\n");
    let report = place.commit(&base, 1);
    assert_eq!(report.by_agent, [by_agent]);
    assert_eq!(place.committed(made(&report).as_str()), ["M src/b.rs"]);
    assert_eq!(report.head, Some(place.head()));
    assert!(place.status().is_empty());
}

#[test]
fn on_another_branch_nothing_is_committed() {
    let place = TestRepository::new();
    let base = place.survey();
    place.git(&["switch", "-qc", "elsewhere"]);
    place.write("src/a.rs", "changed\n");
    let report = place.commit(&base, 1);
    assert_eq!(skipped(&report), SkipReason::OtherBranch { now: Some("elsewhere".into()) });
    place.git(&["checkout", "-q", "--detach"]);
    assert_eq!(skipped(&place.commit(&base, 1)), SkipReason::OtherBranch { now: None });
    place.git(&["switch", "-q", "main"]);
    made(&place.commit(&base, 1));
}

#[test]
fn a_reset_or_rebase_is_noticed_and_commits_continue() {
    let place = TestRepository::new();
    let base = place.survey();
    place.write("src/a.rs", "one\n");
    let first = place.commit(&base, 1);
    place.git(&["reset", "-q", "--soft", "HEAD~1"]);
    let report = place.commit_since(&base, first.head.as_ref(), 2).unwrap();
    assert_eq!(report.lost, first.head);
    assert_eq!(place.committed(made(&report).as_str()), ["M src/a.rs"]);
    place.git(&["commit", "-q", "--amend", "-m", "Rewritten by hand"]);
    let amended = place.head();
    place.write("src/b.rs", "two\n");
    let head = report.head;
    let report = place.commit_since(&base, head.as_ref(), 3).unwrap();
    assert_eq!(report.lost, head);
    assert_eq!(report.by_agent, [amended]);
    let gone = "1".repeat(40).parse().unwrap();
    let report = place.commit_since(&base, Some(&gone), 4).unwrap();
    assert_eq!(report.lost, Some(gone), "what is gone altogether was taken away");
}

#[test]
fn a_commit_that_was_made_before_a_crash_is_found_again() {
    let place = TestRepository::new();
    make_dirty(&place);
    let base = place.survey();
    place.write("src/a.rs", "changed\n");
    let index = std::fs::read(place.git_path("index")).unwrap();
    let first = place.commit(&base, 1);
    // As if it had been killed before the index was updated, holding the lock.
    place.write_at(place.git_path("index"), index);
    place.write_at(place.git_path("index.lock"), "refrain loop the-loop\n");
    let before = place.snapshot(PERSONS);
    let again = place.commit(&base, 1);
    assert_eq!(again, first);
    assert_eq!(place.snapshot(PERSONS), before);
    assert_eq!(place.status(), [" M README.md", "AM staged.rs", "?? notes.txt"]);
    assert_eq!(place.git(&["rev-list", "--count", "HEAD"]), "2");
}

#[test]
fn a_plain_folder_and_a_bare_repository_are_named() {
    let place = TestRepository::new();
    let folder = place.top().join("home");
    let error = Repository::open(&folder, &place.env).unwrap_err();
    assert!(matches!(error, GitError::NotARepository(_)), "{error}");
    place.git(&["init", "-q", "--bare", "../bare.git"]);
    let error = Repository::open(&place.top().join("bare.git"), &place.env).unwrap_err();
    assert!(matches!(error, GitError::Bare(_)), "{error}");
    let error = Repository::open(&place.top().join("project/.git"), &place.env).unwrap_err();
    assert!(matches!(error, GitError::Bare(_)), "{error}");
    let nothing = [("PATH".into(), "/nonexistent".into())];
    let error = Repository::open(&folder, &nothing).unwrap_err();
    assert!(matches!(error, GitError::Missing(_)), "{error}");
}

#[test]
fn the_root_is_found_from_below() {
    let place = TestRepository::new();
    let repository = Repository::open(&place.root().join("src"), &place.env).unwrap();
    assert_eq!(repository.root(), place.root());
}

#[test]
fn a_linked_worktree_has_its_own_index_and_branch() {
    let place = TestRepository::new();
    make_dirty(&place);
    let main = place.snapshot(PERSONS);
    place.git(&["worktree", "add", "-q", "-b", "side", "../side"]);
    let side = place.top().join("side");
    let linked = TestRepository::new_at(&place, side);
    let base = linked.survey();
    linked.write("src/a.rs", "on the side\n");
    made(&linked.commit(&base, 1));
    assert!(linked.status().is_empty());
    assert_eq!(place.snapshot(PERSONS), main);
    assert_eq!(place.git(&["log", "--format=%s", "side", "-1"]), "loop: iteration 1");
}

#[rstest]
#[case::split_index("core.splitIndex", "true")]
#[case::no_file_mode("core.fileMode", "false")]
#[case::index_v4("index.version", "4")]
#[case::untracked_cache("core.untrackedCache", "true")]
#[case::broken_monitor("core.fsmonitor", "/nonexistent/monitor")]
#[case::quiet_untracked("status.showUntrackedFiles", "no")]
#[case::renames("status.renames", "copies")]
#[case::relative("status.relativePaths", "false")]
#[case::signed_log("log.showSignature", "true")]
#[case::cleanup("commit.cleanup", "scissors")]
#[case::template("commit.template", "/nonexistent")]
#[case::encoding("i18n.commitEncoding", "ISO-8859-1")]
fn the_persons_settings_change_nothing_that_matters(#[case] key: &str, #[case] value: &str) {
    let place = TestRepository::new();
    place.git(&["config", key, value]);
    if key == "core.splitIndex" {
        place.git(&["update-index", "--split-index"]);
    }
    make_dirty(&place);
    let base = place.survey();
    assert_eq!(base.dirty.len(), 3);
    place.write("src/a.rs", "changed\n");
    place.write("src/neu.rs", "neu\n");
    let before = place.snapshot(PERSONS);
    let report = place.commit(&base, 1);
    assert_eq!(place.committed(made(&report).as_str()), ["M src/a.rs", "A src/neu.rs"]);
    assert_eq!(place.snapshot(PERSONS), before);
    assert_eq!(place.git(&["status", "--short", "-uall"]), " M README.md\nAM staged.rs\n?? notes.txt");
    assert!(matches!(report.result, CommitResult::Made { .. }));
}

#[test]
fn a_commit_with_copied_trailers_is_not_taken_for_the_loops_own() {
    let place = TestRepository::new();
    let base = place.survey();
    place.write("src/a.rs", "one\n");
    let first = place.commit(&base, 1);
    // The loop has not begun to commit iteration 2: a commit of the agent with its trailers does not count.
    place.write("src/a.rs", "two\n");
    let copied = "copied\n\nRefrain-Loop: the-loop\nRefrain-Iteration: 2";
    place.git(&["commit", "-qam", copied]);
    let copy = place.head();
    place.write("src/b.rs", "two\n");
    let second = place.commit_since(&base, first.head.as_ref(), 2).unwrap();
    assert_eq!(second.by_agent, std::slice::from_ref(&copy));
    assert_ne!(made(&second), copy);
}

#[test]
fn an_empty_foreign_index_lock_is_kept() {
    let place = TestRepository::new();
    let base = place.survey();
    place.write("src/a.rs", "one\n");
    place.write_at(place.git_path("index.lock"), "");
    let why = skipped(&place.commit(&base, 1));
    assert_eq!(why, SkipReason::IndexLocked);
    assert!(why.to_string().ends_with("if no git is running, remove index.lock from the git folder"));
    assert_eq!(std::fs::read(place.git_path("index.lock")).unwrap(), b"");
}

#[test]
fn a_path_with_a_line_break_is_refused_in_words() {
    let place = TestRepository::new();
    let odd = place.top().join("two\nlines");
    place.git(&["init", "-q", odd.as_str()]);
    let error = Repository::open(&odd, &place.env).unwrap_err();
    assert!(matches!(error, GitError::LineBreak(_)), "{error}");
    assert!(error.to_string().contains(r"two\nlines") && error.to_string().contains("line break"), "{error}");
    let outside = place.top().join("odd\ngit");
    place.git(&["init", "-q", "--separate-git-dir", outside.as_str(), "../apart"]);
    let error = Repository::open(&place.top().join("apart"), &place.env).unwrap_err();
    assert!(matches!(error, GitError::LineBreak(_)), "{error}");
}

#[test]
fn an_operation_in_progress_is_known_from_the_survey() {
    let place = TestRepository::new();
    assert_eq!(place.survey().operation, None);
    place.git(&["bisect", "start"]);
    assert_eq!(place.survey().operation, Some(refrain_core::git::Operation::Bisect));
}
