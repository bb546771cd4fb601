//! Traces of a loop in the repository.

use refrain_core::git::{CommitResult, Oid};
use refrain_core::view::report::Change;

use crate::place::TestRepository;

fn tree(place: &TestRepository, of: &str) -> Oid {
    place.git(&["rev-parse", &format!("{of}^{{tree}}")]).trim().parse().unwrap()
}

#[test]
fn files_that_differ_come_in_order_with_their_lines() {
    let place = TestRepository::new();
    let before = tree(&place, "HEAD");
    place.write("src/a.rs", "fn a() {}\nfn more() {}\n");
    place.write("a new\tfile\n", "one\n");
    place.write("bytes.bin", "a\0b");
    std::fs::remove_file(place.path("src/b.rs")).unwrap();
    std::fs::remove_file(place.path("README.md")).unwrap();
    std::os::unix::fs::symlink("src/a.rs", place.path("README.md")).unwrap();
    place.git(&["add", "-A"]);
    place.git(&["commit", "-qm", "Work"]);
    let after = tree(&place, "HEAD");
    let changes = place.repository().changed_files(Some(&before), &after).unwrap();
    let told: Vec<_> =
        changes.iter().map(|file| (file.path.to_string(), file.change, file.added, file.removed)).collect();
    let of = |path: &str, change, added, removed| (path.to_owned(), change, added, removed);
    assert_eq!(
        told,
        [
            of("README.md", Change::Retyped, Some(1), Some(1)),
            of(r"a new\tfile\n", Change::Added, Some(1), Some(0)),
            of("bytes.bin", Change::Added, None, None),
            of("src/a.rs", Change::Modified, Some(1), Some(0)),
            of("src/b.rs", Change::Deleted, Some(0), Some(1)),
        ]
    );
    assert_eq!(place.repository().changed_files(None, &before).unwrap().len(), 3, "against nothing");
    assert!(place.repository().changed_files(Some(&before), &before).unwrap().is_empty());
    let gone = "1".repeat(40).parse().unwrap();
    assert!(place.repository().changed_files(Some(&before), &gone).is_err());
}

#[test]
fn a_commit_and_a_tree_are_there_or_they_are_not() {
    let place = TestRepository::new();
    let base = place.survey();
    place.write("src/a.rs", "fn a() { done() }\n");
    let CommitResult::Made { commit, tree } = place.commit(&base, 3).result else { panic!("it is made") };
    let found = place.repository().recorded(&commit).unwrap().unwrap();
    assert_eq!((found.tree, found.of_iteration.as_str()), (tree.clone(), "3"));
    assert!(!found.of_loop.is_empty());
    let began = place.repository().recorded(base.head.as_ref().unwrap()).unwrap().unwrap();
    assert_eq!((began.of_loop.as_str(), began.of_iteration.as_str()), ("", ""));
    assert!(place.repository().has_whole(&tree).unwrap());

    // A replacement by `git replace` has no effect.
    place.git(&["replace", "-f", commit.as_str(), base.head.as_ref().unwrap().as_str()]);
    assert_eq!(place.repository().recorded(&commit).unwrap().unwrap().of_iteration, "3");
    place.git(&["replace", "-d", commit.as_str()]);

    let blob = place.git(&["rev-parse", &format!("{commit}:src/a.rs")]);
    let (folder, file) = blob.trim().split_at(2);
    std::fs::remove_file(place.git_path(&format!("objects/{folder}/{file}"))).unwrap();
    assert!(!place.repository().has_whole(&tree).unwrap(), "a tree without one of its files is not whole");
    let gone: Oid = "1".repeat(40).parse().unwrap();
    assert_eq!(place.repository().recorded(&gone).unwrap(), None);
    assert!(!place.repository().has_whole(&gone).unwrap());
}
