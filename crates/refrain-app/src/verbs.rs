//! The actions on loops and plans: a file for each verb, with its request and its implementation.

pub mod answer;
pub mod approve;
pub mod archive;
pub mod cancel;
pub mod discard;
pub mod gc;
pub mod initialize;
pub mod merge;
pub mod move_loop;
pub mod pause;
pub mod resume;
pub mod set_config;
pub mod start;
pub mod steer;
pub mod take_back;

pub use move_loop::fleet;
use refrain_core::event::Urgency;
use refrain_core::plan::PlanState;
use refrain_core::view::plan::PlanStatus;
use refrain_core::view::{Status, to_continue};
use refrain_core::{LoopId, LoopState};
use refrain_engine::{ByKind, Service, SlowRunner};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{Code, RequestError};

/// What a request to a loop or a plan came to.
#[derive(Debug)]
pub enum Outcome {
    /// The request was taken; this is the state after it.
    Answered(Box<ByKind<LoopState, PlanState>>),
    Over(&'static str),
}

/// How a loop, or a plan, stands: what `refrain status --json` prints.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum AnyStatus {
    /// A loop.
    Loop(Box<Status>),
    /// A plan.
    Plan(Box<PlanStatus>),
}

impl AnyStatus {
    pub fn of(service: &Service, id: &LoopId) -> Result<Self, RequestError> {
        Ok(match service.standing(id)? {
            ByKind::Loop(status) => {
                let merged_into = status.has_stopped().then(|| service.merged_into(id)).flatten();
                Self::Loop(Box::new(Status { merged_into, ..status }))
            }
            ByKind::Plan(status) => Self::Plan(Box::new(status)),
        })
    }
}

/// How soon something is to be done.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Urgent {
    /// End the agent now, and do not let it finish its iteration.
    pub now: bool,
}

impl Urgent {
    pub(crate) fn urgency(self) -> Urgency {
        if self.now { Urgency::Now } else { Urgency::AfterIteration }
    }
}

/// What becomes of a request to a runner that does not answer: it hangs, is stopped, or cannot be reached.
pub enum Slow<'a> {
    /// It waits, and this takes note of the runner.
    Note(&'a mut dyn FnMut(&LoopId, SlowRunner)),
    Wait,
    /// A runner that is stopped (`SIGSTOP`) is not asked: the caller could not see why an answer takes long.
    Refuse,
}

impl Slow<'_> {
    /// Refuses to ask a runner that is stopped, if the request does not wait for it.
    pub(crate) fn check(&self, service: &Service, id: &LoopId) -> Result<(), RequestError> {
        let stopped = match self {
            Self::Note(_) | Self::Wait => None,
            Self::Refuse => service.stopped_runner(id),
        };
        let Some(pid) = stopped else { return Ok(()) };
        let next = to_continue(pid);
        let error = format!("the runner of {id} is stopped (pid {pid}): {next} continues it, then ask again");
        Err(RequestError::new(Code::Refused, error))
    }

    pub(crate) fn note(&mut self, id: &LoopId, runner: SlowRunner) {
        if let Self::Note(note) = self {
            note(id, runner);
        }
    }
}
