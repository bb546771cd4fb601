//! Sends an agent a message with its next attempt.

use refrain_core::event::Ask;
use refrain_core::{LoopId, MAX_STEERING, check_steering};
use refrain_engine::{ByKind, EngineError, LoopRequest, Service};
use schemars::JsonSchema;
use serde::Deserialize;

use super::Slow;
use super::resume::check_plan;
use crate::error::Code;
use crate::{Action, Context, RequestError};

/// What the agent's next prompt adds.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Steering {
    /// The words: at most 8192 bytes.
    #[schemars(length(min = 1, max = MAX_STEERING))]
    pub text: String,
}

impl Steering {
    /// Refuses a text that no agent can be given.
    pub fn check(&self) -> Result<(), RequestError> {
        if self.text.trim().is_empty() || self.text.contains('\0') {
            let what = "TEXT is empty or has a NUL";
            return Err(RequestError::usage(format!("{what}; accepted: the text that the agent is given")));
        }
        if self.text.trim() == "TEXT" {
            let what = "TEXT stands for your words, which you type in its place";
            return Err(RequestError::usage(what));
        }
        if self.text.trim() == "-" {
            let what = "-: the text is not read from standard input";
            return Err(RequestError::usage(format!("{what}; accepted: the text that the agent is given")));
        }
        check_steering(&self.text).map_err(|refusal| RequestError::usage(refusal.to_string()))
    }
}

/// Sends the text to this loop, or to each running task of the plan. Returns the loop, or the loops of the plan, that received
/// it.
pub fn steer(
    context: &Context,
    service: &Service,
    id: &LoopId,
    steering: &Steering,
    mut slow: Slow<'_>,
) -> Result<ByKind<LoopId, Vec<LoopId>>, RequestError> {
    context.check_on(Action::Steer, service, id)?;
    steering.check()?;
    slow.check(service, id)?;
    let mut tell = |id: &LoopId| {
        let ask = (Ask::Steer(steering.text.clone()), context.caller.asker());
        service.ask(id, LoopRequest::Steer, ask, |runner| slow.note(id, runner))
    };
    let plan = match service.find(id)? {
        ByKind::Loop(_) => {
            check_plan(service, &service.state(id)?)?;
            tell(id)?;
            return Ok(ByKind::Loop(id.clone()));
        }
        ByKind::Plan(_) => service.plan(id)?,
    };
    let mut told = Vec::new();
    for (_, running) in plan.running() {
        match tell(&running.id) {
            Ok(_) => told.push(running.id.clone()),
            // Its loop was not begun yet, or has just ended.
            Err(EngineError::NoLoop { .. } | EngineError::Refused { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    if told.is_empty() {
        let error = format!("no task of {id} is at work, so no agent would receive the text");
        let later = "for later tasks, write it into the task file or a file of --spec-file";
        return Err(RequestError::new(Code::Refused, error)
            .hint(format!("{later}: they are read anew for each task")));
    }
    Ok(ByKind::Plan(told))
}
