//! Task files on disk: which file has a plan's tasks ([`find`]), and how it is read and changed while others do so too
//! ([`TaskFile`]). Their format is parsed by [`refrain_core::plan::file`].

mod file;
mod find;

#[cfg(test)]
mod tests;

pub use file::{Stamp, TaskFile, TasksRead, TasksWritten};
pub use find::find;

use camino::Utf8PathBuf;
use refrain_core::plan::file::FileError;

use crate::DiskError;

#[derive(Debug, thiserror::Error)]
pub enum TasksError {
    #[error("there is no tag {tag} in {folder}")]
    NoTag { tag: String, folder: Utf8PathBuf, nearest: Option<String>, known: Vec<String> },
    #[error("no plan is named, and there are no tasks in {0}")]
    Nothing(Utf8PathBuf),
    #[error("{folder} has the tags {}, and none of them is active", .known.join(", "))]
    Which { folder: Utf8PathBuf, known: Vec<String> },
    #[error("{path} {why}")]
    Unfit { path: Utf8PathBuf, why: &'static str },
    #[error("{path}")]
    Malformed { path: Utf8PathBuf, source: Box<FileError> },
    #[error("{0} is changed by others all the time")]
    Busy(Utf8PathBuf),
    /// It could not be read or written.
    #[error(transparent)]
    Disk(#[from] DiskError),
}
