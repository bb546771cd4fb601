//! Worktrees that tasks use one after the other: nothing is lost, correct files are not written again, and a worktree
//! in any state is repaired or held.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use camino::Utf8PathBuf;
use refrain_core::git::Oid;
use refrain_git::{Bounds, Cancel, GitError, ReadyRequest, ReadySlot, Removal, Saved, SlotState, Worktree};
use refrain_proc::tool::Tool;
use rstest::rstest;

use crate::place::TestRepository;

const KEY: &str = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQ\n-----END OPENSSH PRIVATE KEY-----\n";

/// A worktree of a pool, beside the repository.
struct Slot<'a> {
    place: &'a TestRepository,
    beside: Utf8PathBuf,
}

impl<'a> Slot<'a> {
    fn new(place: &'a TestRepository, number: u32) -> Self {
        let beside = place.top().join(format!("state/_pool/{number}"));
        fs::create_dir_all(&beside).unwrap();
        Self { place, beside }
    }

    fn folder(&self) -> Utf8PathBuf {
        self.beside.join("project")
    }

    fn try_ready(&self, branch: &str, at: &Oid, was: Option<&Oid>) -> Result<ReadySlot, GitError> {
        self.place.repository().ready(ReadyRequest {
            folder: &self.folder(),
            beside: &self.beside,
            branch,
            at,
            was,
            bounds: Bounds { largest_file: 1 << 20, allow_secrets: &[], cancel: self.place.cancel.as_ref() },
        })
    }

    /// Prepares it for a task that begins at a commit; returns what had to be saved for that.
    #[track_caller]
    fn ready(&self, branch: &str, at: &Oid) -> Option<Saved> {
        let saved = match self.try_ready(branch, at, None).unwrap_or_else(|error| panic!("{error}")) {
            ReadySlot::Ready { saved } => saved,
            ReadySlot::Held(reasons) => panic!("held: {reasons:?}"),
        };
        assert_eq!(self.git(&["symbolic-ref", "HEAD"]), format!("refs/heads/{branch}"));
        assert_eq!(self.git(&["rev-parse", "HEAD"]), at.as_str());
        assert_eq!(self.git(&["status", "--porcelain", "-uall"]), "", "nothing but the commit");
        assert!(!self.beside.join("begun").exists());
        saved
    }

    #[track_caller]
    fn held(&self, branch: &str, at: &Oid) -> Vec<String> {
        match self.try_ready(branch, at, None).unwrap_or_else(|error| panic!("{error}")) {
            ReadySlot::Ready { saved } => panic!("ready: {saved:?}"),
            ReadySlot::Held(reasons) => reasons,
        }
    }

    fn standing(&self) -> SlotState {
        self.place.repository().standing(&self.folder(), &self.beside).unwrap()
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder().join(path).into()
    }

    fn write(&self, path: &str, text: &str) {
        self.place.write_at(self.path(path), text);
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap_or_else(|error| format!("{error}"))
    }

    #[track_caller]
    fn git(&self, args: &[&str]) -> String {
        let folder = self.folder();
        let tool = Tool::new("git", folder.as_std_path()).env(&self.place.env).args(args);
        let printed = tool.output().unwrap_or_else(|error| panic!("{error}"));
        String::from_utf8_lossy(&printed).trim_end_matches('\n').to_owned()
    }

    fn git_dir(&self) -> Utf8PathBuf {
        self.git(&["rev-parse", "--absolute-git-dir"]).into()
    }

    fn commit(&self, path: &str, text: &str) -> Oid {
        self.write(path, text);
        self.git(&["add", path]);
        self.git(&["commit", "-qm", path]);
        self.git(&["rev-parse", "HEAD"]).parse().unwrap()
    }
}

/// A repository that ignores the caches of tools.
fn place() -> TestRepository {
    let place = TestRepository::new();
    place.write(".gitignore", "/target\n/.refrain\n");
    place.git(&["add", "."]);
    place.git(&["commit", "-qm", "Ignore"]);
    place
}

