//! Paths that `git add` does not make: an agent can write them into a tree, and no checkout can have them.

use refrain_core::git::{Oid, RepoPath};
use refrain_git::{GitError, MergeRequest};
use rstest::rstest;

use crate::place::TestRepository;

/// The commit of a tree with one entry, as `git add` does not make it, at the head of the worktree.
fn commit_with_name(place: &TestRepository, name: &[u8]) -> Oid {
    let blob = place.git(&["rev-parse", "HEAD:README.md"]);
    let blob =
        blob.as_bytes().chunks(2).map(|it| u8::from_str_radix(str::from_utf8(it).unwrap(), 16).unwrap());
    let tree = [b"100644 ".as_slice(), name, b"\0", &blob.collect::<Vec<_>>()].concat();
    place.write(".git/raw", tree);
    let tree = place.git(&["hash-object", "-t", "tree", "-w", "--literally", ".git/raw"]);
    let commit = place.git(&["commit-tree", &tree, "-p", "HEAD", "-m", "Raw"]);
    place.git(&["update-ref", "HEAD", &commit]);
    commit.parse().unwrap()
}

#[rstest]
#[case::above("..")]
#[case::file_above("../x")]
#[case::absolute("/x")]
#[case::itself(".")]
#[case::git_folder(".git")]
#[case::its_other_spelling(".GIT")]
#[case::its_short_name("git~1")]
#[case::its_name_with_dots(".git. .")]
#[case::its_stream(".git::$INDEX_ALLOCATION")]
#[case::terminal("../\u{1b}[31mred")]
fn a_path_that_no_checkout_can_have_is_named(#[case] name: &str) {
    let place = TestRepository::new();
    let base = place.head();
    place.git(&["commit", "-q", "--allow-empty", "-m", "Other"]);
    let tip = place.head();
    let work = commit_with_name(&place, name.as_bytes());
    let repository = place.repository();
    let index = place.top().join("index");
    let request =
        MergeRequest { base: &base, tip: &tip, work: &work, except: &[], index: &index, cancel: None };
    let errors = [
        repository.verify_tree(&work, None).unwrap_err(),
        repository.survey().unwrap_err(),
        repository.merge(request).unwrap_err(),
    ];
    for error in errors {
        let shown = RepoPath::from_bytes(name.as_bytes()).to_string();
        assert!(matches!(&error, GitError::BadPath(path) if *path == shown), "{error:?}");
    }
}

#[test]
fn a_name_that_is_too_long_or_empty_is_found_out() {
    let place = TestRepository::new();
    let repository = place.repository();
    let begin = place.head();
    let longest = commit_with_name(&place, "ü".repeat(127).as_bytes());
    repository.verify_tree(&longest, None).unwrap();
    place.git(&["update-ref", "HEAD", begin.as_str()]);
    let too_long = commit_with_name(&place, "ü".repeat(128).as_bytes());
    let error = repository.verify_tree(&too_long, None).unwrap_err();
    assert!(matches!(&error, GitError::BadPath(path) if path.starts_with("üü")), "{error:?}");
    place.git(&["update-ref", "HEAD", begin.as_str()]);
    let empty = commit_with_name(&place, b"");
    for error in [repository.verify_tree(&empty, None).unwrap_err(), repository.survey().unwrap_err()] {
        assert!(matches!(&error, GitError::BadTree { of, .. } if of == empty.short()), "{error:?}");
    }
}
