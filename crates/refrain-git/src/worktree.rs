//! A loop's own worktree: creating it, and removing it only when nothing is lost.

pub(crate) mod checkout;
pub(crate) mod clean;
pub(crate) mod clean_git;
pub(crate) mod pool;
pub(crate) mod slot_place;
pub(crate) mod slot_state;
pub(crate) mod worktree_git;

use std::collections::HashMap;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::git::{Dirty, Oid, RepoPath, path_names};

use crate::candidate::submodules::{has_entries, look};
use crate::commit::choice::is_work;
use crate::error::{GitError, OnPath};
use crate::operation;
use crate::plumbing::disk::text;
use crate::plumbing::git::{Git, said};
use crate::plumbing::worktree::{Worktree, real};
use crate::plumbing::worktree_list::has_modules;
use crate::repository::Repository;
use crate::worktree::worktree_git::is_half_made;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Removal {
    /// It is gone, and so is its branch, which had no commit of its own.
    Removed,
    /// It is gone; the branch is kept because it has commits.
    BranchKept,
    /// It is kept, for this reason: `it holds 2 files that are in no commit: a.txt, b.txt`.
    Kept(String),
}

/// How many of the files are named that a worktree is kept for.
const MOST_NAMED: usize = 3;

/// The mode of a submodule in an index, and the space after it.
const SUBMODULE: &[u8] = b"160000 ";

/// Why a locked worktree is kept, with git's own reason.
fn locked(reason: &str) -> String {
    if reason.is_empty() { "it is locked".to_owned() } else { format!("it is locked: {reason}") }
}

impl Repository {
    /// Creates a worktree at `path` on the new branch `branch`, starting at `from`. Missing parent folders are
    /// created with access for this user only. An existing worktree with that branch is reused, an unfinished one is
    /// made again: so it may be repeated. A branch of that name at `from` that is checked out nowhere is taken as the
    /// one begun earlier: the caller has checked before that the name was free.
    /// Errors: [`GitError::Occupied`] if `path` holds something else; those of [`Self::check_branch_free`];
    /// [`GitError::Failed`] with git's message.
    pub fn add_worktree(&self, path: &Utf8Path, branch: &str, from: &Oid) -> Result<(), GitError> {
        self.check_branch_name(branch)?;
        {
            let worktrees = self.worktrees_to_change();
            let mut registered = worktrees.at(path)?;
            if registered.as_ref().is_some_and(|listed| listed.is_half_made(branch)) {
                worktrees.remove_half_made(path)?;
                registered = None;
            }
            if let Some(listed) = &registered
                && listed.branch.as_deref() == Some(branch)
                && path.join(".git").is_file()
            {
                return Ok(());
            }
            let is_empty = fs::read_dir(path).map_or(true, |mut entries| entries.next().is_none());
            if !is_empty || path.is_file() {
                return Err(GitError::Occupied(path.to_owned()));
            }
            make_parent(path)?;
            match self.branch_head(branch)? {
                None => self.make_branch(branch, from)?,
                // Started once, and killed between creating the branch and the files: the branch is at its start,
                // nothing is lost.
                Some(head) if head == *from && worktrees.other_on(branch, path)?.is_none() => {}
                Some(_) => return Err(GitError::BranchTaken(branch.to_owned())),
            }
            worktrees.make(path, branch, registered.is_some())?;
        }
        self.fill_new(path, from)
    }

    /// Writes the files of a new worktree, without the lock: that takes time, and runs the user's hooks.
    fn fill_new(&self, path: &Utf8Path, head: &Oid) -> Result<(), GitError> {
        let done = self.check_out_new(path, head);
        if done.is_err() && is_half_made(path) {
            // As git does. The next call removes it if this fails.
            let _ = self.worktrees_to_change().remove_half_made(path);
        }
        done
    }

    fn make_branch(&self, branch: &str, at: &Oid) -> Result<(), GitError> {
        let (name, nothing) = (format!("refs/heads/{branch}"), "0".repeat(at.as_str().len()));
        let why = format!("branch: Created from {at}");
        self.git().output(["update-ref", "-m", &why, &name, at.as_str(), &nothing], &[]).map(drop)
    }

    /// Recreates a worktree whose folder is gone from its branch as that is now. `last` is the branch's last known
    /// commit.
    /// Errors: [`GitError::BranchGone`] if the branch does not exist, [`GitError::BranchInUse`] if it is checked out
    /// elsewhere; [`GitError::Failed`] with git's message.
    pub fn restore_worktree(
        &self,
        path: &Utf8Path,
        branch: &str,
        last: Option<&Oid>,
    ) -> Result<(), GitError> {
        let Some(head) = self.branch_head(branch)? else {
            return Err(GitError::BranchGone { branch: branch.to_owned(), last: last.cloned() });
        };
        {
            let worktrees = self.worktrees_to_change();
            if let Some(by) = worktrees.other_on(branch, path)? {
                return Err(GitError::BranchInUse { branch: branch.to_owned(), by });
            }
            if is_half_made(path) {
                worktrees.remove_half_made(path)?;
            }
            make_parent(path)?;
            // Git may still list the worktree whose folder is gone.
            worktrees.make(path, branch, true)?;
        }
        self.fill_new(path, &head)
    }

