//! Plans: many tasks, in waves, each of them a loop. What a task is, what the graph of all of them says, what happens to a
//! plan and what comes next. What is done about that is the engine's.

mod apply;
mod event;
mod graph;
mod next_step;
mod outcome;
mod spec;
mod state;
mod task;
mod task_ref;

pub use apply::MAX_RETURNS;
pub use event::{
    FailedGate, Merged, PlanEnd, PlanEnded, PlanEvent, PlanStarted, Stop, TaskEnd, TaskEnded, TaskStarted,
    Unmerged,
};
pub use graph::Graph;
pub use next_step::{PlanLive, PlanStep, next_step};
pub use spec::{BriefSpec, PlanLimits, PlanSpec, jobs};
pub use state::{Batch, Halt, HandOver, PlanState, Return, Running, Stage, TaskState, Wave};
pub use task::{Card, Priority, Task, TaskId, TaskIdError, TaskStatus};
pub use task_ref::TaskRef;

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
