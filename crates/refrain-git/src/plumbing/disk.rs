//! Files on disk: stamps, and removal of a file or folder of any kind.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};

use camino::{Utf8Path, Utf8PathBuf};
use refrain_files::IfThere;
/// Reads a text of git's own.
pub(crate) use refrain_files::read_text as text;
use refrain_proc::tool::SignalHold;
use tempfile::TempDir;

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
    removed.if_there().on("remove", path).map(drop)
}

/// Writes a file unless it already has this content. Never writes through a symbolic link.
pub(crate) fn write(path: &Utf8Path, content: &[u8]) -> Result<(), GitError> {
    let is_file = fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file());
    if is_file && read(path).is_ok_and(|found| found == content) {
        return Ok(());
    }
    remove(path)?;
    let mut file =
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).on("write", path)?;
    file.write_all(content).on("write", path)
}

/// A folder for the user alone, which is removed when it is dropped, also before a signal ends a verb.
#[derive(Debug)]
pub(crate) struct ScratchFolder {
    path: Utf8PathBuf,
    _folder: TempDir,
    _signals: SignalHold,
}

impl ScratchFolder {
    pub(crate) fn new() -> Result<Self, GitError> {
        // A path that is no text would be no argument of git.
        let parent = Utf8PathBuf::from_path_buf(std::env::temp_dir()).unwrap_or_else(|_| "/tmp".into());
        Self::inside(&parent)
    }

    pub(crate) fn inside(parent: &Utf8Path) -> Result<Self, GitError> {
        let signals = SignalHold::begin();
        let folder = tempfile::Builder::new().prefix("refrain-").tempdir_in(parent).on("create", parent)?;
        let path = Utf8Path::from_path(folder.path()).unwrap_or(parent).to_owned();
        Ok(Self { path, _folder: folder, _signals: signals })
    }

    pub(crate) fn path(&self) -> &Utf8Path {
        &self.path
    }
}
