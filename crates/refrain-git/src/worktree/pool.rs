//! The worktrees of a pool, which tasks use one after the other. Preparing one for a branch writes only the
//! differences and keeps ignored files, because tools keep their caches there. Changes left in one are saved first,
//! on a branch of their own; if a branch cannot hold all of them, the worktree is held for the user to look at.
//!
//! No hook runs, and git's view of the files is not trusted: index flags that hide a change from git are removed
//! first. A note beside the worktree marks that it is being prepared. An agent starts only after the note is gone, so
//! a worktree with a note holds no work and is recreated. `refrain-store` assigns the worktrees.

use std::collections::BTreeMap;
use std::fs;

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::git::Oid;

use crate::Cancel;
use crate::candidate::Bounds;
use crate::candidate::integrity::LISTED;
use crate::commit::save::Saved;
use crate::error::{GitError, OnPath};
use crate::plumbing::disk::remove;
use crate::plumbing::git::Git;
use crate::plumbing::worktree::Worktree;
use crate::repository::Repository;
use crate::worktree::Removal;
use crate::worktree::slot_place::{Folder, folder, forget_mending, git_dir, mend};

/// Overrides of the user's configuration here, besides the general ones.
const SETTINGS: &[&str] = &[
    // All of the tree, regardless of the user's or an agent's sparse checkout.
    "-c",
    "core.sparseCheckout=false",
    // As many workers as cores, if there is enough to do.
    "-c",
    "checkout.workers=0",
    "-c",
    "checkout.thresholdForParallelism=100",
];

const WHY: &str = "refrain: begin a task";

/// A mark in a worktree's git folder: the commit of its head when its branch was deleted. That commit is not needed.
pub(crate) const SETTLED: &str = "refs/worktree/refrain-settled";

