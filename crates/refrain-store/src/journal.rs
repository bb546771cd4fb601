//! The journal: the append-only list of a loop's events, and the only truth about it.
//!
//! A line is `{"seq","at","event","hash"}`. The hash covers the hash before it and every byte of its own line in front
//! of it, so any changed byte breaks the chain. An unterminated last line is a write that was cut off: readers skip it
//! and never repair, the writer moves it aside and records that. All other damage is an error that names file and line.

mod disk;
mod line;
mod reader;
mod witness;
mod write;

#[cfg(test)]
mod golden;
#[cfg(test)]
pub(crate) mod tests;

pub use disk::{Durability, RestoredTail, SyncReport};
pub(crate) use line::Hash;
pub(crate) use reader::SignedLine;
pub use reader::{
    ForeignJournal, Mark, Snapshot, Tail, Whole, check_copy, departed, first_line, foreign_start, has_left,
    held, marks, read, read_as, read_believed, read_signed, records, records_as, records_in, spec, spec_of,
    whole,
};
pub use witness::{Unreplicated, Witness};
pub use write::{Batch, Journal, MOST_RESTORED};

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::Damage;

use crate::DiskError;

/// Why a journal cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    #[error("no journal at {0}")]
    Missing(Utf8PathBuf),
    #[error("{path}, line {line}: {what}")]
    Damaged { path: Utf8PathBuf, line: u64, what: String },
    #[error("an event was not added to {0}")]
    OutOfOrder(Utf8PathBuf, #[source] Damage),
    #[error("{0} exists")]
    Taken(Utf8PathBuf),
    #[error("{0} was written by another process")]
    Foreign(Utf8PathBuf),
    #[error("{0} was removed while it was written, and another runner has taken its name since")]
    Usurped(Utf8PathBuf),
    #[error("{0} failed to be written before; nothing more is written to it")]
    Failed(Utf8PathBuf),
    /// What was committed is on disk all the same.
    #[error(transparent)]
    Unreplicated(#[from] Unreplicated),
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
