//! The only writer of Refrain's data on disk. Everything here blocks and nothing here decides; async callers move a
//! value in and out of a blocking thread.
//!
//! - [`project`]: where the data of a project lies; its inbox, archive, checkouts, worktrees and sessions.
//! - [`journal`]: the events of a loop or plan. [`disk`]: atomic writes, locks, and notices of changes.
//! - [`config`]: settings. [`access`]: trust, API keys, signatures. [`tasks`]: the task files of plans.
//! - [`catalog`]: an index of all loops. [`memory`]: what is remembered of them. [`LedgerFile`]: what they spent.
//! - [`outbox`]: what was sent to webhooks, Slack and agents' folders.

pub mod access;
pub mod catalog;
pub mod config;
pub mod disk;
pub mod journal;
pub mod memory;
pub mod outbox;
pub mod project;
mod spending;
pub mod tasks;

pub use disk::atomic::{
    append, check_folder, create, make_dir, make_dir_nofollow, write_atomic, write_nofollow,
};
pub use disk::lock::{ClaimOutcome, PlansLock, RunnerLock, WorktreeLock};
pub use journal::{Journal, JournalError, Unreplicated, Witness};
pub use project::checkout::CleanPlace;
pub use project::inbox::{Request, WakePipe};
pub use project::layout::{LoopDir, Project};
pub use project::pool::Slot;
pub use spending::account::{AccountGate, Probe};
pub use spending::budget::{LedgerError, LedgerFile};

use camino::{Utf8Path, Utf8PathBuf};

/// A file operation that failed, and on what.
#[derive(Debug, thiserror::Error)]
#[error("{action} {path}")]
pub struct DiskError {
    pub action: &'static str,
    pub path: Utf8PathBuf,
    pub source: std::io::Error,
}

pub(crate) trait OnPath<T> {
    fn on(self, action: &'static str, path: &Utf8Path) -> Result<T, DiskError>;
}

impl<T, E: Into<std::io::Error>> OnPath<T> for Result<T, E> {
    fn on(self, action: &'static str, path: &Utf8Path) -> Result<T, DiskError> {
        self.map_err(|error| DiskError { action, path: path.to_owned(), source: error.into() })
    }
}
