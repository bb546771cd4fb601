//! Saying how a task continues that a person is asked about.

use refrain_core::LoopId;
use refrain_core::plan::{PlanState, TaskId};
use refrain_engine::Service;
use schemars::JsonSchema;
use serde::Deserialize;

use super::edit_tasks::check_open;
use crate::{Action, Context, RequestError};

/// The longest text for a task, or goal of a loop that another program sends, in characters.
pub const LONGEST: usize = 10_000;

/// How a task that a person is asked about continues.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tune {
    /// Which task.
    #[schemars(with = "String")]
    pub task: TaskId,
    /// The agent's prompt.
    #[schemars(length(min = 1, max = LONGEST))]
    pub text: String,
}

impl Tune {
    /// Refuses a text that no agent can be given.
    pub fn check(&self) -> Result<(), RequestError> {
        let length = self.text.chars().count();
        if length <= LONGEST && !self.text.trim().is_empty() && !self.text.contains('\0') {
            return Ok(());
        }
        let text = format!("the text for task {} has {length} characters", self.task);
        Err(RequestError::usage(format!("{text}; accepted: 1 to {LONGEST}, not all blank, and no NUL")))
    }
}

/// Records the words for the task's next agent.
pub fn tune(
    context: &Context,
    service: &Service,
    id: &LoopId,
    request: &Tune,
) -> Result<PlanState, RequestError> {
    context.check_on(Action::Tune, service, id)?;
    request.check()?;
    check_open(service, id)?;
    Ok(service.tune(id, &request.task, request.text.clone())?)
}
