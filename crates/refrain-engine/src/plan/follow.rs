//! Following a plan: its events, read from disk, by the terminal that started it and by `watch` alike.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use refrain_core::Record;
use refrain_core::plan::{PlanEvent, PlanState};
use refrain_store::disk::notice::Notice;
use refrain_store::journal::{Journal, Tail};
use refrain_store::{LoopDir, RunnerLock};

use crate::EngineError;
use crate::driver::pulse::{Beat, Pulse};

/// How often a watcher makes sure that the runner still lives, while nothing happens.
const ALIVE_CHECK: Duration = Duration::from_secs(2);

/// Reads a plan's events as they happen. Blocks; belongs on a thread of its own.
#[derive(Debug)]
pub struct PlanFollower {
    dir: LoopDir,
    tail: Tail<PlanEvent>,
    wake: Wake,
    queue: VecDeque<Record<PlanEvent>>,
}

#[derive(Debug)]
enum Wake {
    /// The runner is in this process.
    Pulse(Arc<Pulse>, Beat),
    /// It is in another: the system says when files change.
    Files(Notice),
}

impl PlanFollower {
    pub(super) fn of_own(journal: &Journal<PlanState>, pulse: Arc<Pulse>) -> Self {
        let wake = Wake::Pulse(pulse, Beat::default());
        Self { dir: journal.dir().clone(), tail: Tail::of(journal), wake, queue: VecDeque::new() }
    }

    pub(super) fn of(dir: &LoopDir) -> Result<Self, EngineError> {
        let notice = Notice::new()?;
        notice.watch(&dir.journal());
        let wake = Wake::Files(notice);
        Ok(Self { dir: dir.clone(), tail: Tail::new(dir), wake, queue: VecDeque::new() })
    }

    /// The next event; none once nobody drives the plan any more and all was seen.
    ///
    /// # Errors
    /// [`EngineError`] where the journal cannot be read.
    pub fn next_event(&mut self) -> Result<Option<Record<PlanEvent>>, EngineError> {
        loop {
            if let Some(record) = self.queue.pop_front() {
                return Ok(Some(record));
            }
            // Asked before the last look, so that what came in between is seen.
            let (is_over, limit) = match &self.wake {
                Wake::Pulse(pulse, _) => (pulse.beat().over, pulse.beat().journal),
                Wake::Files(_) => (RunnerLock::is_free(&self.dir), u64::MAX),
            };
            self.queue.extend(self.tail.next(limit)?);
            if !self.queue.is_empty() {
                continue;
            }
            if is_over {
                return Ok(None);
            }
            match &mut self.wake {
                Wake::Pulse(pulse, seen) => *seen = pulse.wait(*seen, None),
                Wake::Files(notice) => notice.wait(Some(ALIVE_CHECK)),
            }
        }
    }
}
