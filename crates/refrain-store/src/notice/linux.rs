//! inotify: no polling, and nothing happens while nothing changes.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};

use crate::{DiskError, OnPath};

/// Wakes when something below one of its paths changes, also where the path is deleted and comes back.
#[derive(Debug)]
pub struct Notice {
    inotify: OwnedFd,
    /// What is watched, and the watch on what lies there now. The system watches files, not names: one that was deleted
    /// and written back is another file.
    paths: RefCell<Vec<(Utf8PathBuf, Option<i32>)>>,
    /// Something came or went, so that a path may lead elsewhere now.
    stale: Cell<bool>,
}

impl Notice {
    /// Watches nothing yet.
    ///
    /// # Errors
    /// [`DiskError`] where the user's watches are used up.
    pub fn new() -> Result<Self, DiskError> {
        let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)
            .on("ask for notices of", Utf8Path::new("files"))?;
        Ok(Self { inotify, paths: RefCell::default(), stale: Cell::new(false) })
    }

    /// Watches a file, or what a folder lists; of a path where nothing is, that something comes.
    pub fn watch(&self, path: &Utf8Path) {
        let watch = self.arm(path);
        self.paths.borrow_mut().push((path.to_owned(), watch));
    }

    /// Waits for a change, or for `at_most`; forever without it.
    pub fn wait(&self, at_most: Option<Duration>) {
        let _ = self.wait_for(at_most);
    }

    /// The same, and which of the paths may have changed.
    pub fn wait_for(&self, at_most: Option<Duration>) -> Vec<Utf8PathBuf> {
        if self.stale.take() && self.arm_again() {
            // What happened there before it was watched was seen by nobody.
            return self.paths.borrow().iter().map(|(path, _)| path.clone()).collect();
        }
        let mut touched = BTreeSet::new();
        let timeout = at_most.and_then(|limit| Timespec::try_from(limit).ok());
        // An interrupted wait is a wake-up like any other.
        let _ = poll(&mut [PollFd::new(&self.inotify, PollFlags::IN)], timeout.as_ref());
        let mut buffer = [std::mem::MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(&self.inotify, &mut buffer);
        while let Ok(event) = reader.next() {
            if event.events() != ReadFlags::MODIFY {
                self.stale.set(true);
            }
            touched.insert(event.wd());
        }
        let paths = self.paths.borrow();
        let is_touched = |watch: &Option<i32>| watch.is_some_and(|watch| touched.contains(&watch));
        paths.iter().filter(|(_, watch)| is_touched(watch)).map(|(path, _)| path.clone()).collect()
    }

    /// Watches a path no longer; what else is watched stays.
    pub fn forget(&self, path: &Utf8Path) {
        let mut paths = self.paths.borrow_mut();
        let gone: Vec<_> = paths.extract_if(.., |(watched, _)| watched == path).collect();
        for watch in gone.into_iter().filter_map(|(_, watch)| watch) {
            // A folder may be watched for the sake of several paths.
            if paths.iter().all(|(_, other)| *other != Some(watch)) {
                // It may be gone already, and its watch with it.
                let _ = inotify::remove_watch(&self.inotify, watch);
            }
        }
    }

    /// Watches what lies at each path now; whether that is something else than before.
    fn arm_again(&self) -> bool {
        let mut other = false;
        for (path, watch) in self.paths.borrow_mut().iter_mut() {
            let before = std::mem::replace(watch, self.arm(path));
            other |= watch.is_some() && *watch != before;
        }
        other
    }

    /// Watches what lies at the path, or the nearest folder above it that is there. What is watched already stays so.
    fn arm(&self, path: &Utf8Path) -> Option<i32> {
        // A file that somebody holds open is deleted without DELETE_SELF: all that changes is how many names it has.
        let flags = WatchFlags::MODIFY
            | WatchFlags::CREATE
            | WatchFlags::MOVED_TO
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE_SELF
            | WatchFlags::ATTRIB;
        let add = |path: &Utf8Path| inotify::add_watch(&self.inotify, path.as_std_path(), flags).ok();
        add(path).or_else(|| {
            path.ancestors().skip(1).find_map(add);
            // It may have come before the folder was watched.
            add(path)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::io::Write;
    use std::time::Instant;

    use super::*;

    /// Whether something wakes it; the limit is only there for a test that fails.
    fn wakes(notice: &Notice) -> bool {
        let (limit, began) = (Duration::from_secs(5), Instant::now());
        notice.wait(Some(limit));
        began.elapsed() < limit
    }

    /// As its users do: whoever is woken looks, and waits again, until there is nothing new.
    fn settle(notice: &Notice) {
        (0..4).for_each(|_| notice.wait(Some(Duration::ZERO)));
    }

    fn write(path: &Utf8Path) -> File {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        crate::write_atomic(path, b"one\n").unwrap();
        File::options().append(true).open(path).unwrap()
    }

    #[test]
    fn a_file_that_was_deleted_and_written_back_is_watched_on() {
        for deleted in ["loops/job/journal.jsonl", "loops/job", "loops"] {
            let dir = tempfile::tempdir().unwrap();
            let dir = Utf8Path::from_path(dir.path()).unwrap();
            let path = dir.join("loops/job/journal.jsonl");
            let held = write(&path);
            let notice = Notice::new().unwrap();
            notice.watch(&path);
            match deleted {
                "loops/job/journal.jsonl" => fs::remove_file(&path).unwrap(),
                folder => fs::remove_dir_all(dir.join(folder)).unwrap(),
            }
            assert!(wakes(&notice), "{deleted} is deleted");
            settle(&notice);
            let mut back = write(&path);
            assert!(wakes(&notice), "{deleted} comes back");
            settle(&notice);
            back.write_all(b"two\n").unwrap();
            assert!(wakes(&notice), "{deleted} came back and grows");
            drop(held);
        }
    }

    #[test]
    fn it_says_which_path_changed_until_that_is_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let dir = Utf8Path::from_path(dir.path()).unwrap();
        let (one, two) = (dir.join("one/journal.jsonl"), dir.join("two/journal.jsonl"));
        let (mut first, mut second) = (write(&one), write(&two));
        let notice = Notice::new().unwrap();
        notice.watch(&one);
        notice.watch(&two);
        settle(&notice);
        second.write_all(b"two\n").unwrap();
        assert_eq!(notice.wait_for(Some(Duration::from_secs(5))), std::slice::from_ref(&two));
        notice.forget(&two);
        settle(&notice);
        second.write_all(b"three\n").unwrap();
        first.write_all(b"two\n").unwrap();
        assert_eq!(notice.wait_for(Some(Duration::from_secs(5))), [one]);
    }

    #[test]
    fn a_file_that_is_replaced_between_two_waits_wakes_once_more() {
        let dir = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(dir.path()).unwrap().join("journal.jsonl");
        let _held = write(&path);
        let notice = Notice::new().unwrap();
        notice.watch(&path);
        fs::remove_file(&path).unwrap();
        assert!(wakes(&notice));
        // Written back before it is watched again: nobody has looked since.
        let mut back = write(&path);
        back.write_all(b"two\n").unwrap();
        assert!(wakes(&notice));
    }

    #[test]
    fn a_file_that_is_not_there_yet_is_watched_once_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(dir.path()).unwrap().join("iterations/0001/output.log");
        let notice = Notice::new().unwrap();
        notice.watch(&path);
        let mut log = write(&path);
        assert!(wakes(&notice));
        settle(&notice);
        log.write_all(b"two\n").unwrap();
        assert!(wakes(&notice));
    }
}
