//! What a commit would have, as a tree.

use refrain_core::git::{Base, Oid};
use refrain_git::TreeRequest;

use crate::place::Place;

fn tree(place: &Place, base: &Base) -> (Oid, bool) {
    let index = place.git_path("tree-index");
    let request =
        TreeRequest { base, index: &index, largest_file: 1 << 20, allow_secrets: &[], cancel: None };
    place.repository().tree(request).unwrap()
}

#[test]
fn it_is_what_is_committed_then_and_nothing_is_touched_for_it() {
    let place = Place::new();
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
fn what_is_left_out_is_no_part_of_it_but_is_known() {
    let place = Place::new();
    place.write("src/a.rs", "mine\n");
    let base = place.survey();
    let (before, _) = tree(&place, &base);
    place.write("src/a.rs", "mine and the agent's\n");
    assert_eq!(tree(&place, &base), (before, true));
}

#[test]
fn a_branch_without_a_commit_has_one_too() {
    let place = Place::unborn(&[]);
    let base = place.survey();
    let (empty, _) = tree(&place, &base);
    place.write("first.rs", "first\n");
    let (first, partial) = tree(&place, &base);
    assert!(first != empty && !partial);
    assert_eq!(place.git(&["ls-tree", "--name-only", first.as_str()]), "first.rs");
}
