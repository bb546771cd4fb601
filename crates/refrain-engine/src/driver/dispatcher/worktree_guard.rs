//! Keeps the runner the only one in its worktree.

use std::sync::Arc;

use super::Drive;
use crate::EngineError;
use crate::blocking::blocking;

impl Drive<'_> {
    /// Checks the loop's own files: something happened to them, or they are watched from here on.
    pub(super) async fn keep_files(&mut self) -> Result<(), EngineError> {
        let locks = &self.driver.locks;
        let (held, is_whole) = (locks.worktree_file(), locks.has_worktree());
        self.driver.keep_files(Some(held), &[], is_whole).await?;
        self.keep_worktree().await
    }

    /// Its share in the worktree, unless the project was moved: then the lock went with it.
    pub(in crate::driver) async fn keep_worktree(&self) -> Result<(), EngineError> {
        if self.driver.locks.has_worktree() || !self.driver.journal.dir().exists() {
            return Ok(());
        }
        let (locks, spec) = (Arc::clone(&self.driver.locks), self.driver.journal.state().spec.clone());
        blocking(move || locks.keep_worktree(&spec)).await
    }
}
