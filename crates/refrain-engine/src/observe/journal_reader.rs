//! A journal that is read as it grows: the runner may be in this process, or in another.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use refrain_core::{Machine, Record};
use refrain_store::disk::notice::Notice;
use refrain_store::journal::{Journal, JournalError, Tail};
use refrain_store::{DiskError, LoopDir, RunnerLock};
use serde::de::DeserializeOwned;

use crate::driver::progress::{LiveProgress, ProgressSnapshot};

/// How often a reader checks that the runner still lives, while nothing happens.
const ALIVE_CHECK: Duration = Duration::from_secs(2);

#[derive(Debug)]
enum Wake {
    /// The runner is in this process.
    LiveProgress(Arc<LiveProgress>),
    /// It is in another: the system says when files change.
    Files(Notice),
}

/// Reads a journal from its first record on, as it grows. Blocks; belongs on a thread of its own.
#[derive(Debug)]
pub struct JournalReader<E> {
    dir: LoopDir,
    tail: Tail<E>,
    wake: Wake,
    /// What was read, and not taken yet.
    pub(crate) queue: VecDeque<Record<E>>,
}

impl<E: DeserializeOwned> JournalReader<E> {
    /// For a machine that this process drives. Sees only committed records.
    pub(crate) fn of_own<S: Machine<Event = E>>(
        journal: &Journal<S>,
        live_progress: Arc<LiveProgress>,
    ) -> Self {
        let (dir, queue) = (journal.dir().clone(), VecDeque::new());
        Self { dir, tail: Tail::of(journal), wake: Wake::LiveProgress(live_progress), queue }
    }

    /// Of a machine that another process drives, or that has no runner.
    pub(crate) fn of(dir: LoopDir) -> Result<Self, DiskError> {
        let notice = Notice::new()?;
        notice.watch(&dir.journal());
        Ok(Self { tail: Tail::new(&dir), dir, wake: Wake::Files(notice), queue: VecDeque::new() })
    }

    /// The next event; none after all was seen of a machine without a runner.
    pub fn next_event(&mut self) -> Result<Option<Record<E>>, JournalError> {
        loop {
            if let Some(record) = self.queue.pop_front() {
                return Ok(Some(record));
            }
            // Asked before the last look, so that what came in between is seen.
            let is_free = self.files().is_some() && RunnerLock::is_free(&self.dir);
            let snapshot = self.read()?;
            if self.queue.is_empty() && (snapshot.over || is_free) {
                return Ok(None);
            }
            if self.queue.is_empty() {
                self.wait(snapshot, None);
            }
        }
    }

    /// The notices of changed files, if the runner is in another process.
    pub(crate) fn files(&self) -> Option<&Notice> {
        match &self.wake {
            Wake::LiveProgress(_) => None,
            Wake::Files(notice) => Some(notice),
        }
    }

    /// Reads what was committed since; returns how far that is.
    pub(crate) fn read(&mut self) -> Result<ProgressSnapshot, JournalError> {
        let snapshot = match &self.wake {
            Wake::LiveProgress(live_progress) => live_progress.snapshot(),
            Wake::Files(_) => ProgressSnapshot { journal: u64::MAX, ..ProgressSnapshot::default() },
        };
        self.queue.extend(self.tail.next(snapshot.journal)?);
        Ok(snapshot)
    }

    pub(crate) fn wait(&self, snapshot: ProgressSnapshot, at_most: Option<Duration>) {
        match &self.wake {
            Wake::LiveProgress(live_progress) => live_progress.wait(snapshot, at_most),
            Wake::Files(notice) => {
                notice.wait(Some(at_most.map_or(ALIVE_CHECK, |at_most| at_most.min(ALIVE_CHECK))));
            }
        }
    }
}
