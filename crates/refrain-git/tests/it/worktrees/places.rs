//! Positions of references and worktrees are read from git's files if these show them, and otherwise asked of git.

use std::fs;

use camino::Utf8PathBuf;
use refrain_core::git::Oid;
use refrain_git::{ReadyRequest, ReadySlot, Repository};
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
fn one_that_leads_to_another_repository_is_not_where_it_was() {
    let (place, other) = (TestRepository::new(), TestRepository::new());
    let linked = linked(&place);
    let dot_git = linked.root().join(".git");
    let theirs = format!("gitdir: {}\n", other.root().join(".git"));
    place.write_at(&dot_git, theirs);
    assert!(!linked.is_where_it_was());
    fs::remove_file(&dot_git).unwrap();
    assert!(!linked.is_where_it_was());
}

/// The folder of this slot of the pool, prepared on a branch.
#[track_caller]
fn ready_in(
    place: &TestRepository,
    repository: &Repository,
    number: u32,
    branch: &str,
    at: &Oid,
) -> Utf8PathBuf {
    let beside: Utf8PathBuf = place.top().join(format!("state/_pool/{number}"));
    fs::create_dir_all(&beside).unwrap();
    let folder = beside.join("project");
    let request = ReadyRequest {
        folder: &folder,
        beside: &beside,
        branch,
        at,
        was: None,
        largest_file: 1 << 20,
        allow_secrets: &[],
        cancel: None,
    };
    assert_eq!(repository.ready(request).unwrap(), ReadySlot::Ready { saved: None });
    folder
}

#[test]
fn branches_that_were_prepared_are_begun_on_and_belong_to_nobody_else() {
    let place = TestRepository::new();
    let (repository, at) = (place.repository(), place.head());
    let branches = ["one", "two"].map(|name| (format!("refrain/plan/{name}"), at.clone()));
    repository.prepare_branches(&branches).unwrap();
    let ready = |number: u32, branch: &str| {
        let folder = ready_in(&place, &repository, number, branch, &at);
        let beside = folder.parent().unwrap().to_owned();
        let there = TestRepository::new_at(&place, folder);
        assert_eq!(there.git(&["symbolic-ref", "HEAD"]), format!("refs/heads/{branch}"));
        assert!(there.status().is_empty());
        assert!(!beside.join("begun").exists());
    };
    ready(1, &branches[0].0);
    // The branch was deleted again.
    place.git(&["update-ref", "-d", "refs/heads/refrain/plan/two"]);
    ready(2, &branches[1].0);
    // One of them exists: none is made, and each is made with its worktree.
    let more = ["one", "three"].map(|name| (format!("refrain/plan/{name}"), at.clone()));
    repository.prepare_branches(&more).unwrap();
    assert_eq!(repository.reference("refs/heads/refrain/plan/three").unwrap(), None);
    ready(3, &more[1].0);
}

#[test]
fn a_worktree_that_is_begun_without_git_is_as_git_makes_it() {
    let place = TestRepository::new();
    let (at, by_git) = (place.head(), place.top().join("by-git/project"));
    place.git(&["branch", "theirs"]);
    place.git(&["worktree", "add", "-q", "--no-checkout", by_git.as_str(), "theirs"]);
    let begin = |number: u32, branch: &str| ready_in(&place, &place.repository(), number, branch, &at);
    let own = begin(1, "ours");
    let look = |name: &str| {
        let mut files: Vec<_> = fs::read_dir(place.path(".git/worktrees").join(name)).unwrap().collect();
        files.sort_by_key(|file| file.as_ref().unwrap().file_name());
        files
            .into_iter()
            .map(|file| file.unwrap().file_name())
            // A newer git makes `refs` as well.
            .filter(|name| name != "index" && name != "refs")
            .collect::<Vec<_>>()
    };
    assert_eq!(look("project1"), look("project"));
    let there = TestRepository::new_at(&place, own.clone());
    for what in ["gitdir", "commondir"] {
        let read =
            |name: &str| fs::read_to_string(place.path(".git/worktrees").join(name).join(what)).unwrap();
        assert_eq!(read("project1").replace(own.as_str(), ""), read("project").replace(by_git.as_str(), ""));
    }
    assert_eq!(there.git(&["rev-parse", "HEAD@{0}"]), at.as_str());
    assert_eq!(there.git(&["worktree", "prune", "--dry-run", "-v"]), "");
    let listed = there.git(&["worktree", "list", "--porcelain"]);
    assert!(listed.contains(&format!("worktree {own}\nHEAD {at}\nbranch refs/heads/ours")), "{listed}");
    there.git(&["fsck", "--no-dangling"]);

    // Git still lists a worktree whose folder is gone; it is recreated.
    fs::remove_dir_all(&own).unwrap();
    assert_eq!(begin(1, "again"), own);
    assert_eq!(there.git(&["worktree", "list"]).lines().count(), 3);
    place.git(&["worktree", "remove", "--force", own.as_str()]);
    assert_eq!(place.git(&["worktree", "list"]).lines().count(), 2);
}
