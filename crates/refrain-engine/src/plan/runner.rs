//! The right to drive a plan, as a value.

use super::round::fleet::TaskFleet;
use crate::driver::progress::LiveProgress;
use crate::observe::telemetry::TaskExport;
use crate::{PlanFollower, Service};
use refrain_core::LoopId;
use refrain_core::plan::{PlanEvent, PlanState};
use refrain_git::Repository;
use refrain_proc::identity;
use refrain_store::{Journal, RunnerLock};
use std::sync::Arc;

/// A plan that this process has the right to drive.
#[derive(Debug)]
pub struct PlanRunner {
    pub(super) journal: Journal<PlanState>,
    pub(super) lock: RunnerLock,
    pub(super) service: Service,
    pub(super) live_progress: Arc<LiveProgress>,
    /// The project's repository, if git was asked about it already.
    pub(super) opened: Option<Repository>,
    pub(crate) telling: Option<TaskExport>,
    pub(super) scheduler: Option<Arc<dyn TaskFleet>>,
}

impl PlanRunner {
    pub fn id(&self) -> &LoopId {
        &self.journal.state().spec.id
    }

    pub fn state(&self) -> &PlanState {
        self.journal.state()
    }

    /// The scheduler of the fleet that drives its tasks, if the plan has one.
    #[must_use]
    pub fn with_fleet(self, scheduler: Arc<dyn TaskFleet>) -> Self {
        Self { scheduler: Some(scheduler), ..self }
    }

    /// What an observer in this process reads, and is woken by.
    pub(crate) fn observed(&self) -> (&Journal<PlanState>, Arc<LiveProgress>) {
        (&self.journal, Arc::clone(&self.live_progress))
    }

    /// Follows the plan from its first event on, in this process.
    pub fn follow(&self) -> PlanFollower {
        PlanFollower::of_own(&self.journal, Arc::clone(&self.live_progress))
    }
}

/// The event that this process drives a plan from here on.
pub(super) fn own() -> PlanEvent {
    PlanEvent::RunnerStarted { runner: identity::own() }
}