fn next(place: &TestRepository) -> Oid {
    place.write("src/a.rs", "fn a() { next() }\n");
    place.write("src/new.rs", "fn new() {}\n");
    fs::remove_file(place.path("src/b.rs")).unwrap();
    place.git(&["add", "-A"]);
    place.git(&["commit", "-qm", "Next"]);
    place.head()
}

#[test]
fn the_next_task_keeps_the_caches_and_only_changes_are_written() {
    let place = place();
    let (slot, first) = (Slot::new(&place, 1), place.head());
    assert_eq!(slot.standing(), SlotState::Unready);
    assert_eq!(slot.ready("refrain/plan/1", &first), None);
    let branch = Some("refrain/plan/1".to_owned());
    assert_eq!(slot.standing(), SlotState::On { branch, head: Some(first.clone()) });
    slot.write("target/debug/app", "built\n");
    slot.write(".refrain/task-1/state.md", "notes\n");
    let work = slot.commit("src/work.rs", "work\n");
    let seen =
        |path: &str| fs::metadata(slot.path(path)).map(|meta| (meta.ino(), meta.mtime_nsec())).unwrap();
    let untouched = (seen("README.md"), seen("target/debug/app"));
    let second = next(&place);
    assert_eq!(slot.ready("refrain/plan/2", &second), None, "what is committed on a branch is not lost");
    assert_eq!((seen("README.md"), seen("target/debug/app")), untouched);
    assert_eq!(slot.read("src/a.rs"), "fn a() { next() }\n");
    assert!(!slot.path("src/b.rs").exists() && !slot.path("src/work.rs").exists());
    assert!(!slot.path(".refrain").exists(), "another task's notes");
    assert_eq!(place.git(&["rev-parse", "refrain/plan/1"]), work.as_str());
    assert_eq!(slot.ready("refrain/plan/2", &second), None, "it may be repeated");
    assert_eq!(place.git(&["branch", "--list", "wip/*"]), "");
}

#[test]
fn many_are_made_at_once() {
    let place = place();
    fs::create_dir_all(place.repository().common_dir().join("refrain")).unwrap();
    let at = place.head();
    let slots: Vec<_> = (1..=8).map(|number| Slot::new(&place, number)).collect();
    std::thread::scope(|scope| {
        let made = slots.iter().enumerate().map(|(number, slot)| {
            let at = &at;
            scope.spawn(move || slot.ready(&format!("task/{number}"), at))
        });
        for made in made.collect::<Vec<_>>() {
            assert_eq!(made.join().unwrap(), None);
        }
    });
}

#[test]
fn work_left_in_a_slot_is_saved_on_a_branch() {
    let place = place();
    let (slot, at) = (Slot::new(&place, 1), place.head());
    slot.ready("refrain/plan/1", &at);
    let work = slot.commit("src/work.rs", "work\n");
    slot.write("src/a.rs", "half done\n");
    slot.write("notes/new.md", "new\n");
    fs::remove_file(slot.path("src/b.rs")).unwrap();
    slot.write("staged.rs", "staged\n");
    slot.git(&["add", "staged.rs"]);
    let saved = slot.ready("refrain/plan/2", &at).unwrap();
    assert_eq!(saved.branch, "wip/slot-plan-1");
    let mut paths = place.committed(saved.commit.as_str());
    paths.sort();
    assert_eq!(paths, ["A notes/new.md", "A staged.rs", "D src/b.rs", "M src/a.rs"]);
    assert_eq!(place.git(&["rev-parse", "wip/slot-plan-1^"]), work.as_str());
    let message = place.git(&["log", "-1", "--format=%B", "wip/slot-plan-1"]);
    assert!(
        message.starts_with("wip: what was left in refrain/plan/1\n\n4 files are not committed\n"),
        "{message}"
    );
    assert!(!slot.path("notes").exists());
}

