//! The content of a future commit, as a tree.

use refrain_core::git::{Base, CommitResult, Oid};
use refrain_git::{Bounds, CommitRequest, TreeRequest};

use crate::place::TestRepository;

fn tree(place: &TestRepository, base: &Base) -> (Oid, bool) {
    let index = place.git_path("tree-index");
    let request = TreeRequest {
        base,
        index: &index,
        bounds: Bounds { largest_file: 1 << 20, allow_secrets: &[], cancel: None },
    };
    place.repository().tree(request).unwrap()
}

#[test]
fn the_candidate_tree_equals_the_later_commit_and_touches_nothing() {
    let place = TestRepository::new();
    place.write("src/b.rs", "fn b() { /* mine */ }\n");
    place.write("staged.rs", "staged\n");
    place.git(&["add", "staged.rs"]);
    let base = place.survey();
    let at_first = tree(&place, &base);
    let head: Oid = place.git(&["rev-parse", "HEAD^{tree}"]).trim().parse().unwrap();
    assert_eq!(at_first, (head, false), "what was there before is the person's");

    place.write("src/a.rs", "fn a() { done() }\n");
    place.write("src/new.rs", "new\n");
    std::fs::remove_file(place.path("README.md")).unwrap();
    let before = place.status();
    let candidate = tree(&place, &base);
    assert_ne!(candidate, at_first);
    assert_eq!(tree(&place, &base), candidate, "the same is the same");
    assert_eq!(place.status(), before);
    place.commit(&base, 1);
    assert_eq!(place.git(&["rev-parse", "HEAD^{tree}"]).trim(), candidate.0.as_str());
    assert_eq!(tree(&place, &base), candidate, "committed or not");
}

#[test]
fn an_omitted_file_is_not_in_the_tree_but_marks_it_partial() {
    let place = TestRepository::new();
    place.write("src/a.rs", "mine\n");
    let base = place.survey();
    let (before, _) = tree(&place, &base);
    place.write("src/a.rs", "mine and the agent's\n");
    assert_eq!(tree(&place, &base), (before, true));
}

#[test]
fn a_branch_without_a_commit_has_one_too() {
    let place = TestRepository::unborn(&[]);
    let base = place.survey();
    let (empty, _) = tree(&place, &base);
    place.write("first.rs", "first\n");
    let (first, partial) = tree(&place, &base);
    assert!(first != empty && !partial);
    assert_eq!(place.git(&["ls-tree", "--name-only", first.as_str()]), "first.rs");
}

#[test]
fn repeated_trees_contain_every_change_and_a_commit_takes_the_last() {
    let place = TestRepository::new();
    let (base, index, repository) = (place.survey(), place.git_path("tree-index"), place.repository());
    let tree = || {
        let request = TreeRequest {
            base: &base,
            index: &index,
            bounds: Bounds { largest_file: 1 << 20, allow_secrets: &[], cancel: None },
        };
        repository.tree(request).unwrap().0
    };
    let head: Oid = place.git(&["rev-parse", "HEAD^{tree}"]).parse().unwrap();
    assert_eq!((tree(), tree()), (head.clone(), head), "nothing was changed");
    let mut last = tree();
    let id = "loop".parse().unwrap();
    let commit = |iteration| {
        let request = CommitRequest {
            base: &base,
            last_head: None,
            id: &id,
            iteration,
            message: "Do it",
            index: &index,
            bounds: Bounds { largest_file: 1 << 20, allow_secrets: &[], cancel: None },
        };
        let report = repository.commit(request).unwrap();
        assert!(matches!(report.result, CommitResult::Made { .. }), "{report:?}");
    };
    for round in 0..20_u32 {
        // The same length as before.
        place.write("src/a.rs", format!("fn a() {{ {round:04} }}\n"));
        let now = tree();
        assert_ne!(now, last, "{round}");
        assert_eq!(tree(), now);
        assert_eq!(place.git(&["show", &format!("{now}:src/a.rs")]), format!("fn a() {{ {round:04} }}"));
        if round % 3 == 0 {
            commit(round + 1);
            assert_eq!(place.git(&["rev-parse", "HEAD^{tree}"]), now.as_str());
            assert!(place.status().is_empty(), "the index has it too");
            assert_eq!(tree(), now);
        }
        last = now;
    }
    // Changes staged by others and a moved head are detected too.
    place.write("other.rs", "other\n");
    let with_other = tree();
    place.git(&["add", "other.rs"]);
    assert_eq!(tree(), with_other);
    place.git(&["commit", "-qm", "Theirs"]);
    place.write("more.rs", "more\n");
    assert_ne!(tree(), with_other);
}

