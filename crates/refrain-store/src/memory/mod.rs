//! The memories of finished loops: one SQLite file in the user's data home, for all projects.
//!
//! Unlike the catalog it cannot be made again from the journals. So a damaged one is put aside and never deleted, one
//! of a newer version is left alone, and a process that cannot reach it works without: no loop waits for it longer than
//! a second, and none fails by it. It is opened for a query, and made for the first memory. Which memories matter to a
//! goal, and how duplicates are treated, is decided in `core::memory`.

mod file;
mod find;
mod judge_calls;
mod rows;
#[cfg(test)]
mod tests;

pub use file::{MemoryFile, aside, look, make};
pub use find::Vector;
pub use judge_calls::JudgeCalls;
pub use rows::MemoryFilter;

use camino::Utf8PathBuf;

use crate::DiskError;

/// Why memories could not be asked, or kept.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    #[error("the file of memories was damaged and is put aside as {0}; sqlite3 may still read it")]
    Damaged(Utf8PathBuf),
    #[error("the file of memories was made by a newer version of Refrain and is left as it is")]
    Newer,
    #[error("the file of memories cannot be reached")]
    Unreachable(#[source] rusqlite::Error),
    /// Its folder cannot be made, or a file that is damaged not be moved.
    #[error(transparent)]
    Disk(#[from] DiskError),
}

#[derive(Debug)]
enum Trouble {
    Unfit,
    Newer,
    Unreachable(rusqlite::Error),
}

impl From<rusqlite::Error> for Trouble {
    /// Only what says that the file is no such file, or that what is in it cannot be, is damage: all else another
    /// moment or another place could mend.
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode;
        match (error.sqlite_error_code(), &error) {
            (Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase), _)
            | (
                None,
                rusqlite::Error::FromSqlConversionFailure(..)
                | rusqlite::Error::IntegralValueOutOfRange(..)
                | rusqlite::Error::InvalidColumnType(..),
            ) => Self::Unfit,
            _ => Self::Unreachable(error),
        }
    }
}
