//! inotify: no polling, and nothing happens while nothing changes.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::fs::{Timestamps, UTIME_NOW, futimens};
use rustix::io::Errno;

use crate::{DiskError, OnPath};

/// Wakes when something below one of its paths changes, also if the path is deleted and comes back.
#[derive(Debug)]
pub struct Notice {
    inotify: OwnedFd,
    watched: Mutex<WatchedPaths>,
}

#[derive(Debug, Default)]
struct WatchedPaths {
    paths: Vec<Watch>,
    /// The watches at which something came or went, so that their paths may lead elsewhere now.
    stale: BTreeSet<i32>,
}

#[derive(Debug)]
struct Watch {
    path: Utf8PathBuf,
    /// The events that are watched of the file there.
    flags: WatchFlags,
    /// The watch on what lies there now. The system watches files, not names: one that was deleted and written back is
    /// another file.
    number: Option<i32>,
}

/// A file is replaced, moved or deleted. An open file is deleted without DELETE_SELF: only its number of names changes.
const PRESENCE: WatchFlags = WatchFlags::DELETE_SELF.union(WatchFlags::MOVE_SELF).union(WatchFlags::ATTRIB);

/// The same, and what a file holds, or a folder lists.
const ALL: WatchFlags =
    PRESENCE.union(WatchFlags::MODIFY).union(WatchFlags::CREATE).union(WatchFlags::MOVED_TO);

/// Wakes the watchers of this file or folder, and of the folder above it.
pub(crate) fn tell_above(folder: impl AsFd) {
    let now = rustix::fs::Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    // Only a change of both times is reported above. If it cannot be made, no watcher is woken: a notice is a hint.
    let _ = futimens(folder, &Timestamps { last_access: now, last_modification: now });
}

impl Notice {
    pub fn new() -> Result<Self, DiskError> {
        let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)
            .on("ask for notices of", Utf8Path::new("files"))?;
        Ok(Self { inotify, watched: Mutex::default() })
    }

    /// Watches a file, or what a folder lists; of a missing path, that something comes.
    pub fn watch(&self, path: &Utf8Path) {
        self.try_watch(path);
    }

    /// The same; whether the system had a watch left for it.
    pub fn try_watch(&self, path: &Utf8Path) -> bool {
        self.add(path, ALL)
    }

    /// Watches whether a file stays in its place, and not what is written to it; whether the system had a watch left
    /// for it.
    pub fn watch_place(&self, path: &Utf8Path) -> bool {
        self.add(path, PRESENCE)
    }

    fn add(&self, path: &Utf8Path, flags: WatchFlags) -> bool {
        // Under the lock, so that a waiting thread that is woken by it knows the path.
        let mut watched = self.watched();
        let number = self.arm(path, flags);
        watched.paths.push(Watch { path: path.to_owned(), flags, number });
        number.is_some()
    }

    fn watched(&self) -> MutexGuard<'_, WatchedPaths> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a change, or for `at_most`; forever without it.
    pub fn wait(&self, at_most: Option<Duration>) {
        let _ = self.wait_for(at_most);
    }

    /// The same, and which of the paths may have changed.
    pub fn wait_for(&self, at_most: Option<Duration>) -> Vec<Utf8PathBuf> {
        // Changes from before it was watched again went unnoticed.
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
        let mut watched = self.watched();
        while let Ok(event) = reader.next() {
            if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                let all = watched.paths.iter().filter_map(|watch| watch.number).collect::<Vec<_>>();
                watched.stale.extend(&all);
                touched.extend(all);
            } else if event.events() != ReadFlags::MODIFY {
                watched.stale.insert(event.wd());
            }
            touched.insert(event.wd());
        }
        let is_touched = |watch: &&Watch| watch.number.is_some_and(|number| touched.contains(&number));
        watched.paths.iter().filter(is_touched).map(|watch| watch.path.clone()).collect()
    }

    /// Watches a path no longer; what else is watched stays.
    pub fn forget(&self, path: &Utf8Path) {
        let mut watched = self.watched();
        let gone: Vec<_> = watched.paths.extract_if(.., |watch| watch.path == path).collect();
        self.let_go(&watched.paths, gone.into_iter().filter_map(|watch| watch.number));
    }

    /// Gives watches back that no path needs any more.
    fn let_go(&self, paths: &[Watch], numbers: impl IntoIterator<Item = i32>) {
        for number in numbers {
            // A folder may be watched for the sake of several paths.
            if paths.iter().all(|other| other.number != Some(number)) {
                // It may be gone already, and its watch with it.
                let _ = inotify::remove_watch(&self.inotify, number);
            }
        }
    }

    /// Watches what lies now at each path that may lead elsewhere; those that do.
    fn arm_again(&self) -> Vec<Utf8PathBuf> {
        let mut watched = self.watched();
        let (stale, mut elsewhere, mut left) = (std::mem::take(&mut watched.stale), Vec::new(), Vec::new());
        if stale.is_empty() {
            return elsewhere;
        }
        for watch in &mut watched.paths {
            // A path without a watch may get one now.
            if watch.number.is_none_or(|number| stale.contains(&number)) {
                let before = std::mem::replace(&mut watch.number, self.arm(&watch.path, watch.flags));
                if watch.number.is_some() && watch.number != before {
                    elsewhere.push(watch.path.clone());
                    left.extend(before);
                }
            }
        }
        self.let_go(&watched.paths, left);
        elsewhere
    }

    /// Watches what lies at the path, or the nearest folder above it that is there.
    fn arm(&self, path: &Utf8Path, flags: WatchFlags) -> Option<i32> {
        let add = |path: &Utf8Path, flags| inotify::add_watch(&self.inotify, path.as_std_path(), flags);
        match add(path, flags) {
            Ok(number) => Some(number),
            // All watches are used up: a folder above would not help.
            Err(Errno::NOSPC) => None,
            Err(_) => {
                let above = path.ancestors().skip(1).find_map(|folder| add(folder, ALL).ok());
                // It may have come before the folder was watched.
                add(path, flags).ok().or(above)
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

    /// As its callers do: look when woken, and wait again, until there is nothing new.
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
    fn only_the_removal_and_return_of_a_watched_place_are_reported() {
        let dir = tempfile::tempdir().unwrap();
        let dir = Utf8Path::from_path(dir.path()).unwrap();
        let path = dir.join("loops/job/runner.lock");
        let mut held = write(&path);
        let notice = Notice::new().unwrap();
        // As threads share it: one waits, another has it watch.
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| notice.wait_for(None));
            assert!(notice.watch_place(&path));
            held.write_all(b"two\n").unwrap();
            fs::remove_dir_all(dir.join("loops")).unwrap();
            assert_eq!(waits.join().unwrap(), std::slice::from_ref(&path));
        });
        settle(&notice);
        let mut back = write(&path);
        assert!(wakes(&notice), "it comes back");
        settle(&notice);
        back.write_all(b"two\n").unwrap();
        assert!(notice.wait_for(Some(Duration::ZERO)).is_empty());
    }

    #[test]
    fn a_watch_of_the_folder_above_is_notified() {
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
    fn a_notice_names_the_changed_path_until_it_is_forgotten() {
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
        // Written back before it is watched again: it was not looked at since.
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
