//! A look directly after another need not be repeated; changes in between are never committed unseen, nor to a branch
//! that the user has left.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, UNIX_EPOCH};

use refrain_core::git::{Base, CommitReport, CommitResult, Oid, SkipReason};
use refrain_git::{Bounds, CommitRequest, ExactnessRequest, Repository, TreeRequest};
use rstest::rstest;

use crate::place::{TestRepository, id, made, skipped};

fn tree(place: &TestRepository, repository: &Repository, base: &Base) -> Oid {
    let index = place.top().join("loop/index");
    let request = TreeRequest {
        base,
        index: &index,
        bounds: Bounds { largest_file: 1 << 20, allow_secrets: &[], cancel: None },
    };
    repository.tree(request).unwrap().0
}

fn commit(place: &TestRepository, repository: &Repository, base: &Base) -> CommitReport {
    let request = CommitRequest {
        base,
        last_head: base.head.as_ref(),
        id: &id(),
        iteration: 1,
        message: "Do it",
        index: &place.top().join("loop/index"),
        bounds: Bounds { largest_file: 1 << 20, allow_secrets: &[], cancel: None },
    };
    repository.commit(request).unwrap()
}

/// A worktree in which the agent changed a file, and its tree. The tree is taken twice, because a file written in the
/// same clock tick is not cached.
fn proven(place: &TestRepository) -> (Repository, Base, Oid) {
    let repository = place.repository();
    let base = repository.survey().unwrap();
    place.write("src/a.rs", "fn a() { done() }\n");
    tree(place, &repository, &base);
    let told = tree(place, &repository, &base);
    (repository, base, told)
}

#[test]
fn a_candidate_right_after_a_survey_is_the_surveyed_tree() {
    let place = TestRepository::new();
    let repository = place.repository();
    let base = repository.survey().unwrap();
    let head: Oid = place.git(&["rev-parse", "HEAD^{tree}"]).parse().unwrap();
    place.write("src/a.rs", "fn a() { later() }\n");
    repository.is_still();
    assert_eq!(tree(&place, &repository, &base), head);
    assert_ne!(tree(&place, &repository, &base), head, "that is believed once");
    repository.survey().unwrap();
    repository.is_still();
    assert_ne!(tree(&place, &repository, &base), head, "a survey that saw a change says nothing of the tree");
}

#[test]
fn a_commit_right_after_the_proof_takes_the_proven_tree() {
    let place = TestRepository::new();
    let (repository, base, told) = proven(&place);
    place.write("later.rs", "later\n");
    repository.is_still();
    let report = commit(&place, &repository, &base);
    assert!(matches!(&report.result, CommitResult::Made { tree, .. } if *tree == told), "{report:?}");
    assert_eq!(place.committed("HEAD"), ["M src/a.rs"]);
    assert_eq!(place.status(), ["?? later.rs"]);
}

#[test]
fn a_file_that_was_written_again_is_committed_as_it_is() {
    let place = TestRepository::new();
    let (repository, base, told) = proven(&place);
    place.write("src/a.rs", "fn a() { DONE() }\n");
    repository.is_still();
    made(&commit(&place, &repository, &base));
    assert_ne!(place.git(&["rev-parse", "HEAD^{tree}"]), told.as_str());
    assert!(place.status().is_empty());
}

/// Git compares the times of files by the second, and an agent sets one of them.
#[test]
fn a_change_that_git_does_not_see_is_no_part_of_a_claim() {
    let place = TestRepository::new();
    let file = place.path("src/a.rs");
    let old = UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    let write = |text: &str| {
        let mut file = OpenOptions::new().write(true).open(&file).unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file.set_modified(old).unwrap();
        file.metadata().unwrap().ctime()
    };
    let size = usize::try_from(fs::metadata(&file).unwrap().len()).unwrap();
    let repository = place.repository();
    let base = repository.survey().unwrap();
    let told = loop {
        let before = write(&"x".repeat(size));
        let told = tree(&place, &repository, &base);
        if write(&"y".repeat(size)) == before {
            break told;
        }
    };
    if tree(&place, &repository, &base) != told {
        // A git that compares nanoseconds sees it.
        return;
    }
    let entries = repository.new_entries(base.head.as_ref(), &told).unwrap();
    let request = ExactnessRequest { entries: &entries, since: None, omitted: &[], dirty: &[], cancel: None };
    let unlike = repository.unlike_checkout(request).unwrap();
    assert_eq!(unlike.iter().map(ToString::to_string).collect::<Vec<_>>(), ["src/a.rs"]);
}

/// An agent may write the index of its worktree: here, that a file is not changed.
#[test]
fn an_index_of_the_agent_does_not_hide_a_change_from_the_proof() {
    let place = TestRepository::new();
    let (repository, base, told) = proven(&place);
    place.write("src/b.rs", "fn b() { hidden() }\n");
    place.git(&["update-index", "--assume-unchanged", "src/b.rs"]);
    place.git(&["update-index", "--no-assume-unchanged", "src/b.rs"]);
    assert_ne!(tree(&place, &repository, &base), told);
}

/// An agent at work reads what the repository has, and can lead git to a file that it must not read.
#[test]
fn a_look_with_private_objects_leaves_none_in_the_repository() {
    let place = TestRepository::new();
    let objects = || place.git(&["cat-file", "--batch-check", "--batch-all-objects"]);
    place.write("src/a.rs", "fn a() { secret() }\n");
    let before = objects();
    let repository = place.repository().with_private_objects(place.top()).unwrap();
    let base = repository.survey().unwrap();
    fs::create_dir_all(place.top().join("loop")).unwrap();
    let told = tree(&place, &repository, &Base { dirty: Vec::new(), ..base.clone() });
    let changes = repository.changes(base.head.as_ref(), &told).unwrap();
    assert!(changes.diff.contains("secret"), "{changes:?}");
    assert_eq!(objects(), before);
}

#[rstest]
#[case::another_branch(&["switch", "-qc", "theirs"], SkipReason::OtherBranch { now: Some("theirs".into()) })]
#[case::no_branch(&["switch", "-q", "--detach"], SkipReason::OtherBranch { now: None })]
fn a_worktree_on_another_branch_gets_no_commit(#[case] how: &[&str], #[case] expected: SkipReason) {
    let place = TestRepository::new();
    let (repository, base, _) = proven(&place);
    place.git(how);
    repository.is_still();
    assert_eq!(skipped(&commit(&place, &repository, &base)), expected);
}

#[test]
fn a_commit_is_made_on_top_of_a_foreign_commit() {
    let place = TestRepository::new();
    let (repository, base, _) = proven(&place);
    place.write("theirs.rs", "theirs\n");
    place.git(&["add", "theirs.rs"]);
    place.git(&["commit", "-qm", "Theirs", "theirs.rs"]);
    let theirs = place.head();
    repository.is_still();
    let commit = made(&commit(&place, &repository, &base));
    assert_eq!(place.git(&["rev-parse", &format!("{commit}^")]), theirs.as_str());
    assert_eq!(place.committed("HEAD"), ["M src/a.rs"]);
    assert!(place.status().is_empty());
}
