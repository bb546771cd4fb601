//! What is shown of a plan, with what only the machine knows: whether its runner lives, how the loops of its tasks stand, and
//! how many of them it is good for.

use std::collections::BTreeMap;

use refrain_core::LoopId;
use refrain_core::plan::{PlanState, jobs};
use refrain_core::view::plan::{PlanStatus, TaskLoop, status};
use refrain_proc::{free_memory, identity};
use refrain_store::{RunnerLock, journal};

use crate::service::look;
use crate::{EngineError, Service, now};

impl Service {
    /// Whether there is a plan of that name.
    #[must_use]
    pub fn has_plan(&self, id: &LoopId) -> bool {
        self.project.plan_dir(id).exists()
    }

    /// How a plan stands, for people and scripts.
    ///
    /// # Errors
    /// [`EngineError`] where it is not there or cannot be read.
    pub fn plan_status(&self, id: &LoopId) -> Result<PlanStatus, EngineError> {
        let dir = self.plan_dir(id)?;
        let state: PlanState = journal::read_as(&dir)?.state;
        // As for a loop: a process that lives may have given the plan up, and the lock says more.
        let alive = state.runner.as_ref().and_then(identity::is_alive);
        let alive = alive.filter(|alive| !alive || !RunnerLock::is_free(&dir));
        let alive = alive.or_else(|| RunnerLock::is_free(&dir).then_some(false));
        let mut loops = BTreeMap::new();
        for (task, running) in state.running() {
            // One that cannot be read, or was not made yet, says nothing.
            let dir = self.project.loop_dir(&running.id);
            if let Ok(read) = journal::read(&dir) {
                let id = state.tasks[task].card.id.clone();
                loops.insert(id, TaskLoop::from(&look(&dir, &read.state)));
            }
        }
        Ok(status(&state, &loops, alive, now()))
    }
}

/// How many tasks are worked on at a time on this machine, where nobody says.
#[must_use]
pub fn usual_jobs() -> u32 {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    jobs(cores, free_memory())
}
