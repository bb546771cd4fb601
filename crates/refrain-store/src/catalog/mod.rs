//! The catalog: what lists and sums need to know of every project's loops, in one SQLite file in the user's data home.
//!
//! It is derived from the journals and may be deleted at any time. Each reader brings it up to date first: each
//! journal's [`Stamp`](stamp::Stamp) is compared with the one of its row, and only what changed is read again. The
//! journal of a running loop is always read, as its view depends on which processes live; a server remembers its state
//! ([`KnownJournals`]).
//!
//! A catalog that is damaged or of a newer version is put aside and built anew; if it cannot be written, or another
//! process writes for too long, a catalog in memory is used. Only a project's own files can make it fail. The list of
//! projects is in [`projects`](crate::project::projects), so deleting the catalog loses nothing.

mod facts;
mod file;
mod fold;
mod known;
mod rows;
mod selection;
mod stamp;
#[cfg(test)]
mod tests;
mod update;
mod usage;

pub use facts::{ApprovalFact, BlockedFact, Caps, CurrentFact, Facts, GateFact, TotalUsage};
pub use file::{Catalog, aside, note, with, with_known};
pub use fold::Brief;
pub use known::KnownJournals;
pub use selection::{Detail, LoopFolder};
pub use stamp::Stamp;
pub use update::CatalogEntry;

use crate::DiskError;

#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    #[error("the catalog cannot be used: {0}")]
    Unfit(String),
    #[error("the catalog cannot be reached")]
    Unreachable(#[source] rusqlite::Error),
    /// A project's own files cannot be read.
    #[error(transparent)]
    Disk(#[from] DiskError),
}

impl From<rusqlite::Error> for CatalogError {
    /// An error that another moment or place could mend is no damage; all else is.
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode;
        match error.sqlite_error_code() {
            Some(
                ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::CannotOpen
                | ErrorCode::ReadOnly
                | ErrorCode::PermissionDenied
                | ErrorCode::DiskFull
                | ErrorCode::OutOfMemory
                | ErrorCode::FileLockingProtocolFailed
                | ErrorCode::SystemIoFailure,
            ) => Self::Unreachable(error),
            _ => Self::Unfit(error.to_string()),
        }
    }
}

impl From<serde_json::Error> for CatalogError {
    fn from(error: serde_json::Error) -> Self {
        Self::Unfit(error.to_string())
    }
}