#[test]
fn commits_on_no_branch_are_saved_and_those_that_are_settled_are_not() {
    let place = place();
    let (slot, at) = (Slot::new(&place, 1), place.head());
    slot.ready("refrain/plan/1", &at);
    slot.git(&["switch", "-q", "--detach"]);
    let lost = slot.commit("lost.rs", "lost\n");
    let saved = slot.ready("refrain/plan/2", &at).unwrap();
    assert_eq!(saved.branch, format!("wip/slot-{}", lost.short()));
    assert_eq!(place.git(&["rev-parse", &format!("{}^", saved.branch)]), lost.as_str());

    let landed = slot.commit("landed.rs", "landed\n");
    let branch = "refrain/plan/2".to_owned();
    let retire = |at: &Oid, is_free: bool| {
        let branches = [(branch.clone(), at.clone())].into();
        let take = |worktree: &Worktree| (is_free && worktree.path == slot.folder()).then_some(());
        place.repository().retire_branches(&branches, take).unwrap();
        place.repository().branch_head(&branch).unwrap()
    };
    assert_eq!(retire(&at, true), Some(landed.clone()), "it moved on");
    assert_eq!(retire(&landed, false), Some(landed.clone()), "a task works in it");
    assert_eq!(slot.standing(), SlotState::On { branch: Some(branch.clone()), head: Some(landed.clone()) });
    assert_eq!(retire(&landed, true), None);
    assert_eq!(retire(&landed, true), None, "it may be repeated");
    assert_eq!(slot.standing(), SlotState::On { branch: None, head: Some(landed) });
    assert_eq!(slot.ready("refrain/plan/3", &at), None);
}

#[test]
fn a_branch_that_was_deleted_under_it_is_no_reason_to_take_all_files_for_new() {
    let place = place();
    let (slot, at) = (Slot::new(&place, 1), place.head());
    slot.ready("refrain/plan/1", &at);
    place.git(&["update-ref", "-d", "refs/heads/refrain/plan/1"]);
    assert_eq!(slot.ready("refrain/plan/2", &at), None);
    let work = slot.commit("work.rs", "work\n");
    place.git(&["update-ref", "-d", "refs/heads/refrain/plan/2"]);
    let saved = slot.ready("refrain/plan/3", &at).unwrap();
    assert_eq!(place.git(&["rev-parse", &format!("{}^", saved.branch)]), work.as_str());
}

#[rstest]
#[case::a_merge("merge", "MERGE_HEAD")]
#[case::a_rebase("rebase", "rebase-merge")]
#[case::a_cherry_pick("cherry-pick", "CHERRY_PICK_HEAD")]
fn an_operation_in_progress_in_a_slot_is_saved_and_ended(#[case] command: &str, #[case] sign: &str) {
    let place = place();
    let (slot, at) = (Slot::new(&place, 1), place.head());
    let second = next(&place);
    slot.ready("refrain/plan/1", &at);
    slot.commit("src/a.rs", "mine\n");
    let folder = slot.folder();
    let tool = Tool::new("git", folder.as_std_path()).env(&place.env).args([command, second.as_str()]);
    assert!(!tool.run().unwrap().status.success(), "a conflict");
    let saved = slot.ready("refrain/plan/2", &at).unwrap();
    assert!(place.git(&["show", &format!("{}:src/a.rs", saved.branch)]).contains("<<<<<<<"));
    assert!(!slot.git_dir().join(sign).exists());
}

#[test]
fn changes_hidden_from_git_by_flags_are_saved_too() {
    let place = place();
    let (slot, at) = (Slot::new(&place, 1), place.head());
    slot.ready("refrain/plan/1", &at);
    slot.git(&["update-index", "--skip-worktree", "src/a.rs"]);
    slot.git(&["update-index", "--assume-unchanged", "src/b.rs"]);
    slot.write("src/a.rs", "hidden\n");
    slot.write("src/b.rs", "hidden too\n");
    let saved = slot.ready("refrain/plan/2", &at).unwrap();
    assert_eq!(place.committed(&saved.branch), ["M src/a.rs", "M src/b.rs"]);
    slot.git(&["sparse-checkout", "set", "nothing"]);
    assert!(!slot.path("src/a.rs").exists());
    slot.ready("refrain/plan/3", &at);
    assert_eq!(slot.read("src/a.rs"), "fn a() {}\n", "all of the tree");
}

