//! The reference that carries a loop between machines.

use std::sync::Barrier;

use camino::Utf8PathBuf;
use refrain_core::LoopId;
use refrain_git::{JournalCommit, NewJournalCommit, Repository, Swap};

use crate::place::TestRepository;

const RACES: u64 = 20;

/// The reference as a clone sees it.
fn fetch(repository: &Repository, remote: &str, id: &LoopId) -> Option<JournalCommit> {
    let at = repository.journal_ref(remote, repository.root(), id).unwrap();
    at.fetch().unwrap().unwrap()
}

#[test]
fn of_two_machines_that_claim_a_loop_one_succeeds() {
    let place = TestRepository::new();
    let id: LoopId = "job".parse().unwrap();
    place.git(&["init", "-q", "--bare", "../state.git"]);
    let other = place.top().join("other");
    place.git(&["clone", "-q", ".", other.as_str()]);
    let other = TestRepository::new_at(&place, other);
    let (one, two) = (place.repository(), other.repository());
    let at = one.journal_ref("../state.git", one.root(), &id).unwrap();
    assert_eq!(at.url(), place.top().join("state.git").as_str());
    assert_eq!(fetch(&one, at.url(), &id), None);
    let object = at.store(b"journal\n").unwrap();
    let files = [(Utf8PathBuf::from("journal.jsonl"), object.clone())];
    let (head, index) = (place.head(), place.top().join("index"));
    let trees = [one.tree_of(&head).unwrap()];
    let new = |previous| NewJournalCommit {
        previous,
        head: &head,
        files: &files,
        trees: &trees,
        fence: 1,
        seq: 9,
        index: &index,
    };
    let first = at.commit(&new(None)).unwrap();
    assert_eq!(at.swap(&first, None).unwrap(), Swap::Done);
    // What was published is found, and is not replaced by mistake.
    assert_eq!(at.swap(&at.commit(&new(Some(&first))).unwrap(), None).unwrap(), Swap::Stale);
    let found = fetch(&two, at.url(), &id).unwrap();
    assert_eq!((found.found.fence, &found.found.holder, &found.found.commit), (1, &None, &first));
    assert_eq!(found.files, [("journal.jsonl".into(), object.clone(), 8)]);
    let from = two.journal_ref(at.url(), two.root(), &id).unwrap();
    assert_eq!(from.content(&object).unwrap(), b"journal\n");
    assert!(two.has_whole(&trees[0]).unwrap() && two.is_behind(&head, &first).unwrap());

    for fence in 2..2 + RACES {
        let start = Barrier::new(2);
        // Both have the same name.
        let claim = |repository: &Repository| {
            let at = repository.journal_ref(from.url(), repository.root(), &id).unwrap();
            let there = at.fetch().unwrap().unwrap().unwrap();
            let commit = at.claim(&there, fence, 9, "host").unwrap();
            start.wait();
            (at.swap(&commit, Some(&there.found.commit)).unwrap(), commit)
        };
        let results = std::thread::scope(|scope| {
            let race = [&one, &two].map(|machine| scope.spawn(move || claim(machine)));
            race.map(|machine| machine.join().unwrap())
        });
        let [(first, of_first), (second, of_second)] = results;
        let winner = if first == Swap::Done { of_first } else { of_second };
        assert!(
            matches!((&first, &second), (Swap::Done, Swap::Stale) | (Swap::Stale, Swap::Done)),
            "{first:?} {second:?}"
        );
        let found = fetch(&one, at.url(), &id).unwrap().found;
        assert_eq!((found.fence, found.holder.as_deref(), found.commit), (fence, Some("host"), winner));
    }
}

#[test]
fn the_references_of_a_loop_are_removed_together_and_only_where_they_were_seen() {
    let place = TestRepository::new();
    let id: LoopId = "job".parse().unwrap();
    place.git(&["init", "-q", "--bare", "../state.git"]);
    let (repository, head) = (place.repository(), place.head());
    let at = repository.journal_ref("../state.git", repository.root(), &id).unwrap();
    let names = |names: &[&str]| {
        for name in names {
            place.git(&["push", "-q", "../state.git", &format!("{head}:{name}")]);
        }
    };
    let left = || place.git(&["-C", "../state.git", "for-each-ref", "--format=%(refname)"]);
    names(&["refs/heads/job", "refs/refrain/job-2/journal", "refs/refrain/job/requests/1"]);
    assert_eq!(at.remove(&head).unwrap(), Swap::Stale, "it has no journal there");
    names(&["refs/refrain/job/journal"]);
    let older = place.git(&["rev-parse", "HEAD^{tree}"]).trim().parse().unwrap();
    assert_eq!(at.remove(&older).unwrap(), Swap::Stale, "it was moved since it was seen");
    assert_eq!(left().lines().count(), 4);
    assert_eq!(at.remove(&head).unwrap(), Swap::Done);
    assert_eq!(left().trim(), "refs/heads/job\nrefs/refrain/job-2/journal");
    assert_eq!(at.remove(&head).unwrap(), Swap::Stale, "it is gone");
}
