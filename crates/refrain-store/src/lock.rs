//! Who may write. Lock files are never deleted: the lock is the open file, and ends with its holder, however that dies.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt;

use camino::Utf8Path;

use crate::atomic::make_dir;
use crate::layout::LoopDir;
use crate::{DiskError, OnPath};

/// How often a lock is tried for: somebody may hold it only to see whether it is free, for a microsecond.
const TRIES: u32 = 50;

/// The right to drive a loop, for as long as the value lives.
#[derive(Debug)]
pub struct RunnerLock(#[expect(dead_code, reason = "the lock is the open file")] File);

impl RunnerLock {
    /// Takes the lock, or says by `None` that somebody else has it.
    ///
    /// # Errors
    /// [`DiskError`] where the lock file cannot be opened or the file system knows no locks.
    pub fn try_take(dir: &LoopDir) -> Result<Option<Self>, DiskError> {
        let path = dir.runner_lock();
        let file = open(&path)?;
        for _ in 0..TRIES {
            match file.try_lock() {
                Ok(()) => return Ok(Some(Self(file))),
                Err(TryLockError::WouldBlock) => std::thread::yield_now(),
                Err(TryLockError::Error(error)) => return Err(error).on("lock", &path),
            }
        }
        Ok(None)
    }

    /// Takes the lock of a loop that may not exist yet: its folder is made where it is missing.
    ///
    /// # Errors
    /// As [`Self::try_take`].
    pub fn claim(dir: &LoopDir) -> Result<Option<Self>, DiskError> {
        make_dir(&dir.0)?;
        Self::try_take(dir)
    }

    /// Whether nobody holds it. The question itself takes the lock for an instant.
    #[must_use]
    pub fn is_free(dir: &LoopDir) -> bool {
        File::open(dir.runner_lock()).map_or(true, |file| file.try_lock_shared().is_ok())
    }
}

/// The append lock: held for one append, so waiting for it is short.
#[derive(Debug)]
pub(crate) struct AppendLock(File);

impl AppendLock {
    pub(crate) fn open(dir: &LoopDir) -> Result<Self, DiskError> {
        open(&dir.append_lock()).map(Self)
    }

    /// Runs `append` under the lock.
    pub(crate) fn hold<T, E: From<DiskError>>(
        &self,
        path: &Utf8Path,
        append: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        self.0.lock().on("lock", path)?;
        let result = append();
        self.0.unlock().on("unlock", path)?;
        result
    }
}

fn open(path: &Utf8Path) -> Result<File, DiskError> {
    OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path).on("open", path)
}