#[test]
fn content_that_no_branch_may_have_holds_a_slot_unchanged() {
    let place = place();
    let (slot, at) = (Slot::new(&place, 1), place.head());
    slot.ready("refrain/plan/1", &at);
    slot.write("key.pem", KEY);
    slot.write("src/a.rs", "half done\n");
    let reasons = slot.held("refrain/plan/2", &at);
    assert_eq!(reasons, ["key.pem: line 1 looks like a private key"]);
    assert_eq!((slot.read("key.pem"), slot.read("src/a.rs")), (KEY.to_owned(), "half done\n".to_owned()));
    fs::remove_file(slot.path("key.pem")).unwrap();
    slot.git(&["init", "-q", "nested"]);
    slot.write("nested/file", "x\n");
    assert_eq!(slot.held("refrain/plan/2", &at), ["nested/: it is a repository of its own"]);
    fs::remove_dir_all(slot.path("nested")).unwrap();
    assert!(slot.ready("refrain/plan/2", &at).is_some(), "by now it can be saved");
    assert_eq!(place.git(&["branch", "--list", "refrain/plan/2"]).len(), "+ refrain/plan/2".len());
}

#[test]
fn a_git_file_that_is_gone_or_broken_is_mended() {
    let place = place();
    let (slot, at) = (Slot::new(&place, 1), place.head());
    slot.ready("refrain/plan/1", &at);
    slot.write("target/app", "built\n");
    for broken in [None, Some("nonsense"), Some("gitdir: /nowhere\n"), Some("")] {
        slot.write("src/a.rs", "half done\n");
        fs::remove_file(slot.path(".git")).unwrap();
        if let Some(text) = broken {
            slot.write(".git", text);
        }
        let saved = slot.ready("refrain/plan/1", &at).unwrap();
        assert_eq!(place.committed(saved.commit.as_str()), ["M src/a.rs"], "{broken:?}");
        assert_eq!(slot.read("target/app"), "built\n");
    }
}

#[test]
fn a_slot_that_git_forgot_is_reattached_and_its_changes_are_saved() {
    let place = place();
    let (slot, at) = (Slot::new(&place, 1), place.head());
    slot.ready("refrain/plan/1", &at);
    slot.write("target/app", "built\n");
    slot.write("src/a.rs", "half done\n");
    let git_dir = slot.git_dir();
    fs::rename(slot.folder(), slot.beside.join("away")).unwrap();
    place.git(&["worktree", "prune"]);
    assert!(!git_dir.exists());
    fs::rename(slot.beside.join("away"), slot.folder()).unwrap();
    // Left by a repair that was killed.
    let mending = slot.beside.join("mending");
    place.git(&["worktree", "add", "-q", "--no-checkout", "--detach", mending.as_str()]);
    let saved = slot.ready("refrain/plan/2", &at).unwrap();
    assert_eq!(place.committed(saved.commit.as_str()), ["M src/a.rs"]);
    assert_eq!(slot.read("target/app"), "built\n");
    assert_eq!(place.git(&["worktree", "list"]).lines().count(), 2);
    // Its git folder lost its head.
    fs::remove_file(slot.git_dir().join("HEAD")).unwrap();
    assert_eq!(slot.standing(), SlotState::Unready);
    slot.ready("refrain/plan/3", &at);
}

#[test]
fn a_folder_that_is_gone_is_made_again() {
    let place = place();
    let (slot, at) = (Slot::new(&place, 1), place.head());
    slot.ready("refrain/plan/1", &at);
    fs::remove_dir_all(slot.folder()).unwrap();
    slot.ready("refrain/plan/1", &at);
    fs::remove_dir_all(slot.folder()).unwrap();
    fs::create_dir(slot.folder()).unwrap();
    slot.ready("refrain/plan/2", &at);
    assert_eq!(place.git(&["worktree", "list"]).lines().count(), 2);
}

#[test]
fn a_foreign_file_or_repository_holds_the_slot() {
    let place = place();
    let (slot, at) = (Slot::new(&place, 1), place.head());
    place.write_at(slot.folder(), "a file\n");
    assert_eq!(slot.held("refrain/plan/1", &at), ["it is no folder"]);
    fs::remove_file(slot.folder()).unwrap();
    fs::create_dir(slot.folder()).unwrap();
    slot.git(&["init", "-q"]);
    assert_eq!(slot.held("refrain/plan/1", &at), ["it has become a repository of its own"]);
    fs::remove_dir_all(slot.folder()).unwrap();
    let other = TestRepository::new();
    other.git(&["worktree", "add", "-q", "--detach", slot.folder().as_str()]);
    assert_eq!(slot.held("refrain/plan/1", &at), ["it belongs to another repository"]);
}

