//! Saying how a task continues that a person is asked about.

use refrain_core::LoopId;
use refrain_core::plan::{PlanState, TaskId};
use refrain_engine::Service;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{Action, Context, RequestError};

/// The longest text for a task, or goal of a loop, that another program may send, in characters.
pub const LONGEST: usize = 10_000;

/// How a task that a person is asked about goes on.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tune {
    /// Which task.
    #[schemars(with = "String")]
    pub task: TaskId,
    /// What its agent is told.
    #[schemars(length(min = 1, max = LONGEST))]
    pub text: String,
}

/// Records the words for the task's next agent.
pub fn tune(
    context: &Context,
    service: &Service,
    id: &LoopId,
    request: &Tune,
) -> Result<PlanState, RequestError> {
    context.check_on(Action::Tune, service, id)?;
    Ok(service.tune(id, &request.task, request.text.clone())?)
}