/// The worktree to prepare, and the task's branch.
#[derive(Clone, Copy, Debug)]
pub struct ReadyRequest<'a> {
    /// The worktree's folder. It must belong to the caller alone.
    pub folder: &'a Utf8Path,
    /// A folder beside it for a note and a private index.
    pub beside: &'a Utf8Path,
    pub branch: &'a str,
    pub at: &'a Oid,
    /// The branch's position, if it already exists and may be moved: its commits are kept elsewhere, or no longer
    /// needed.
    pub was: Option<&'a Oid>,
    pub bounds: Bounds<'a>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadySlot {
    Ready {
        /// The changes that were left in it, now on a branch.
        saved: Option<Saved>,
    },
    /// It contains something that only the user can remove, for these reasons; nothing in it was changed.
    Held(Vec<String>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SlotState {
    /// It is missing, unfinished, or broken: it has to be prepared.
    Unready,
    /// It is there, possibly with changes.
    On {
        /// The branch that is checked out; none if the head is detached.
        branch: Option<String>,
        /// Its head; none on a branch that was deleted.
        head: Option<Oid>,
    },
}

impl Repository {
    /// Prepares a worktree of the pool: the branch is checked out in it, at `at`, and of another task's files only
    /// ignored ones remain. Files that are right are not written again. It may be repeated after a kill at any point,
    /// and a worktree that is broken, or forgotten by git, is repaired.
    /// Errors: [`GitError::BranchTaken`] if the branch is neither at `at` nor at `was`, [`GitError::BranchElsewhere`]
    /// if it is checked out outside of the pool; [`GitError`] if git fails, and [`GitError::Cancelled`].
    pub fn ready(&self, request: ReadyRequest<'_>) -> Result<ReadySlot, GitError> {
        self.check_branch_name(request.branch)?;
        let begun = note(request.beside);
        let is_begun = begun.exists();
        forget_mending(self, request.beside)?;
        let there = match folder(self, request.folder)? {
            Folder::Nothing => {
                write_note(&begun)?;
                return self.make_slot(request);
            }
            Folder::Strange(reason) => return Ok(ReadySlot::Held(vec![reason])),
            Folder::Broken => {
                mend(self, request.folder, request.beside, request.at)?;
                self.there(request.folder)?
            }
            Folder::Whole => self.there(request.folder)?,
        };
        there.wake_slot(request.bounds.cancel)?;
        let saved = if is_begun {
            there.reset(request.at, request.bounds.cancel)?;
            None
        } else {
            let look = match there.try_to_look_in_slot(request.bounds.cancel)? {
                Ok(look) => look,
                Err(reason) => return Ok(ReadySlot::Held(vec![reason])),
            };
            let repositories = there.moving_repositories(&look, request.at)?;
            if !repositories.is_empty() {
                return Ok(ReadySlot::Held(repositories));
            }
            let saved = match there.save_slot(&look, request)? {
                Ok(saved) => saved,
                Err(reasons) => return Ok(ReadySlot::Held(reasons)),
            };
            write_note(&begun)?;
            match (&saved, &look.status.head) {
                (None, Some(head)) if look.status.entries.is_empty() => there.switch(head, request)?,
                _ => there.reset(request.at, request.bounds.cancel)?,
            }
            saved
        };
        if request.folder.join(".refrain").symlink_metadata().is_ok() {
            // The notes of the previous task; the project's own files there stay.
            there.git().output(["clean", "-ffdqx", "--", ".refrain"], &[])?;
        }
        self.settle(&there, request, saved)
    }

    /// The state of a worktree of the pool; folder and `beside` are as in [`ReadyRequest`].
    pub fn standing(&self, at: &Utf8Path, beside: &Utf8Path) -> Result<SlotState, GitError> {
        match folder(self, at)? {
            Folder::Whole if !note(beside).exists() => {
                let there = self.there(at)?;
                Ok(SlotState::On { branch: there.current_branch()?, head: there.reference("HEAD")? })
            }
            Folder::Nothing | Folder::Whole | Folder::Broken | Folder::Strange(_) => Ok(SlotState::Unready),
        }
    }

    /// Sets the files of this unchanged worktree to those of a tree. The head stays where it is: the differences are
    /// uncommitted changes, as they were at the last look.
    pub fn lay_out(&self, tree: &Oid) -> Result<(), GitError> {
        let git = self.git().to_its_end();
        git.output(["read-tree", "-m", "-u", "HEAD", tree.as_str()], &[])?;
        git.output(["read-tree", "HEAD"], &[])?;
        // Its exit code says whether some differ.
        git.run(["update-index", "-q", "--refresh"], &[]).map(drop)
    }

    /// Deletes branches that are no longer needed, each with its position. Worktrees of the pool for which `takes`
    /// grants the right are then at the commits of their branches, which count as settled. A branch that has moved,
    /// or is checked out elsewhere, is kept.
    pub fn retire_branches<T>(
        &self,
        branches: &BTreeMap<String, Oid>,
        takes: impl Fn(&Worktree) -> Option<T>,
    ) -> Result<(), GitError> {
        let (mut gone, mut held) = (branches.clone(), Vec::new());
        if gone.is_empty() {
            return Ok(());
        }
        let mut left = Vec::new();
        for listed in self.worktrees()? {
            let Some((branch, at)) = listed.branch.as_ref().and_then(|it| gone.get_key_value(it)) else {
                continue;
            };
            let (branch, at) = (branch.clone(), at.clone());
            if let Some(right) = takes(&listed)
                && let there = self.there(&listed.path)?
                // The previous task may have left the branch.
                && there.current_branch()?.as_ref() == Some(&branch)
                && there.reference("HEAD")?.as_ref() == Some(&at)
            {
                held.push(right);
                left.push((there, at));
            } else {
                gone.remove(&branch);
            }
        }
        let leave = |(there, at): &(Self, Oid)| {
            // All worktrees see the references of each by the name of its git folder (gitglossary(7), per-worktree
            // ref).
            let its = format!("worktrees/{}", there.git_dir().file_name().unwrap_or_default());
            settling(&format!("{its}/{SETTLED}"), &format!("{its}/HEAD"), at)
        };
        let order = |(name, at): (&String, &Oid)| format!("delete refs/heads/{name} {at}\n");
        let all: String = left.iter().map(leave).chain(gone.iter().map(order)).collect();
        let done = Git::run(self.git(), ["update-ref", "--stdin"], all.as_bytes())?;
        if !done.status.success() {
            // A transaction fails as a whole if one reference has moved: settle them one by one.
            for (there, at) in &left {
                there.settle_at(at)?;
            }
            for (name, at) in &gone {
                self.drop_reference(&format!("refs/heads/{name}"), at)?;
            }
        }
        Ok(())
    }

    /// Detaches from the branch at its commit, which counts as settled.
    fn settle_at(&self, at: &Oid) -> Result<(), GitError> {
        let orders = settling(SETTLED, "HEAD", at);
        Git::output(self.git(), ["update-ref", "--stdin"], orders.as_bytes()).map(drop)
    }

    /// Content worth keeping in a worktree of the pool: uncommitted changes, commits on no branch, and operations in
    /// progress. It is only read.
    pub fn slot_value(&self, at: &Utf8Path, beside: &Utf8Path) -> Result<Vec<String>, GitError> {
        if note(beside).exists() {
            return Ok(Vec::new());
        }
        match folder(self, at)? {
            Folder::Nothing => Ok(Vec::new()),
            Folder::Strange(reason) => Ok(vec![reason]),
            Folder::Broken => {
                Ok(vec!["git's record of it is gone, so what is new in it is not known".to_owned()])
            }
            Folder::Whole => {
                let there = self.there(at)?;
                let mut reasons = match there.try_to_look_in_slot(None)? {
                    Ok(look) => look.reasons(),
                    Err(reason) => vec![reason],
                };
                if there.holds_repositories()? {
                    reasons.push("it has submodules, whose commits or files may be nowhere else".to_owned());
                }
                Ok(reasons)
            }
        }
    }

    /// Removes ignored files in a worktree of the pool: caches and build results.
    pub fn clear_slot(&self, at: &Utf8Path) -> Result<(), GitError> {
        match folder(self, at)? {
            Folder::Whole => self.there(at)?.git().output(["clean", "-ffdqX"], &[]).map(drop),
            Folder::Nothing | Folder::Broken | Folder::Strange(_) => Ok(()),
        }
    }

    /// Removes a worktree of the pool, unless it contains something worth keeping; branches stay.
    pub fn remove_slot(&self, at: &Utf8Path, beside: &Utf8Path) -> Result<Removal, GitError> {
        if let Folder::Whole = folder(self, at)? {
            self.there(at)?.wake_slot(None)?;
        }
        let value = self.slot_value(at, beside)?;
        if let Some(reason) = value.into_iter().next() {
            return Ok(Removal::Kept(reason));
        }
        if self.listed(at)?.is_some() {
            self.worktrees_to_change().remove_whatever(at)?;
        }
        Ok(Removal::BranchKept)
    }

    /// The worktree of the pool in a folder. Its `.git` file locates it, without asking git.
    pub fn there(&self, at: &Utf8Path) -> Result<Self, GitError> {
        // A configuration of its own may say that its files are elsewhere.
        let plain = |dir: &Utf8PathBuf| dir.join("config.worktree").symlink_metadata().is_err();
        match git_dir(self, at).filter(plain) {
            Some(git_dir) => Ok(self.beside(at, git_dir)),
            None => Ok(Self::open(at, self.env())?.guarded_like(self)),
        }
    }

    /// Creates a slot in an empty place. The branch is nearly always new and unused: then the worktree starts on it.
    fn make_slot(&self, request: ReadyRequest<'_>) -> Result<ReadySlot, GitError> {
        let ReadyRequest { folder, branch, at, was, bounds, .. } = request;
        let is_new = was.is_none() && self.make_reference(&format!("refs/heads/{branch}"), at, WHY)?;
        self.add_slot(request, is_new.then_some(branch))?;
        let there = self.there(folder)?;
        there.fill(at, bounds.cancel)?;
        match is_new {
            true => {
                remove(&note(request.beside))?;
                Ok(ReadySlot::Ready { saved: None })
            }
            false => self.settle(&there, request, None),
        }
    }

    fn add_slot(&self, request: ReadyRequest<'_>, branch: Option<&str>) -> Result<(), GitError> {
        let ReadyRequest { folder, at, bounds, .. } = request;
        let add = || self.add_empty_worktree(self.git().until(bounds.cancel), folder, (at, branch));
        match add() {
            // Leftovers of a git that was killed while making it.
            Err(GitError::Failed { .. }) if self.listed(request.folder)?.is_some() => {
                self.worktrees_to_change().remove_half_made(request.folder)?;
                add()
            }
            done => done,
        }
    }

    fn switch(&self, head: &Oid, request: ReadyRequest<'_>) -> Result<(), GitError> {
        let read = ["read-tree", "-m", "-u", "--no-recurse-submodules", head.as_str(), request.at.as_str()];
        let git = self.git().until(request.bounds.cancel);
        let before = git.output(LISTED, &[])?;
        let done = git.run(SETTINGS.iter().copied().chain(read), &[])?;
        // Files in the way are ignored or newer than the last look: no process works here, so they are overwritten.
        match done.status.success() {
            true => self.verify_new_files(git, (self.root(), &before), request.at),
            false => self.reset(request.at, request.bounds.cancel),
        }
    }

    /// Makes it contain the commit's files and no others, except ignored ones.
    fn reset(&self, at: &Oid, cancel: Option<&Cancel>) -> Result<(), GitError> {
        self.fill(at, cancel)?;
        self.git().until(cancel).output(["clean", "-ffdq"], &[]).map(drop)
    }

    fn fill(&self, at: &Oid, cancel: Option<&Cancel>) -> Result<(), GitError> {
        let read = ["read-tree", "--reset", "-u", "--no-recurse-submodules", at.as_str()];
        let git = self.git().until(cancel);
        git.output(SETTINGS.iter().copied().chain(read), &[])?;
        self.verify_new_files(git, (self.root(), &[]), at)
    }

    /// The files are written: sets the branch and the head, and removes the note.
    fn settle(
        &self,
        there: &Self,
        request: ReadyRequest<'_>,
        saved: Option<Saved>,
    ) -> Result<ReadySlot, GitError> {
        let ReadyRequest { branch, at, was, .. } = request;
        let name = format!("refs/heads/{branch}");
        // It is nearly always new and unused.
        if was.is_some() || !self.make_reference(&name, at, WHY)? {
            let head = self.branch_head(branch)?;
            if let Some(head) = &head {
                if head != at && Some(head) != was {
                    return Err(GitError::BranchTaken(branch.to_owned()));
                }
                let pool = request.beside.parent().unwrap_or(request.beside);
                if let Some(by) = self.leave_branch(branch, head, Some(request.folder), pool)? {
                    return Err(GitError::BranchElsewhere { branch: branch.to_owned(), by });
                }
            }
            if !self.move_reference(&name, head.as_ref(), at, WHY)? {
                return Err(GitError::BranchTaken(branch.to_owned()));
            }
        }
        there.git().output(["symbolic-ref", "-m", WHY, "HEAD", &name], &[])?;
        remove(&note(request.beside))?;
        Ok(ReadySlot::Ready { saved })
    }

    /// Detaches all worktrees of the pool, except one, from a branch. Returns another one that has it checked out.
    fn leave_branch(
        &self,
        branch: &str,
        at: &Oid,
        but: Option<&Utf8Path>,
        pool: &Utf8Path,
    ) -> Result<Option<Utf8PathBuf>, GitError> {
        let real = |path: &Utf8Path| path.canonicalize_utf8().unwrap_or_else(|_| path.to_owned());
        let (pool, but) = (real(pool), but.map(real));
        for listed in self.worktrees()? {
            if listed.branch.as_deref() != Some(branch) || Some(&listed.path) == but.as_ref() {
                continue;
            }
            if !listed.path.starts_with(&pool) {
                return Ok(Some(listed.path));
            }
            if let Ok(there) = self.there(&listed.path) {
                there.settle_at(at)?;
            }
        }
        Ok(None)
    }
}

/// Commands for `git update-ref` that detach a worktree from its branch at a commit, which counts as settled.
fn settling(mark: &str, head: &str, at: &Oid) -> String {
    format!("update {mark} {at}\noption no-deref\nupdate {head} {at}\n")
}

/// The note that marks a worktree as being prepared.
fn note(beside: &Utf8Path) -> Utf8PathBuf {
    beside.join("begun")
}

/// It need not survive a power loss: without it, leftovers are saved, although they are worthless.
fn write_note(path: &Utf8Path) -> Result<(), GitError> {
    fs::File::create(path).map(drop).on("write", path)
}
