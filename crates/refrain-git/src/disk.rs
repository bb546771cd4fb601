//! Files on disk: how one looks, and taking away whatever is there.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;

use camino::Utf8Path;

use crate::error::{GitError, OnPath};

/// How a file looks; none where it is missing. One that looks the same was not written since.
pub(crate) type Seen = Option<(u64, u64, i64, i64, i64, i64)>;

/// How a file looks.
pub(crate) fn seen(path: &Utf8Path) -> Seen {
    let meta = fs::metadata(path).ok()?;
    Some((meta.ino(), meta.len(), meta.mtime(), meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec()))
}

/// Removes whatever is there, and of a link the link.
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
