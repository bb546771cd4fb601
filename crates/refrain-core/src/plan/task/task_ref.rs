//! Which task of which plan a loop works on, as the loop's specification names it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::LoopId;
use crate::plan::TaskId;

/// The task that a loop is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskRef {
    /// The plan; plans and loops share one namespace of a project.
    pub plan: LoopId,
    /// The tag, or phase, that the task stands under in its file.
    pub tag: String,
    /// The task.
    pub id: TaskId,
    /// What is to be done, in a line.
    pub title: String,
    /// Which loop of this task it is, from 1: a conflict, a refused landing or a person's words lead to another.
    pub round: u32,
}