    /// Removes the worktree at `path` if nothing is lost by that: no file that is changed, staged or new and not
    /// ignored and not `prepared` by its setup, nothing in progress, every commit on a branch, no repository inside it. `branch`, which was made with
    /// it, goes with it if it is still at `began`; no other branch does, even if it is checked out there now. One
    /// that is gone already counts as removed, so it may be repeated.
    pub fn remove_worktree(
        &self,
        path: &Utf8Path,
        branch: &str,
        began: &Oid,
        prepared: &[Dirty],
    ) -> Result<Removal, GitError> {
        let Some(listed) = self.listed(path)? else {
            if path.symlink_metadata().is_err() {
                // An earlier call removed it but was killed before it reported so.
                return self.drop_branch(branch, path, began);
            }
            return Ok(Removal::Kept("it is no worktree of this repository any more".to_owned()));
        };
        if let Some(reason) = listed.locked {
            return Ok(Removal::Kept(locked(&reason)));
        }
        if !path.exists() {
            return match self.submodule_commits_left(&listed.path) {
                Some(reason) => Ok(Removal::Kept(reason)),
                None => {
                    self.forget_worktree(&listed.path).and_then(|_| self.drop_branch(branch, path, began))
                }
            };
        }
        let value = self.worktree_value(path, prepared)?;
        let lost = value.map_or_else(|| self.remove_by_force(&listed.path), |it| Ok(Some(it)));
        match lost? {
            Some(reason) => Ok(Removal::Kept(reason)),
            None => self.drop_branch(branch, path, began),
        }
    }

    /// Removes the worktree at `path` with every file in it: the caller has saved their content. One that is locked, or has
    /// submodules, stays: returns why.
    pub fn remove_saved_worktree(&self, path: &Utf8Path) -> Result<Option<String>, GitError> {
        let Some(listed) = self.listed(path)? else {
            return Ok(Some("it is no worktree of this repository any more".to_owned()));
        };
        match listed.locked {
            Some(reason) => Ok(Some(locked(&reason))),
            None => self.remove_by_force(&listed.path),
        }
    }

    /// Removes it with every file in it, unless it has submodules; otherwise returns why it is kept. Without force git would
    /// compare its files, outside of the sandbox, with filters that run what an agent can change.
    fn remove_by_force(&self, path: &Utf8Path) -> Result<Option<String>, GitError> {
        if Self::open(path, self.env())?.guarded_like(self).holds_repositories()? {
            return Ok(Some("it has submodules, whose commits or files may be nowhere else".to_owned()));
        }
        self.worktrees_to_change().remove(&["--force", path.as_str()]).map(|()| None)
    }

    /// Makes a worktree without files, its head at a commit, or on a branch that is there. No hook runs, so it is
    /// short, and others may wait for it.
    pub(crate) fn add_empty_worktree(
        &self,
        git: Git<'_>,
        path: &Utf8Path,
        (at, branch): (&Oid, Option<&str>),
    ) -> Result<(), GitError> {
        let worktrees = self.worktrees_to_change();
        match branch {
            Some(branch) => worktrees.add(git, &["--force", path.as_str(), branch]),
            None => worktrees.add(git, &["--force", "--detach", path.as_str(), at.as_str()]),
        }
    }

    /// Has git forget a worktree whose folder is gone; its branch stays. A locked worktree stays listed.
    pub fn forget_worktree(&self, path: &Utf8Path) -> Result<Removal, GitError> {
        if path.exists() {
            return Ok(Removal::Kept("its folder is there again".to_owned()));
        }
        // Git requires `--force` for a missing folder, too.
        self.worktrees_to_change().remove(&["--force", path.as_str()])?;
        Ok(Removal::BranchKept)
    }