#[test]
fn a_slot_killed_while_it_was_made_leaves_nothing_to_save() {
    let place = place();
    let (slot, first) = (Slot::new(&place, 1), place.head());
    let second = next(&place);
    let begun = || place.write_at(slot.beside.join("begun"), "");
    // Killed before the first file, and in the middle of them.
    begun();
    place.git(&["worktree", "add", "-q", "--no-checkout", "--detach", slot.folder().as_str()]);
    assert_eq!(slot.standing(), SlotState::Unready);
    assert_eq!(slot.ready("refrain/plan/1", &first), None);
    begun();
    slot.write("src/a.rs", "fn a() { ne");
    slot.write("src/new.rs", "fn new() {}\n");
    slot.write("src/later.rs", "of a commit that is not asked for any more\n");
    place.write_at(slot.git_dir().join("index.lock"), "");
    assert_eq!(slot.standing(), SlotState::Unready);
    assert_eq!(slot.ready("refrain/plan/2", &second), None);
    assert_eq!(slot.read("src/a.rs"), "fn a() { next() }\n");
    assert!(!slot.path("src/later.rs").exists());
    // Killed by git itself in the middle of `worktree add`.
    let other = Slot::new(&place, 2);
    place.git(&[
        "worktree",
        "add",
        "-q",
        "--lock",
        "--reason",
        "initializing",
        "--detach",
        other.folder().as_str(),
    ]);
    fs::remove_dir_all(other.folder()).unwrap();
    assert_eq!(other.ready("refrain/plan/3", &second), None);
}

#[test]
fn a_git_that_is_killed_in_the_middle_of_the_files_is_followed_by_one_that_finishes() {
    let place = place();
    let (slot, first) = (Slot::new(&place, 1), place.head());
    place.write(".gitattributes", "zz.txt filter=die\n");
    place.write("zz.txt", "the last\n");
    let second = next(&place);
    for (branch, at) in [("refrain/plan/1", &first), ("refrain/plan/2", &second)] {
        slot.ready(branch, at);
        slot.ready("refrain/plan/0", &first);
        place.has_git_die();
        let killed = slot.try_ready("refrain/plan/3", &second, None);
        assert!(matches!(killed, Err(GitError::Failed { .. })), "{killed:?}");
        assert_eq!(slot.standing(), SlotState::Unready);
        place.lets_git_live();
        assert_eq!(slot.ready("refrain/plan/3", &second), None, "nothing of it is saved");
        place.git(&["worktree", "remove", "--force", slot.folder().as_str()]);
        place.git(&["branch", "-D", "refrain/plan/3"]);
        place.has_git_die();
        assert!(slot.try_ready("refrain/plan/3", &second, None).is_err(), "a fresh one");
        place.lets_git_live();
        slot.ready("refrain/plan/3", &second);
        place.git(&["worktree", "remove", "--force", slot.folder().as_str()]);
        place.git(&["branch", "-D", "refrain/plan/3"]);
    }
}

#[test]
fn many_are_made_ready_at_once() {
    let place = place();
    let (first, second) = (place.head(), next(&place));
    for (round, at) in [&first, &second].into_iter().enumerate() {
        std::thread::scope(|scope| {
            for number in 1..=4 {
                let place = &place;
                scope.spawn(move || {
                    Slot::new(place, number).ready(&format!("refrain/plan/{number}.{round}"), at);
                });
            }
        });
    }
    assert_eq!(place.git(&["worktree", "list"]).lines().count(), 5);
}

#[test]
fn an_index_or_a_head_that_cannot_be_read_is_mended() {
    let place = place();
    let (slot, at) = (Slot::new(&place, 1), place.head());
    for (file, number) in [("index", 1), ("HEAD", 2)] {
        slot.ready("refrain/plan/0", &at);
        slot.write("src/a.rs", "half done\n");
        place.write_at(slot.git_dir().join(file), "nonsense");
        let saved = slot.ready(&format!("refrain/plan/{number}"), &at).unwrap();
        assert_eq!(place.committed(saved.commit.as_str()), ["M src/a.rs"], "{file}");
    }
}

