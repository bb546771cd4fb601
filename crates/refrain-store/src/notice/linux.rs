//! inotify: no polling, and nothing happens while nothing changes.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::fs::{Timestamps, UTIME_NOW, futimens};
use rustix::io::Errno;

use crate::{DiskError, OnPath};

/// Wakes when something below one of its paths changes, also where the path is deleted and comes back.
#[derive(Debug)]
pub struct Notice {
    inotify: OwnedFd,
    /// What is watched, and the watch on what lies there now. The system watches files, not names: one that was deleted
    /// and written back is another file.
    paths: RefCell<Vec<(Utf8PathBuf, Option<i32>)>>,
    /// The watches at which something came or went, so that their paths may lead elsewhere now.
    stale: RefCell<BTreeSet<i32>>,
}

/// Tells whoever watches the folder above this one.
pub(crate) fn tell_above(folder: impl AsFd) {
    let now = rustix::fs::Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    // Only a change of both times is told above. Where it cannot be made nobody is told: a notice is a hint.
    let _ = futimens(folder, &Timestamps { last_access: now, last_modification: now });
}

impl Notice {
    /// Watches nothing yet.
    ///
    /// # Errors
    /// [`DiskError`] where the user's watches are used up.
    pub fn new() -> Result<Self, DiskError> {
        let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)
            .on("ask for notices of", Utf8Path::new("files"))?;
        Ok(Self { inotify, paths: RefCell::default(), stale: RefCell::default() })
    }

    /// Watches a file, or what a folder lists; of a path where nothing is, that something comes.
    pub fn watch(&self, path: &Utf8Path) {
        self.try_watch(path);
    }

    /// The same; whether the system had a watch left for it.
    pub fn try_watch(&self, path: &Utf8Path) -> bool {
        let watch = self.arm(path);
        self.paths.borrow_mut().push((path.to_owned(), watch));
        watch.is_some()
    }

    /// Waits for a change, or for `at_most`; forever without it.
    pub fn wait(&self, at_most: Option<Duration>) {
        let _ = self.wait_for(at_most);
    }

    /// The same, and which of the paths may have changed.
    pub fn wait_for(&self, at_most: Option<Duration>) -> Vec<Utf8PathBuf> {
        // What happened there before it was watched was seen by nobody.
        let elsewhere = self.arm_again();
        if !elsewhere.is_empty() {
            return elsewhere;
        }
        let mut touched = BTreeSet::new();
        let timeout = at_most.and_then(|limit| Timespec::try_from(limit).ok());
        // An interrupted wait is a wake-up like any other.
        let _ = poll(&mut [PollFd::new(&self.inotify, PollFlags::IN)], timeout.as_ref());
        let mut buffer = [std::mem::MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(&self.inotify, &mut buffer);
        while let Ok(event) = reader.next() {
            if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                let all = self.paths.borrow().iter().filter_map(|(_, watch)| *watch).collect::<Vec<_>>();
                self.stale.borrow_mut().extend(&all);
                touched.extend(all);
            } else if event.events() != ReadFlags::MODIFY {
                self.stale.borrow_mut().insert(event.wd());
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
        self.let_go(&paths, gone.into_iter().filter_map(|(_, watch)| watch));
    }

    /// Gives watches back that no path needs any more.
    fn let_go(&self, paths: &[(Utf8PathBuf, Option<i32>)], watches: impl IntoIterator<Item = i32>) {
        for watch in watches {
            // A folder may be watched for the sake of several paths.
            if paths.iter().all(|(_, other)| *other != Some(watch)) {
                // It may be gone already, and its watch with it.
                let _ = inotify::remove_watch(&self.inotify, watch);
            }
        }
    }

    /// Watches what lies now at each path that may lead elsewhere; those that do.
    fn arm_again(&self) -> Vec<Utf8PathBuf> {
        let (stale, mut elsewhere, mut left) = (self.stale.take(), Vec::new(), Vec::new());
        if stale.is_empty() {
            return elsewhere;
        }
        let mut paths = self.paths.borrow_mut();
        for (path, watch) in paths.iter_mut() {
            // What could not be watched may be now.
            if watch.is_none_or(|watch| stale.contains(&watch)) {
                let before = std::mem::replace(watch, self.arm(path));
                if watch.is_some() && *watch != before {
                    elsewhere.push(path.clone());
                    left.extend(before);
                }
            }
        }
        self.let_go(&paths, left);
        elsewhere
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
        let add = |path: &Utf8Path| inotify::add_watch(&self.inotify, path.as_std_path(), flags);
        match add(path) {
            Ok(watch) => Some(watch),
            // All watches are used up: a folder above would tell nothing of it.
            Err(Errno::NOSPC) => None,
            Err(_) => {
                let above = path.ancestors().skip(1).find_map(|folder| add(folder).ok());
                // It may have come before the folder was watched.
                add(path).ok().or(above)
            }
        }
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
    fn whoever_watches_the_folder_above_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let dir = Utf8Path::from_path(dir.path()).unwrap();
        let loops = dir.join("loops");
        let _journal = write(&loops.join("job/journal.jsonl"));
        let notice = Notice::new().unwrap();
        assert!(notice.try_watch(&loops));
        settle(&notice);
        tell_above(File::open(loops.join("job")).unwrap());
        assert_eq!(notice.wait_for(Some(Duration::from_secs(5))), [loops]);
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
