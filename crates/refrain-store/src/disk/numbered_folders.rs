//! Folders that are numbered from 1 for each project, and belong to the holder of the number's lock: those that
//! candidates are checked out to, and those that tasks work in. Their content is not handled here.

use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;

use camino::{Utf8Path, Utf8PathBuf};

use crate::disk::atomic::{make_dir, open_private, write_atomic};
use crate::project::layout::Project;
use crate::{DiskError, OnPath};

/// The file with the project's path, for a scan that finds the folders.
const OF: &str = "project";
/// How often a lock is tried for: another process may hold it for a microsecond, only to see whether it is free.
const TRIES: u32 = 50;

/// Makes the folder that the numbers are in, and notes its project there.
pub(crate) fn make_home(home: &Utf8Path, project: &Project) -> Result<(), DiskError> {
    make_dir(home)?;
    let of = home.join(OF);
    if of.exists() { Ok(()) } else { write_atomic(&of, project.root.as_str().as_bytes()) }
}

/// The homes, below `all` and called `below` there, of projects that are not there any more, each with the project's
/// folder.
pub(crate) fn orphaned(all: &Utf8Path, below: &str) -> Vec<(Utf8PathBuf, Utf8PathBuf)> {
    let Ok(homes) = all.read_dir_utf8() else { return Vec::new() };
    let homes = homes.flatten().map(|entry| match below {
        "" => entry.path().to_owned(),
        below => entry.path().join(below),
    });
    let of = |home: Utf8PathBuf| Some((fs::read_to_string(home.join(OF)).ok()?.into(), home));
    homes
        .filter_map(of)
        .filter(|(root, _): &(Utf8PathBuf, _)| matches!(root.try_exists(), Ok(false)))
        .map(|(root, home)| (home, root))
        .collect()
}

/// Removes all folders of a home, and the home; not while one of them is in use.
pub(crate) fn remove_all(home: &Utf8Path) -> Result<(), DiskError> {
    for number in numbers(home) {
        let lock = lock(home, number)?;
        let _lock = lock.ok_or(ErrorKind::ResourceBusy).on("remove", home)?;
        let dir = home.join(number.to_string());
        fs::remove_dir_all(&dir).on("remove", &dir)?;
    }
    fs::remove_dir_all(home).on("remove", home)
}

/// The numbers that there are folders of, from the least.
pub(crate) fn numbers(home: &Utf8Path) -> Vec<u32> {
    let entries = home.read_dir_utf8().into_iter().flatten().flatten();
    let mut numbers: Vec<u32> = entries.filter_map(|entry| entry.file_name().parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}

/// The lock of one number; none if it is taken. Lock files are never removed while a process could have them open.
pub(crate) fn lock(home: &Utf8Path, number: u32) -> Result<Option<File>, DiskError> {
    let path = lock_file(home, number);
    let file = open_private(&path)?;
    for _ in 0..TRIES {
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(TryLockError::WouldBlock) => std::thread::yield_now(),
            Err(TryLockError::Error(error)) => return Err(error).on("lock", &path),
        }
    }
    Ok(None)
}

pub(crate) fn lock_file(home: &Utf8Path, number: u32) -> Utf8PathBuf {
    home.join(format!("{number}.lock"))
}
