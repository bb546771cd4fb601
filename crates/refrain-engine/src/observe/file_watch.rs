//! Files that a runner watches while it waits: those of its own that must not vanish, and the task file of a plan. All
//! runners of a process share one thread and one descriptor of the system, which are there once the first of them asks:
//! users have few such descriptors.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use refrain_store::disk::notice::Notice;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// The state that a watch and its thread share.
struct Shared {
    notice: Notice,
    watched: Mutex<Vec<(Utf8PathBuf, Arc<Notify>)>>,
}

static SHARED: Mutex<Option<Arc<Shared>>> = Mutex::new(None);

/// Files that are watched for as long as this lives.
#[derive(Debug)]
pub(crate) struct FileWatch {
    changed: Arc<Notify>,
}

impl FileWatch {
    /// Watches that the files of `kept` stay in their places, and what is written to those of `read`. None if the
    /// system has no watch left: then the caller has to look by itself.
    pub(crate) fn of(kept: &[Utf8PathBuf], read: &[&Utf8Path]) -> Option<Self> {
        let shared = shared()?;
        let watch = Self { changed: Arc::default() };
        let kept =
            kept.iter().all(|path| shared.add(path, &watch.changed, |path| shared.notice.watch_place(path)));
        let read =
            read.iter().all(|path| shared.add(path, &watch.changed, |path| shared.notice.try_watch(path)));
        (kept && read).then_some(watch)
    }

    /// Returns when one of the files may have changed.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }
}

/// A watch of a runner that begins after the runner has run for a while: a short loop never needs one.
#[derive(Debug)]
pub(crate) struct DelayedFileWatch {
    watch: Option<FileWatch>,
    /// When it is to begin; none once it has, or could not.
    due: Option<Instant>,
}

/// After how long a runner watches its files.
const BEGINS_AFTER: Duration = Duration::from_millis(500);

impl DelayedFileWatch {
    pub(crate) fn later() -> Self {
        Self { watch: None, due: Some(Instant::now() + BEGINS_AFTER) }
    }

    pub(crate) fn is_armed(&self) -> bool {
        self.due.is_none()
    }

    /// Begins to watch, as [`FileWatch::of`].
    pub(crate) fn arm(&mut self, kept: &[Utf8PathBuf], read: &[&Utf8Path]) {
        (self.watch, self.due) = (FileWatch::of(kept, read), None);
    }

    /// Whether the system had no watch left.
    pub(crate) fn has_no_watch(&self) -> bool {
        self.due.is_none() && self.watch.is_none()
    }

    /// Returns when it is to begin, or a file may have changed; never, if the system had no watch left.
    pub(crate) async fn changed(&self) {
        match (&self.watch, self.due) {
            (_, Some(due)) => sleep_until(due).await,
            (Some(watch), None) => watch.changed().await,
            (None, None) => std::future::pending().await,
        }
    }
}

impl Drop for FileWatch {
    fn drop(&mut self) {
        let shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(shared) = shared {
            shared.forget(&self.changed);
        }
    }
}

impl Shared {
    fn add(&self, path: &Utf8Path, changed: &Arc<Notify>, watch: impl FnOnce(&Utf8Path) -> bool) -> bool {
        let mut watched = self.watched();
        let is_watched = watched.iter().any(|(known, _)| known == path) || watch(path);
        if is_watched {
            watched.push((path.to_owned(), Arc::clone(changed)));
        }
        is_watched
    }

    fn forget(&self, changed: &Arc<Notify>) {
        let mut watched = self.watched();
        let gone: Vec<_> = watched.extract_if(.., |(_, other)| Arc::ptr_eq(other, changed)).collect();
        for (path, _) in gone {
            if watched.iter().all(|(other, _)| *other != path) {
                self.notice.forget(&path);
            }
        }
    }

    fn watched(&self) -> MutexGuard<'_, Vec<(Utf8PathBuf, Arc<Notify>)>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the watchers, for as long as the process lives.
    fn run(&self) {
        loop {
            let touched = self.notice.wait_for(None);
            for (path, changed) in &*self.watched() {
                if touched.contains(path) {
                    changed.notify_one();
                }
            }
        }
    }
}

/// The process's watches; made for the first caller.
fn shared() -> Option<Arc<Shared>> {
    let mut known = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    if known.is_none() {
        let shared = Arc::new(Shared { notice: Notice::new().ok()?, watched: Mutex::default() });
        let own = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("file-watch".to_owned()).stack_size(64 << 10);
        thread.spawn(move || own.run()).ok()?;
        *known = Some(shared);
    }
    known.clone()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[tokio::test]
    async fn a_file_watch_reports_its_own_files_until_it_is_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| Utf8Path::from_path(dir.path()).unwrap().join(name);
        let (lock, tasks) = (path("runner.lock"), path("tasks.json"));
        for file in [&lock, &tasks] {
            refrain_store::write_atomic(file, b"one\n").unwrap();
        }
        let first = FileWatch::of(std::slice::from_ref(&lock), &[&tasks]).unwrap();
        let second = FileWatch::of(std::slice::from_ref(&lock), &[]).unwrap();
        refrain_store::write_atomic(&tasks, b"two\n").unwrap();
        first.changed().await;
        fs::remove_file(&lock).unwrap();
        first.changed().await;
        second.changed().await;
        drop(first);
        refrain_store::write_atomic(&lock, b"two\n").unwrap();
        second.changed().await;
    }
}
