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

mod account;
pub mod archive;
mod atomic;
mod budget;
pub mod catalog;
pub mod checkout;
pub mod config;
pub mod ground;
pub mod inbox;
pub mod journal;
pub mod keys;
pub mod layout;
pub mod lock;
pub mod memory;
mod migration;
pub mod notice;
mod numbered;
pub mod plugins;
pub mod pool;
pub mod projects;
pub mod proposals;
pub mod sessions;
pub mod signing;
pub mod slack;
pub mod tasks;
pub mod trust;
pub mod webhook;
pub mod worktree;

pub use account::{AccountGate, Probe};
pub use atomic::{append, create, make_dir, make_dir_nofollow, write_atomic, write_nofollow};
pub use budget::{LedgerError, LedgerFile};
pub use checkout::CleanPlace;
pub use inbox::{Doorbell, Request};
pub use journal::{Journal, JournalError};
pub use layout::{LoopDir, Project};
pub use lock::{Claimed, PlansLock, RunnerLock, WorktreeLock};
pub use pool::Slot;

use camino::{Utf8Path, Utf8PathBuf};

/// A file operation that failed, and on what.
#[derive(Debug, thiserror::Error)]
#[error("{action} {path}")]
pub struct DiskError {
    /// What was tried, as in "write".
    pub action: &'static str,
    /// On what.
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
