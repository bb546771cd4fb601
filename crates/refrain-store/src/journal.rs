//! The journal: the append-only list of a loop's events, and the only truth about it.
//!
//! A line is `{"seq","at","event","hash"}`. The hash covers the hash before it and every byte of its own line in front
//! of it, so any changed byte breaks the chain. An unterminated last line is a write that was cut off: readers skip it
//! and never repair, the writer moves it aside and records that. All other damage is an error that names file and line.

mod disk;
mod line;
mod read;
mod write;

#[cfg(test)]
mod golden;
#[cfg(test)]
pub(crate) mod tests;

pub use disk::{Committed, Durability, Restored};
pub(crate) use line::Hash;
pub(crate) use read::SignedLine;
pub use read::{
    Mark, Snapshot, Tail, Whole, marks, read, read_as, read_believed, read_signed, records, records_as, spec,
    whole,
};
pub use write::{Batch, Journal, MOST_RESTORED};

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::Damage;

use crate::DiskError;

/// Why a journal cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// There is no loop here.
    #[error("no journal at {0}")]
    Missing(Utf8PathBuf),
    /// A line is not as it was written.
    #[error("{path}, line {line}: {what}")]
    Damaged {
        path: Utf8PathBuf,
        line: u64,
        /// What is wrong with it.
        what: String,
    },
    /// An event that cannot follow those before it; nothing was written.
    #[error("an event was not added to {0}")]
    OutOfOrder(Utf8PathBuf, #[source] Damage),
    /// A loop with this journal exists already.
    #[error("{0} exists")]
    Taken(Utf8PathBuf),
    /// Another process appended, and this writer has no lock that says that it is the one to write.
    #[error("{0} was written by another process")]
    Foreign(Utf8PathBuf),
    /// The folder was removed under its runner, and another runner began under the same name before that was noticed.
    #[error("{0} was removed while it was written, and another runner has taken its name since")]
    Usurped(Utf8PathBuf),
    /// An earlier write of this journal failed: what is on disk is unknown, so nothing more is written.
    #[error("{0} failed to be written before; nothing more is written to it")]
    Failed(Utf8PathBuf),
    #[error(transparent)]
    Disk(#[from] DiskError),
}

impl JournalError {
    pub(crate) fn damaged(path: Utf8PathBuf, line: u64, what: impl std::fmt::Display) -> Self {
        Self::Damaged { path, line, what: what.to_string() }
    }

    /// An event that the fold refuses: nothing was written.
    fn impossible(path: &Utf8Path, damage: Damage) -> Self {
        Self::OutOfOrder(path.to_owned(), damage)
    }
}
