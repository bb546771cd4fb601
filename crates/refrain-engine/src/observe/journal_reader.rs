//! A journal that is read as it grows: the runner may be in this process, or in another.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use refrain_core::{Machine, Record};
use refrain_store::disk::notice::Notice;
use refrain_store::journal::{Journal, JournalError, Tail};
use refrain_store::{DiskError, LoopDir};
use serde::de::DeserializeOwned;

use crate::driver::pulse::{LiveProgress, ProgressSnapshot};

/// How often a reader checks that the runner still lives, while nothing happens.
const ALIVE_CHECK: Duration = Duration::from_secs(2);

#[derive(Debug)]
enum Wake {
    /// The runner is in this process.
    LiveProgress(Arc<LiveProgress>),
    /// It is in another: the system says when files change.
    Files(Notice),
}

/// Reads a journal from its first record on.
#[derive(Debug)]
pub(crate) struct JournalReader<E> {
    tail: Tail<E>,
    wake: Wake,
    /// What was read, and not taken yet.
    pub(crate) queue: VecDeque<Record<E>>,
}

impl<E: DeserializeOwned> JournalReader<E> {
    /// For a machine that this process drives. Sees only committed records.
    pub(crate) fn of_own<S: Machine<Event = E>>(journal: &Journal<S>, pulse: Arc<LiveProgress>) -> Self {
        Self { tail: Tail::of(journal), wake: Wake::LiveProgress(pulse), queue: VecDeque::new() }
    }

    /// Of one that another process drives, or that has no runner.
    pub(crate) fn of(dir: &LoopDir) -> Result<Self, DiskError> {
        let notice = Notice::new()?;
        notice.watch(&dir.journal());
        Ok(Self { tail: Tail::new(dir), wake: Wake::Files(notice), queue: VecDeque::new() })
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
        let beat = match &self.wake {
            Wake::LiveProgress(pulse) => pulse.beat(),
            Wake::Files(_) => ProgressSnapshot { journal: u64::MAX, ..ProgressSnapshot::default() },
        };
        self.queue.extend(self.tail.next(beat.journal)?);
        Ok(beat)
    }

    /// Waits for more than this snapshot.
    pub(crate) fn wait(&self, beat: ProgressSnapshot, at_most: Option<Duration>) {
        match &self.wake {
            Wake::LiveProgress(pulse) => drop(pulse.wait(beat, at_most)),
            Wake::Files(notice) => {
                notice.wait(Some(at_most.map_or(ALIVE_CHECK, |at_most| at_most.min(ALIVE_CHECK))));
            }
        }
    }
}