/// `git add -N` puts an entry into the index that has no content, and that no commit has.
#[test]
fn an_intended_file_is_committed_as_it_is_and_otherwise_stays_intended() {
    let place = TestRepository::new();
    place.write("mine.rs", "mine\n");
    place.write("mine-empty.rs", "");
    place.write("mine-gone.rs", "gone\n");
    place.git(&["add", "-N", "mine.rs", "mine-empty.rs", "mine-gone.rs"]);
    std::fs::remove_file(place.path("mine-gone.rs")).unwrap();
    let base = place.survey();
    let head: Oid = place.git(&["rev-parse", "HEAD^{tree}"]).parse().unwrap();
    assert_eq!(tree(&place, &base), (head, false));
    place.write("new.rs", "new\n");
    place.write("new-empty.rs", "");
    place.write("new-gone.rs", "");
    place.write("large.rs", "x".repeat((1 << 20) + 1));
    place.git(&["add", "-N", "new.rs", "new-empty.rs", "new-gone.rs", "large.rs"]);
    std::fs::remove_file(place.path("new-gone.rs")).unwrap();
    let (tree, is_partial) = tree(&place, &base);
    assert!(is_partial);
    let names = place.git(&["ls-tree", "-r", "--name-only", tree.as_str()]);
    assert_eq!(
        names.lines().collect::<Vec<_>>(),
        ["README.md", "new-empty.rs", "new.rs", "src/a.rs", "src/b.rs"]
    );
    assert_eq!(place.git(&["show", &format!("{tree}:new.rs")]), "new");
    let before = place.snapshot(&["mine.rs", "mine-empty.rs", "mine-gone.rs", "large.rs"]);
    place.commit(&base, 1);
    assert_eq!(place.git(&["rev-parse", "HEAD^{tree}"]), tree.as_str());
    assert_eq!(place.snapshot(&["mine.rs", "mine-empty.rs", "mine-gone.rs", "large.rs"]), before);
    assert_eq!(
        place.status(),
        [" A large.rs", " A mine-empty.rs", " D mine-gone.rs", " A mine.rs", " D new-gone.rs"]
    );
}

/// A clean start: nothing of the user's is in the way.
#[test]
fn an_intended_file_of_the_loop_is_committed_as_it_is() {
    let place = TestRepository::new();
    let base = place.survey();
    for (iteration, is_large) in [(1, false), (2, true)] {
        let name = |kind: &str| format!("{kind}{iteration}.rs");
        place.write(name("new"), "new\n");
        place.write(name("gone"), "gone\n");
        place.git(&["add", "-N", &name("new"), &name("gone")]);
        std::fs::remove_file(place.path(name("gone"))).unwrap();
        if is_large {
            place.write("large.rs", "x".repeat((1 << 20) + 1));
            place.git(&["add", "-N", "large.rs"]);
        }
        let candidate = tree(&place, &base);
        assert_eq!(candidate.1, is_large);
        place.commit_since(&base, Some(&place.head()), iteration).unwrap();
        assert_eq!(place.git(&["rev-parse", "HEAD^{tree}"]), candidate.0.as_str());
        assert_eq!(place.git(&["show", &format!("HEAD:{}", name("new"))]), "new");
        assert_eq!(place.status(), if is_large { vec![" D gone2.rs", " A large.rs"] } else { vec![] });
    }
}
