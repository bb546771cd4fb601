//! The state of a worktree before a loop begins.

use refrain_core::git::{Base, Dirty, Operation, RepoPath};

use crate::candidate::status::{Entry, HIDDEN, Status, has_conflicts, hidden};
use crate::candidate::submodules::look;
use crate::commit::choice::is_work;
use crate::error::GitError;
use crate::repository::Repository;

/// How many changed or new files a loop accepts at its start. The user's uncommitted files are remembered path by
/// path for the lifetime of the loop; more than this means that .gitignore lacks an entry.
const MOST_DIRTY: usize = 20_000;

impl Repository {
    /// The state before a loop begins: the head, the branch, and every path that is changed, staged or new. It takes
    /// no lock and changes nothing.
    /// Errors: [`GitError::TooManyChanges`] beyond 20,000 paths; otherwise if git cannot be run.
    pub fn survey(&self) -> Result<Base, GitError> {
        let status = look(self, self.git())?;
        self.memory().clean = status.head.clone().filter(|_| status.entries.is_empty());
        let operation = self.operation().or_else(|| has_conflicts(&status).then_some(Operation::Merge));
        let Status { head, branch, entries } = status;
        let entries: Vec<_> = entries.into_iter().filter(is_work).collect();
        if entries.len() > MOST_DIRTY {
            return Err(GitError::TooManyChanges { most: MOST_DIRTY });
        }
        let dirty = entries.iter().map(|entry| self.dirty(entry)).collect();
        Ok(Base { head, branch, dirty, operation, ..Base::default() })
    }

    /// The paths whose changes git ignores because of an index flag.
    pub fn hidden_paths(&self) -> Result<Vec<RepoPath>, GitError> {
        let printed = self.git().output(HIDDEN, &[])?;
        Ok(hidden(&printed).map(|(_, path)| RepoPath::from_bytes(path)).collect())
    }

    fn dirty(&self, entry: &Entry) -> Dirty {
        Dirty { path: entry.repo_path(), stamp: self.stamp(&entry.path) }
    }
}