#[test]
fn a_branch_is_moved_only_where_that_was_said() {
    let place = place();
    let (slot, other, at) = (Slot::new(&place, 1), Slot::new(&place, 2), place.head());
    slot.ready("refrain/plan/1", &at);
    let work = slot.commit("work.rs", "work\n");
    let taken = other.try_ready("refrain/plan/1", &at, None);
    assert!(matches!(taken, Err(GitError::BranchTaken(_))), "{taken:?}");
    let ready = other.try_ready("refrain/plan/1", &at, Some(&work)).unwrap();
    assert_eq!(ready, ReadySlot::Ready { saved: None });
    assert_eq!(slot.standing(), SlotState::On { branch: None, head: Some(work) });
    slot.ready("refrain/plan/2", &at);
    // The user's own branch.
    let main = place.head();
    let taken = slot.try_ready("main", &main, None);
    assert!(matches!(taken, Err(GitError::BranchElsewhere { .. })), "{taken:?}");
    assert!(matches!(slot.try_ready("-x", &main, None), Err(GitError::BadBranch(_))));
    slot.ready("refrain/plan/3", &at);
}

#[test]
fn a_cancelled_slot_can_be_made_ready_again() {
    let mut place = place();
    let cancel = Cancel::new().unwrap();
    cancel.cancel();
    place.cancel = Some(cancel);
    let at = place.head();
    let stopped = Slot::new(&place, 1).try_ready("refrain/plan/1", &at, None);
    assert!(matches!(stopped, Err(GitError::Cancelled)), "{stopped:?}");
    place.cancel = None;
    Slot::new(&place, 1).ready("refrain/plan/1", &at);
}

#[test]
fn a_slot_is_removed_only_when_it_contains_nothing_of_value() {
    let place = place();
    let (slot, at) = (Slot::new(&place, 1), place.head());
    let repository = place.repository();
    slot.ready("refrain/plan/1", &at);
    slot.write("target/app", "built\n");
    slot.write("src/a.rs", "half done\n");
    repository.clear_slot(&slot.folder()).unwrap();
    assert!(!slot.path("target").exists() && slot.read("src/a.rs") == "half done\n");
    let kept = Removal::Kept("1 file is not committed".to_owned());
    assert_eq!(repository.remove_slot(&slot.folder(), &slot.beside).unwrap(), kept);
    slot.ready("refrain/plan/2", &at);
    slot.write("target/app", "built\n");
    assert_eq!(repository.remove_slot(&slot.folder(), &slot.beside).unwrap(), Removal::BranchKept);
    assert!(!slot.folder().exists());
    assert_eq!(repository.remove_slot(&slot.folder(), &slot.beside).unwrap(), Removal::BranchKept);
    assert_eq!(place.git(&["rev-parse", "refrain/plan/2"]), at.as_str());
}

#[test]
fn a_submodule_that_would_have_to_move_holds_it() {
    let place = place();
    let library = TestRepository::new();
    place.git(&["submodule", "add", "-q", library.root().as_str(), "library"]);
    place.git(&["commit", "-qm", "Library"]);
    let (slot, first) = (Slot::new(&place, 1), place.head());
    library.write("more.rs", "more\n");
    library.git(&["add", "."]);
    library.git(&["commit", "-qm", "More"]);
    place.git(&["-C", "library", "pull", "-q", "origin", "main"]);
    place.git(&["commit", "-qam", "Move"]);
    let second = place.head();
    slot.ready("refrain/plan/1", &first);
    slot.ready("refrain/plan/2", &second);
    slot.git(&["submodule", "update", "-q", "--init"]);
    slot.ready("refrain/plan/3", &second);
    assert_eq!(slot.held("refrain/plan/4", &first), ["library: a submodule that would have to move"]);
    slot.write("library/more.rs", "changed inside\n");
    assert_eq!(slot.held("refrain/plan/4", &second), ["library: it is a repository of its own"]);
}
