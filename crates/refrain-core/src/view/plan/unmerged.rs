//! What has landed, and is not yet on the branch that the plan began on.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::Serialize;

use crate::plan::{PlanState, TaskId};

/// What the branch lacks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Behind {
    /// The tasks that have landed, and whose work it lacks.
    pub tasks: Vec<TaskId>,
    /// The reference that keeps their commits: `git merge` takes it.
    pub reference: String,
    /// Why it was not handed over when that was tried last; null where a wave is not complete.
    pub why: Option<String>,
}

/// What the branch lacks; none if it has all that has landed.
pub(super) fn of(state: &PlanState) -> Option<Behind> {
    let due = state.handover.due.iter().flat_map(|(_, its)| its).chain(&state.line);
    let due: HashSet<_> = due.map(|(task, _)| task).collect();
    let ids = state.tasks.iter().map(|task| &task.card.id);
    let tasks: Vec<_> = ids.filter(|id| due.contains(id)).cloned().collect();
    let (reference, why) = (state.spec.line(), state.handover.refused.clone());
    (!tasks.is_empty()).then_some(Behind { tasks, reference, why })
}
