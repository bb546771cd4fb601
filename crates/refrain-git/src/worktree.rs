//! A worktree of a loop's own: made, and removed only when nothing is lost.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::git::Oid;

use crate::error::{GitError, OnPath};
use crate::git::said;
use crate::operation;
use crate::repository::{Repository, is_refrains};
use crate::status;

/// What became of a worktree that was to be removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Removal {
    /// It is gone, and so is its branch, which held nothing that another does not.
    Removed,
    /// It is gone; the branch is kept, as it holds commits.
    BranchKept,
    /// It is kept, for this reason: `it has 2 files that are not committed`.
    Kept(String),
}

/// A worktree, as `git worktree list` tells it.
#[derive(Debug, Default)]
struct Listed {
    path: Utf8PathBuf,
    branch: Option<String>,
    locked: Option<String>,
}

impl Repository {
    /// Makes a worktree at `path` on the new branch `branch`, which begins at `from`. The folders above it are made where
    /// they are missing, for nobody else to look into. One that is there already with that branch is taken as it is, so it
    /// may be repeated.
    ///
    /// # Errors
    /// [`GitError::Occupied`] where something else is there; those of [`Self::check_branch_free`];
    /// [`GitError::Failed`] with what git says.
    pub fn add_worktree(&self, path: &Utf8Path, branch: &str, from: &Oid) -> Result<(), GitError> {
        self.check_branch_name(branch)?;
        let registered = self.listed(path)?;
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
        if let Some(above) = path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(above).on("create", above)?;
        }
        // Begun once, and killed between the branch and the files: the branch is where it began, nothing is lost.
        let begun = self.branch_head(branch)?;
        if begun.as_ref().is_some_and(|head| head != from) || (begun.is_some() && registered.is_none()) {
            return Err(GitError::BranchTaken(branch.to_owned()));
        }
        let path = path.as_str();
        let _ = match begun {
            Some(_) => self.git().output(["worktree", "add", "--quiet", "--force", path, branch], &[])?,
            None => {
                let new = ["worktree", "add", "--quiet", "--no-track", "-b", branch, path, from.as_str()];
                self.git().output(new, &[])?
            }
        };
        Ok(())
    }

    /// Removes the worktree at `path` if nothing is lost by that: no file that is changed, staged or new and not ignored,
    /// nothing in progress, every commit on a branch. Its branch goes with it where it is still at `began`.
    ///
    /// # Errors
    /// [`GitError`] where git cannot be asked.
    pub fn remove_worktree(&self, path: &Utf8Path, began: &Oid) -> Result<Removal, GitError> {
        let Some(listed) = self.listed(path)? else {
            return Ok(Removal::Kept("it is no worktree of this repository any more".to_owned()));
        };
        if let Some(reason) = listed.locked {
            let reason = if reason.is_empty() { String::new() } else { format!(": {reason}") };
            return Ok(Removal::Kept(format!("it is locked{reason}")));
        }
        if path.exists()
            && let Some(reason) = self.what_would_be_lost(path)?
        {
            return Ok(Removal::Kept(reason));
        }
        self.git().output(["worktree", "remove", "--force", listed.path.as_str()], &[])?;
        self.drop_branch(listed.branch.as_deref(), began)
    }

    fn what_would_be_lost(&self, path: &Utf8Path) -> Result<Option<String>, GitError> {
        let there = match Self::open(path, self.env()) {
            Ok(there) => there,
            Err(GitError::NotARepository(_) | GitError::Bare(_)) => {
                return Ok(Some("its .git file is gone".to_owned()));
            }
            Err(other) => return Err(other),
        };
        if let Some(operation) = operation::in_progress(there.git_dir()) {
            return Ok(Some(format!("a {operation} is in progress in it")));
        }
        let status = status::look(there.git(), false)?;
        let changed = status.entries.iter().filter(|entry| !is_refrains(&entry.path)).count();
        if changed > 0 {
            let files = if changed == 1 { "1 file that is" } else { &format!("{changed} files that are") };
            return Ok(Some(format!("it has {files} not committed")));
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

    /// A branch that is where it began holds nothing of its own.
    fn drop_branch(&self, branch: Option<&str>, began: &Oid) -> Result<Removal, GitError> {
        let Some(branch) = branch else { return Ok(Removal::Removed) };
        if self.branch_head(branch)?.as_ref() != Some(began) {
            return Ok(Removal::BranchKept);
        }
        // Only if it still is there.
        let refname = format!("refs/heads/{branch}");
        let done = self.git().run(["update-ref", "-d", &refname, began.as_str()], &[])?;
        match done.status.success() {
            true => Ok(Removal::Removed),
            false => {
                Err(GitError::Failed { command: format!("git update-ref -d {refname}"), said: said(&done) })
            }
        }
    }

    fn listed(&self, path: &Utf8Path) -> Result<Option<Listed>, GitError> {
        let printed = self.git().output(["worktree", "list", "--porcelain", "-z"], &[])?;
        let real = |path: &Utf8Path| path.canonicalize_utf8().unwrap_or_else(|_| path.to_owned());
        // The folder may be gone, but what it lay in is not.
        let asked = match (path.parent(), path.file_name()) {
            (Some(above), Some(name)) if !path.exists() => real(above).join(name),
            _ => real(path),
        };
        Ok(parse(&printed).into_iter().find(|listed| listed.path == asked || listed.path == path))
    }
}

fn parse(printed: &[u8]) -> Vec<Listed> {
    let mut all = Vec::new();
    for line in printed.split(|byte| *byte == 0) {
        let line = String::from_utf8_lossy(line);
        let (key, value) = line.split_once(' ').unwrap_or((line.as_ref(), ""));
        if key == "worktree" {
            all.push(Listed { path: value.into(), ..Listed::default() });
        } else if let Some(last) = all.last_mut() {
            match key {
                "branch" => last.branch = value.strip_prefix("refs/heads/").map(str::to_owned),
                "locked" => last.locked = Some(value.to_owned()),
                _ => {}
            }
        }
    }
    all
}
