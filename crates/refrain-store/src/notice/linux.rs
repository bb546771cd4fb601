//! inotify: no polling, and nothing happens while nothing changes.

use std::os::fd::OwnedFd;
use std::time::Duration;

use camino::Utf8Path;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};

use crate::{DiskError, OnPath};

/// Wakes when something below one of its paths changes.
#[derive(Debug)]
pub struct Notice(OwnedFd);

impl Notice {
    /// Watches nothing yet.
    ///
    /// # Errors
    /// [`DiskError`] where the user's watches are used up.
    pub fn new() -> Result<Self, DiskError> {
        inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)
            .map(Self)
            .on("ask for notices of", Utf8Path::new("files"))
    }

    /// Watches a file, or what a folder lists. A path that is not there is not watched.
    pub fn watch(&self, path: &Utf8Path) {
        let flags = WatchFlags::MODIFY | WatchFlags::CREATE | WatchFlags::MOVED_TO | WatchFlags::DELETE_SELF;
        let _ = inotify::add_watch(&self.0, path.as_std_path(), flags);
    }

    /// Waits for a change, or for `at_most`; forever without it.
    pub fn wait(&self, at_most: Option<Duration>) {
        let timeout = at_most.and_then(|limit| Timespec::try_from(limit).ok());
        // An interrupted wait is a wake-up like any other.
        let _ = poll(&mut [PollFd::new(&self.0, PollFlags::IN)], timeout.as_ref());
        let mut buffer = [std::mem::MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(&self.0, &mut buffer);
        while reader.next().is_ok() {}
    }
}
