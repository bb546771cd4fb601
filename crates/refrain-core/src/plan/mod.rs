//! Plans: many tasks, in waves, each of them a loop. What a task is, what the graph of all of them says, what happens
//! to a plan and what comes next. refrain-engine carries it out.

mod apply;
mod ask;
pub mod brief;
mod event;
pub mod file;
mod graph;
mod next_step;
mod outcome;
mod problem;
mod readiness;
mod schedule;
mod spec;
mod state;
mod task;
pub mod tune;
pub mod view;

pub use apply::MAX_RETURNS;
pub use ask::{PlanGrant, TaskEdit, TaskRefusal};
pub use event::{
    AgentFault, FailedGate, MergedTask, PlanEnd, PlanEvent, PlanStarted, RemadeWave, Stop, TaskCommit,
    TaskEnd, TaskEnded, TaskStarted, UnmergedTask, WaveNumber,
};
pub use graph::Graph;
pub use next_step::{PlanLive, PlanStep, next_step};
pub use outcome::failed_gate;
pub use problem::Problem;
pub use readiness::TaskReadiness;
pub use spec::{BriefSpec, PlanLimits, PlanSpec, jobs};
pub use state::{Batch, Halt, HandOver, PlanState, Return, RunningTask, Stage, TaskState, Wave};
pub use task::remote::{RemoteFault, look_again};
pub use task::task_loop::task_loop;
pub use task::task_ref::TaskRef;
pub use task::{Card, Note, Priority, Task, TaskId, TaskIdError, TaskStatus};

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
