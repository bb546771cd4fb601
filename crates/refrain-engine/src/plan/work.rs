//! What takes a plan's runner its time beside the loops of its tasks: git, and the verification. Each comes to one
//! event, or to none if it was ended before its time.

use std::sync::Arc;

use refrain_core::plan::{PlanEvent, PlanState};
use refrain_git::{Cancel, GitError};
use refrain_store::RunnerLock;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinHandle, spawn_blocking, spawn_local};

use super::landing::Landing;
use super::verify::Verification;
use crate::{EngineError, chain};

/// Work in progress for the plan. Dropping it ends the work; until then no other runner drives the plan.
pub(super) struct Work {
    cancel: Cancel,
    /// The same wish as `cancel`, for async code.
    stop: watch::Sender<bool>,
    handle: JoinHandle<Option<PlanEvent>>,
}

impl Work {
    /// Runs a git step where blocking is allowed.
    pub(super) fn of_git(
        landing: &Landing,
        state: &PlanState,
        lock: &Arc<RunnerLock>,
        job: impl FnOnce(&Landing, &PlanState, &Cancel) -> Result<PlanEvent, GitError> + Send + 'static,
    ) -> Result<Self, EngineError> {
        let (landing, state, lock) = (landing.clone(), state.clone(), Arc::clone(lock));
        Self::begin(|cancel, _| {
            spawn_blocking(move || {
                let event = match job(&landing, &state, &cancel) {
                    Ok(event) => Some(event),
                    Err(GitError::Cancelled) => None,
                    Err(error) => Some(PlanEvent::Hindered { error: chain(&error) }),
                };
                drop(lock);
                event
            })
        })
    }

    pub(super) fn of_gates(verification: Verification) -> Result<Self, EngineError> {
        Self::begin(|cancel, stopped| spawn_local(verification.run(cancel, stopped)))
    }

    fn begin(
        start: impl FnOnce(Cancel, watch::Receiver<bool>) -> JoinHandle<Option<PlanEvent>>,
    ) -> Result<Self, EngineError> {
        let cancel =
            Cancel::new().map_err(|error| EngineError::Process("git cannot be supervised", error))?;
        let (stop, stopped) = watch::channel(false);
        let handle = start(cancel.clone(), stopped);
        Ok(Self { cancel, stop, handle })
    }

    /// Ends it before its time. What it had done by then is found again.
    pub(super) fn abandon(&self) {
        self.cancel.cancel();
        self.stop.send_replace(true);
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        if !self.handle.is_finished() {
            self.abandon();
        }
    }
}

/// The result of the work, once it is done; never, if there is none.
pub(super) async fn done(work: &mut Option<Work>) -> Option<PlanEvent> {
    let Some(work) = work else { return std::future::pending().await };
    outcome((&mut work.handle).await)
}

/// The result of a task of this process.
pub(super) fn outcome<T>(joined: Result<T, JoinError>) -> T {
    match joined {
        Ok(outcome) => outcome,
        // These tasks are never cancelled: the task panicked, so this thread panics too.
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}
