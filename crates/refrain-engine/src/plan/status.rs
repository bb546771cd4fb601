//! The view of a plan, with what only the machine knows: whether its runner lives, the states of its tasks' loops, and
//! how many of them the machine is good for.

use std::collections::BTreeMap;

use refrain_core::LoopId;
use refrain_core::plan::{PlanState, jobs};
use refrain_core::view::plan::{PlanStatus, TaskLoop, status};
use refrain_core::view::{self, Alive, StatusWord};
use refrain_proc::free_memory;
use refrain_store::journal;

use crate::driver::liveness::{is_driven, is_stopped, last_error, look};
use crate::{EngineError, Service, now};

/// How many finished loops of tasks are read for their details: a plan may have thousands.
const LOOKED_INTO: usize = 100;

impl Service {
    /// The status of a plan, for people and scripts.
    pub fn plan_status(&self, id: &LoopId) -> Result<PlanStatus, EngineError> {
        let dir = self.locate_plan(id)?;
        let state: PlanState = journal::read_as(&dir)?.state;
        let alive = is_driven(&dir, state.runner.as_ref());
        let mut loops = BTreeMap::new();
        for (task, running) in state.running() {
            // One that cannot be read, or was not made yet, says nothing.
            let known = self.last_known(&running.id);
            let dir = known.project.loop_dir(&running.id);
            if let Ok(read) = journal::read_signed(&dir, &self.host.signing()) {
                let id = state.tasks[task].card.id.clone();
                let says = match &known.copy {
                    Some(_) => view::status(&read.state, Alive::default()),
                    None => look(&dir, &read.state),
                };
                loops.insert(id, TaskLoop::from(&says));
            }
        }
        let mut view = status(&state, &loops, alive, now());
        if is_stopped(state.runner.as_ref()) {
            view = view.of_stopped_runner();
        }
        if view.status == StatusWord::Crashed
            && let Some(error) = last_error(&dir, state.updated_at)
        {
            view = view.of_failed_runner(&error);
        }
        if !self.archived.is_empty() {
            // What it needs, and the branches, name the plan by its id.
            return Ok(PlanStatus { needs: None, ..view });
        }
        if view.status.has_stopped() {
            view.branches = self.plan_branches(&state);
            self.tell_uncommitted(&state, &mut view);
            self.tell_missing(&state, &mut view);
        }
        self.tell_left_out(&mut view);
        Ok(view)
    }

    /// Work of the last settled tasks that is in no commit: a secret that a person expects to have landed.
    fn tell_left_out(&self, view: &mut PlanStatus) {
        let mut settled: Vec<_> = view.tasks.iter_mut().filter(|task| task.settled_at.is_some()).collect();
        settled.sort_by_key(|task| std::cmp::Reverse(task.settled_at));
        for task in settled.into_iter().take(LOOKED_INTO) {
            // One that cannot be read says nothing here.
            let dir = task.id_of_loop.as_ref().map(|id| self.known_dir(id));
            let last = dir.and_then(|dir| journal::read(&dir).ok()?.state.git.last);
            task.left_out = last.map(|last| last.left_out).unwrap_or_default();
        }
    }
}

/// The default number of concurrent tasks on this machine.
pub fn usual_jobs() -> u32 {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    jobs(cores, free_memory())
}
