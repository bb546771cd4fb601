//! Where references and worktrees are, in every form in which git keeps them.

use std::fs;

use refrain_git::Repository;
use rstest::rstest;

use crate::place::TestRepository;

#[rstest]
#[case::as_files(&["status"])]
#[case::packed(&["pack-refs", "--all"])]
#[case::in_tables(&["refs", "migrate", "--ref-format=reftable"])]
fn references_are_found_wherever_git_keeps_them(#[case] how: &[&str]) {
    let place = TestRepository::new();
    let head = place.head();
    for name in ["refs/heads/topic/one", "refs/refrain/plans/a/line"] {
        place.git(&["update-ref", name, head.as_str()]);
    }
    place.git(&["symbolic-ref", "refs/heads/other", "refs/heads/topic/one"]);
    // Only newer gits support reftable.
    place.try_git(how);
    let repository = place.repository();
    for name in
        ["HEAD", "refs/heads/main", "refs/heads/topic/one", "refs/heads/other", "refs/refrain/plans/a/line"]
    {
        assert_eq!(repository.reference(name).unwrap().as_ref(), Some(&head), "{name}");
    }
    for name in ["refs/heads/topic", "refs/heads/topic/two", "refs/refrain/none"] {
        assert_eq!(repository.reference(name).unwrap(), None, "{name}");
    }
    let names = ["refs/heads/topic/one", "refs/heads/topic", "refs/heads/none"].map(str::to_owned);
    let tree = repository.tree_of(&head).unwrap();
    let found = repository.references(&names).unwrap();
    assert_eq!(found.into_iter().collect::<Vec<_>>(), [(names[0].clone(), (head.clone(), tree))]);
    place.git(&["commit", "-q", "--allow-empty", "-m", "Next"]);
    assert_ne!(repository.reference("HEAD").unwrap(), Some(head), "it is looked at each time");
}

fn linked(place: &TestRepository) -> Repository {
    let path = place.top().join("linked");
    place.git(&["worktree", "add", "-q", "-b", "linked", path.as_str()]);
    Repository::open(&path, &place.env).unwrap()
}

#[test]
fn a_linked_worktree_is_where_it_was_until_something_says_else() {
    let place = TestRepository::new();
    let linked = linked(&place);
    assert!(linked.is_where_it_was());
    // Set for all worktrees, this setting is only respected in the main one.
    place.git(&["config", "core.worktree", place.top().as_str()]);
    let again = Repository::open(linked.root(), &place.env).unwrap();
    assert_eq!((again.root(), again.git_dir()), (linked.root(), linked.git_dir()));
    place.git(&["config", "--unset", "core.worktree"]);
    place.git(&["config", "extensions.worktreeConfig", "true"]);
    let own = TestRepository::new_at(&place, linked.root().to_owned());
    own.git(&["config", "--worktree", "core.worktree", place.top().as_str()]);
    assert!(!linked.is_where_it_was(), "it has a configuration of its own");
    assert!(!place.repository().is_where_it_was(), "of the main one git is asked");
}

#[test]
fn a_worktree_that_leads_to_another_repository_has_moved() {
    let (place, other) = (TestRepository::new(), TestRepository::new());
    let linked = linked(&place);
    let dot_git = linked.root().join(".git");
    let theirs = format!("gitdir: {}\n", other.root().join(".git"));
    place.write_at(&dot_git, theirs);
    assert!(!linked.is_where_it_was());
    fs::remove_file(&dot_git).unwrap();
    assert!(!linked.is_where_it_was());
}
