//! How a runner wakes the screen in its own process when there is something new: how long the journal is on disk, and
//! that more was printed. Never the content: the screen reads the files at its own pace, and the runner does not wait
//! for it.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// How far the journal and the output are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProgressSnapshot {
    /// The journal's length up to which it is committed.
    pub(crate) journal: u64,
    pub(crate) prints: u64,
    pub(crate) over: bool,
}

#[derive(Debug, Default)]
pub(crate) struct LiveProgress {
    snapshot: Mutex<ProgressSnapshot>,
    changed: Condvar,
}

impl LiveProgress {
    pub(crate) fn update(&self, change: impl FnOnce(&mut ProgressSnapshot)) {
        change(&mut self.snapshot.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_all();
    }

    pub(crate) fn snapshot(&self) -> ProgressSnapshot {
        *self.snapshot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the beat is another than `seen`, or for `at_most`; forever without it.
    pub(crate) fn wait(&self, seen: ProgressSnapshot, at_most: Option<Duration>) {
        self.wait_while(|now| *now == seen, at_most);
    }

    /// The same for the journal alone: output is passed over.
    pub(crate) fn wait_for_records(&self, seen: ProgressSnapshot, at_most: Option<Duration>) {
        self.wait_while(|now| now.journal == seen.journal, at_most);
    }

    fn wait_while(&self, is_same: impl Fn(&ProgressSnapshot) -> bool, at_most: Option<Duration>) {
        let guard = self.snapshot.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |snapshot: &mut ProgressSnapshot| is_same(snapshot) && !snapshot.over;
        match at_most {
            None => drop(self.changed.wait_while(guard, same)),
            Some(at_most) => drop(self.changed.wait_timeout_while(guard, at_most, same)),
        }
    }
}
