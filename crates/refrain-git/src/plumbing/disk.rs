//! Files on disk: stamps, and removal of a file or folder of any kind.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;

use camino::Utf8Path;
/// Reads a text of git's own.
pub(crate) use refrain_files::read_text as text;

use crate::error::{GitError, OnPath};

/// The stamp of a file; none if it is missing. A file with the same stamp was not written since.
pub(crate) type FileStamp = Option<(u64, u64, i64, i64, i64, i64)>;

pub(crate) fn seen(path: &Utf8Path) -> FileStamp {
    let meta = fs::metadata(path).ok()?;
    Some((meta.ino(), meta.len(), meta.mtime(), meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec()))
}

/// The largest file of git's own that is read, in bytes: an index, or packed references.
pub(crate) const LARGEST: u64 = 1 << 30;

/// Reads a file of git's own, in whose place an agent can put a FIFO or an endless file.
pub(crate) fn read(path: &Utf8Path) -> io::Result<Vec<u8>> {
    refrain_files::read_regular(path, LARGEST)
}

/// Removes a file or folder of any kind; of a symbolic link only the link.
pub(crate) fn remove(path: &Utf8Path) -> Result<(), GitError> {
    let removed = match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error).on("remove", path),
        _ => Ok(()),
    }
}