    /// What would be lost with the worktree at a path; none if nothing would.
    pub fn worktree_value(&self, path: &Utf8Path, prepared: &[Dirty]) -> Result<Option<String>, GitError> {
        let there = match Self::open(path, self.env()) {
            Ok(there) => there.guarded_like(self),
            Err(GitError::NotARepository(_) | GitError::Bare(_)) => {
                return Ok(Some("its .git file is gone".to_owned()));
            }
            Err(other) => return Err(other),
        };
        if let Some(operation) = operation::in_progress(there.git_dir()) {
            return Ok(Some(format!("a {operation} is in progress in it")));
        }
        let status = match look(&there, there.git()) {
            Err(error) if error.is_of_objects() => return Ok(Some(error.to_string())),
            status => status?,
        };
        let changed = status.entries.iter().filter(|entry| is_work(entry)).map(|entry| entry.repo_path());
        let paths = there.unprepared(changed.collect(), prepared);
        if !paths.is_empty() {
            let files = match paths.len() {
                1 => "1 file that is".to_owned(),
                many => format!("{many} files that are"),
            };
            return Ok(Some(format!("it holds {files} in no commit: {}", path_names(&paths, MOST_NAMED))));
        }
        let Some(head) = status.head else { return Ok(None) };
        let holding = [
            "for-each-ref",
            "--count=1",
            "--contains",
            head.as_str(),
            "refs/heads",
            "refs/tags",
            "refs/remotes",
        ];
        let is_held = !there.git().output(holding, &[])?.is_empty();
        Ok((!is_held).then(|| format!("its head {} is on no branch", head.short())))
    }

    /// Those of the paths that are not as the setup of this worktree left them: it can make those again.
    pub fn unprepared(&self, mut paths: Vec<RepoPath>, prepared: &[Dirty]) -> Vec<RepoPath> {
        let prepared: HashMap<_, _> = prepared.iter().map(|it| (&it.path, it.stamp)).collect();
        let is_as_prepared = |path: &RepoPath| {
            prepared.get(path).is_some_and(|stamp| stamp.is_some() && *stamp == self.stamp(&path.to_bytes()))
        };
        paths.retain(|path| !is_as_prepared(path));
        paths
    }

    /// The content that is lost with the git folder of a worktree whose own folder is gone: git does not check it.
    pub(crate) fn submodule_commits_left(&self, path: &Utf8Path) -> Option<String> {
        let dir = self.git_dir_of(path).filter(|dir| has_modules(dir))?;
        Some(format!("its folder is gone, but the commits of its submodules are in {dir}"))
    }

    /// The git folder of the worktree at a path, even if the path does not exist.
    pub(crate) fn git_dir_of(&self, path: &Utf8Path) -> Option<Utf8PathBuf> {
        let all = self.common_dir().join("worktrees").read_dir_utf8().ok()?;
        let own = real(path).join(".git");
        let is_its = |dir: &Utf8PathBuf| text(&dir.join("gitdir")).is_ok_and(|file| file.trim_end() == own);
        all.filter_map(Result::ok).map(|entry| entry.path().to_owned()).find(is_its)
    }

    /// Whether this worktree or its own git folder contains git folders of submodules, or files in the place of one, which
    /// would be removed with it.
    pub(crate) fn holds_repositories(&self) -> Result<bool, GitError> {
        if has_modules(self.git_dir()) {
            return Ok(true);
        }
        // Git has no option for submodules only, so the index is read whole: if it is too long, nothing is removed.
        let printed = self.git().output(["ls-files", "--stage", "-z"], &[])?;
        let mut submodules = printed.split(|byte| *byte == 0).filter(|line| line.starts_with(SUBMODULE));
        Ok(submodules.any(|line| {
            let path = line.splitn(2, |byte| *byte == b'\t').nth(1).unwrap_or_default();
            has_entries(&self.on_disk(path))
        }))
    }

    /// A branch that is where it began holds no commits of its own; if it has been checked out meanwhile, it stays.
    fn drop_branch(&self, branch: &str, path: &Utf8Path, began: &Oid) -> Result<Removal, GitError> {
        match self.branch_head(branch)? {
            None => return Ok(Removal::Removed),
            Some(head) if head != *began || self.checked_out(branch, path)?.is_some() => {
                return Ok(Removal::BranchKept);
            }
            Some(_) => {}
        }
        // Only if it still exists.
        let refname = format!("refs/heads/{branch}");
        let done = self.git().run(["update-ref", "-d", &refname, began.as_str()], &[])?;
        match done.status.success() {
            true => Ok(Removal::Removed),
            false => {
                Err(GitError::Failed { command: format!("git update-ref -d {refname}"), said: said(&done) })
            }
        }
    }

    /// Which other worktree than the one at `path` has the branch checked out.
    pub fn checked_out(&self, branch: &str, path: &Utf8Path) -> Result<Option<Utf8PathBuf>, GitError> {
        self.worktrees_to_list().other_on(branch, path)
    }

    pub(crate) fn listed(&self, path: &Utf8Path) -> Result<Option<Worktree>, GitError> {
        self.worktrees_to_list().at(path)
    }

    /// All worktrees of the repository, the main one first.
    pub fn worktrees(&self) -> Result<Vec<Worktree>, GitError> {
        self.worktrees_to_list().list()
    }
}

/// Creates the parent folder of a worktree, accessible by this user only.
fn make_parent(path: &Utf8Path) -> Result<(), GitError> {
    let Some(above) = path.parent() else { return Ok(()) };
    DirBuilder::new().recursive(true).mode(0o700).create(above).on("create", above)
}
