//! Following a plan: its events, read from disk, by the terminal that started it and by `watch` alike.

use std::sync::Arc;

use refrain_core::Record;
use refrain_core::plan::{PlanEvent, PlanState};
use refrain_store::journal::Journal;
use refrain_store::{LoopDir, RunnerLock};

use crate::EngineError;
use crate::driver::pulse::LiveProgress;
use crate::observe::journal_reader::JournalReader;

/// Reads a plan's events as they happen. Blocks; belongs on a thread of its own.
#[derive(Debug)]
pub struct PlanFollower {
    dir: LoopDir,
    reader: JournalReader<PlanEvent>,
}

impl PlanFollower {
    pub(super) fn of_own(journal: &Journal<PlanState>, pulse: Arc<LiveProgress>) -> Self {
        Self { dir: journal.dir().clone(), reader: JournalReader::of_own(journal, pulse) }
    }

    pub(crate) fn of(dir: LoopDir) -> Result<Self, EngineError> {
        Ok(Self { reader: JournalReader::of(&dir)?, dir })
    }

    /// The next event; none once the plan has no runner and all was seen.
    pub fn next_event(&mut self) -> Result<Option<Record<PlanEvent>>, EngineError> {
        loop {
            if let Some(record) = self.reader.queue.pop_front() {
                return Ok(Some(record));
            }
            // Asked before the last look, so that what came in between is seen.
            let is_free = self.reader.files().is_some() && RunnerLock::is_free(&self.dir);
            let beat = self.reader.read()?;
            if !self.reader.queue.is_empty() {
                continue;
            }
            if beat.over || is_free {
                return Ok(None);
            }
            self.reader.wait(beat, None);
        }
    }
}
