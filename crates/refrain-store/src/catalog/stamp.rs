//! Detects whether a journal was written since it was last read, without opening it.

use std::os::fd::BorrowedFd;

use camino::Utf8Path;
use rustix::fs::{Access, AtFlags, Mode, Stat, accessat, stat, statat};

use crate::project::layout::JOURNAL;

/// A journal that looks the same was not written since: same length, same time, same inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    pub(super) length: i64,
    pub(super) modified: i64,
    pub(super) inode: i64,
}

impl Stamp {
    /// That of the loop `name` on the shelf `folder`; none if there is no journal.
    pub(super) fn of(folder: BorrowedFd<'_>, name: &str) -> Option<Self> {
        let path = Utf8Path::new(name).join(JOURNAL);
        let stat = statat(folder, path.as_str(), AtFlags::empty()).ok()?;
        // A row must not hide that the journal cannot be read. Asked for such a mode only: lists have thousands of loops.
        let is_closed = Mode::from_raw_mode(stat.st_mode).intersection(Mode::RUSR).is_empty();
        if is_closed && accessat(folder, path.as_str(), Access::READ_OK, AtFlags::EACCESS).is_err() {
            return None;
        }
        Self::from_stat(&stat)
    }

    /// That of a file; none if there is none.
    pub fn at(path: &Utf8Path) -> Option<Self> {
        Self::from_stat(&stat(path.as_str()).ok()?)
    }

    fn from_stat(stat: &Stat) -> Option<Self> {
        let nanoseconds = i64::try_from(stat.st_mtime_nsec).unwrap_or_default();
        Some(Self {
            length: stat.st_size,
            modified: stat.st_mtime.saturating_mul(1_000_000_000).saturating_add(nanoseconds),
            inode: stat.st_ino.cast_signed(),
        })
    }
}
