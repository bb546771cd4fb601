//! What a runner needs to be found, and to be the only one: its journal, its locks and its doorbell. They are written back if they
//! are deleted.

use std::sync::Arc;
use std::time::Duration;

use refrain_core::Fold;
use refrain_store::journal::Durability;
use refrain_store::{Doorbell, Journal, JournalError};
use tokio::time::sleep;

use super::Drive;
use crate::EngineError;
use crate::blocking::blocking;

/// How long whoever deletes a folder has to get through: what is made in it meanwhile would keep the folder from going.
pub(crate) const SETTLE: Duration = Duration::from_millis(50);

impl Drive<'_> {
    /// Looks after its own files: something happened to them, or they are watched from here on.
    pub(super) async fn keep_files(&mut self) -> Result<(), EngineError> {
        if !self.watch.is_armed() {
            let dir = self.journal.dir();
            let kept = [dir.journal(), dir.runner_lock(), dir.doorbell(), self.locks.worktree_file()];
            self.watch.arm(&kept, &[]);
        }
        if !self.is_whole() {
            sleep(SETTLE).await;
        }
        keep_lock(&self.journal)?;
        if !self.journal.is_in_place() {
            self.commit(Durability::Synced).await?;
        }
        if self.door_was_gone() {
            self.look_again = true;
        }
        self.keep_worktree().await
    }

    fn is_whole(&self) -> bool {
        self.journal.is_in_place() && self.locks.has_worktree() && Doorbell::is_in_place(self.journal.dir())
    }

    /// Its share in the worktree, unless the project was moved: then the lock went with it.
    pub(super) async fn keep_worktree(&self) -> Result<(), EngineError> {
        if self.locks.has_worktree() || !self.journal.dir().exists() {
            return Ok(());
        }
        let (locks, spec) = (Arc::clone(&self.locks), self.journal.state().spec.clone());
        blocking(move || locks.keep_worktree(&spec)).await
    }
}

/// Takes the lock of a journal's writer again if its file was deleted.
///
/// # Errors
/// [`JournalError::Usurped`] if another runner has it.
pub(crate) fn keep_lock<S: Fold>(journal: &Journal<S>) -> Result<(), EngineError> {
    if journal.is_in_place() {
        return Ok(());
    }
    match journal.keep_lock() {
        // The folder is gone, too: it is written back with the journal, and the lock before that.
        Ok(()) | Err(JournalError::Disk(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
