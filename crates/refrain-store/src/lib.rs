//! The only writer of Refrain's data on disk: where it lies ([`layout`]), the [`journal`], who may write it ([`lock`]),
//! how others ask ([`inbox`]), what is put aside ([`archive`]), where candidates are checked out ([`checkout`]), which
//! worktrees tasks have ([`pool`]), which loops sessions drive ([`sessions`]), which projects there are ([`projects`]), what is
//! proposed to their instructions ([`proposals`]),
//! what is known of all their loops together ([`catalog`]), what is remembered of them ([`memory`]), what they spent ([`LedgerFile`]), the files that agents read
//! ([`worktree`]), the task files of plans ([`tasks`]), what people configured ([`config`]), whether a project's part of
//! that counts ([`trust`]), how far webhooks were told ([`webhook`]), what stands in Slack ([`slack`]), who may come in over
//! HTTP ([`keys`]), and what was put where agents load it from ([`plugins`]).
//!
//! Everything here blocks and nothing here decides. Async callers move a value in and out of a blocking thread.

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

pub use disk::atomic::{append, create, make_dir, make_dir_nofollow, write_atomic, write_nofollow};
pub use disk::lock::{Claimed, PlansLock, RunnerLock, WorktreeLock};
pub use journal::{Journal, JournalError};
pub use project::checkout::CleanPlace;
pub use project::inbox::{Doorbell, Request};
pub use project::layout::{LoopDir, Project};
pub use project::pool::Slot;
pub use spending::account::{AccountGate, Probe};
pub use spending::budget::{LedgerError, LedgerFile};

use camino::{Utf8Path, Utf8PathBuf};

/// A file operation that failed, and on what.
#[derive(Debug, thiserror::Error)]
#[error("{action} {path}")]
pub struct DiskError {
    /// What was tried, as in "write".
    pub action: &'static str,
    pub path: Utf8PathBuf,
    /// What the system said.
    pub source: std::io::Error,
}

/// Names the file in a failed operation.
pub(crate) trait OnPath<T> {
    fn on(self, action: &'static str, path: &Utf8Path) -> Result<T, DiskError>;
}

impl<T, E: Into<std::io::Error>> OnPath<T> for Result<T, E> {
    fn on(self, action: &'static str, path: &Utf8Path) -> Result<T, DiskError> {
        self.map_err(|error| DiskError { action, path: path.to_owned(), source: error.into() })
    }
}
