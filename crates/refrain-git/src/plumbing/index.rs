//! The user's index: read, copied, locked as git locks it, and updated after a commit.
//!
//! A commit is made from a private index, so that a hook, a failure or a kill in between leaves the user's unchanged.
//! Meanwhile `index.lock` is held, as `git commit -a` holds it: no other git can stage anything in between. The lock
//! contains the loop's id, so that a loop that was killed while holding it does not lock out itself and the user.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::LoopId;
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_OMIT, utimensat};

use crate::error::{GitError, OnPath};
use crate::plumbing::disk::{FileStamp, LARGEST, remove, seen};
use crate::repository::Repository;

/// The start of a loop's lock; the loop's id and a line break follow. An index starts with `DIRC` instead.
const MARK: &str = "refrain loop ";

fn set_modified(path: &Utf8Path, seconds: i64, nanoseconds: i64) -> io::Result<()> {
    let last_access = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
    let last_modification = Timespec { tv_sec: seconds, tv_nsec: nanoseconds };
    utimensat(CWD, path.as_std_path(), &Timestamps { last_access, last_modification }, AtFlags::empty())?;
    Ok(())
}

/// Copies an index, if it is a regular file of a plausible size.
fn copy_regular(path: &Utf8Path, copy: &Utf8Path) -> io::Result<()> {
    let from = refrain_files::open_regular(path)?;
    let meta = from.metadata()?;
    if meta.len() > LARGEST {
        return Err(ErrorKind::FileTooLarge.into());
    }
    let mut to = File::create(copy)?;
    to.set_permissions(meta.permissions())?;
    io::copy(&mut from.take(LARGEST), &mut to)?;
    Ok(())
}

/// Removes the lock of a private index, which only a killed git leaves: no other process knows the path.
pub(crate) fn unlock_private(index: &Utf8Path) -> Result<(), GitError> {
    remove(&Utf8PathBuf::from(format!("{index}.lock")))
}

#[derive(Debug)]
pub(crate) struct Index {
    path: Utf8PathBuf,
    lock: Utf8PathBuf,
}

impl Index {
    pub(crate) fn of(repository: &Repository) -> Self {
        let path = repository.git_dir().join("index");
        Self { lock: repository.git_dir().join("index.lock"), path }
    }

    pub(crate) fn seen(&self) -> FileStamp {
        seen(&self.path)
    }

    /// Copies it, if it exists. Returns its stamp before.
    ///
    /// The copy keeps the modification time: git rereads files that are not older than their index, because they may
    /// have been written in the same clock tick.
    pub(crate) fn copy_to(&self, copy: &Utf8Path) -> Result<FileStamp, GitError> {
        unlock_private(copy)?;
        let seen = self.seen();
        match copy_regular(&self.path, copy) {
            Ok(()) => {
                if let Some((_, _, seconds, nanoseconds, ..)) = seen {
                    set_modified(copy, seconds, nanoseconds).on("write", copy)?;
                }
                Ok(seen)
            }
            Err(error) if error.kind() == ErrorKind::NotFound => match fs::remove_file(copy) {
                Err(error) if error.kind() != ErrorKind::NotFound => Err(error).on("take away", copy),
                _ => Ok(None),
            },
            Err(error) if error.kind() == ErrorKind::FileTooLarge => {
                Err(GitError::LargeIndex { path: self.path.clone(), most: LARGEST })
            }
            Err(error) => Err(error).on("copy", &self.path),
        }
    }

    /// Whether another git, or another loop, holds its lock.
    pub(crate) fn is_locked(&self, id: &LoopId) -> bool {
        self.lock.symlink_metadata().is_ok() && !self.is_left_by(id)
    }

    /// Takes the lock; none if another process holds it. A lock that this loop left when it was killed is taken over.
    pub(crate) fn lock(&self, id: &LoopId) -> Result<Option<IndexLock<'_>>, GitError> {
        if self.is_left_by(id) {
            fs::remove_file(&self.lock).on("take away", &self.lock)?;
        }
        // Written to a temporary file first: a kill between creating and writing it would leave an empty lock, which
        // could be another git's and so would be respected for ever.
        let beside = self.path.with_extension(format!("refrain-{id}"));
        // The leftover of a kill may be the same file as a lock.
        let _ = fs::remove_file(&beside);
        write_new(&beside, id).on("write", &beside)?;
        let taken = match fs::hard_link(&beside, &self.lock) {
            // A file system without hard links.
            Err(error) if matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::Unsupported) => {
                write_new(&self.lock, id)
            }
            other => other,
        };
        let _ = fs::remove_file(&beside);
        match taken {
            Ok(()) => Ok(Some(IndexLock { index: self })),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(None),
            Err(error) => Err(error).on("create", &self.lock),
        }
    }

    fn is_left_by(&self, id: &LoopId) -> bool {
        let mut begin = Vec::new();
        let read =
            refrain_files::open_regular(&self.lock).and_then(|file| file.take(128).read_to_end(&mut begin));
        read.is_ok() && begin == format!("{MARK}{id}\n").into_bytes()
    }
}

/// Creates a lock of this loop if there is no file.
fn write_new(path: &Utf8Path, id: &LoopId) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(format!("{MARK}{id}\n").as_bytes())
}

#[derive(Debug)]
pub(crate) struct IndexLock<'a> {
    index: &'a Index,
}

impl IndexLock<'_> {
    pub(crate) fn seen(&self) -> FileStamp {
        self.index.seen()
    }

    pub(crate) fn copy_to(&self, copy: &Utf8Path) -> Result<(), GitError> {
        self.index.copy_to(copy).map(|_| ())
    }

    /// Replaces the index by moving `other` there, and releases the lock. It is one rename, so there is always a
    /// complete index. It is not synced, as git's is not: after a power loss `git reset` recreates it.
    pub(crate) fn replace_with(self, other: &Utf8Path) -> Result<(), GitError> {
        let Index { path, .. } = self.index;
        if let Ok(meta) = fs::metadata(path) {
            fs::set_permissions(other, meta.permissions()).on("write", other)?;
        }
        // On the same disk unless the loop's folder is elsewhere.
        if fs::rename(other, path).is_ok() {
            return Ok(());
        }
        let beside = path.with_extension("refrain");
        fs::copy(other, &beside).on("write", &beside)?;
        fs::rename(&beside, path).on("replace", path)
    }
}

impl Drop for IndexLock<'_> {
    fn drop(&mut self) {
        // If that fails, the next commit of this loop finds its own lock and takes it over.
        let _ = fs::remove_file(&self.index.lock);
    }
}
