//! The child processes of a loop. An attempt, a gate, a reviewer, a critic and a single question are one kind of child:
//! what it reads is written to disk, its job is made, its output is read, and its end becomes one event. They differ in
//! their limits, which the core has, and in the conclusion from their end.

pub(crate) mod attempt;
pub(crate) mod checkout_dir;
pub(crate) mod gate_programs;
pub(crate) mod judge;
pub(crate) mod judge_spec;
pub(crate) mod one_shot;
pub(crate) mod quotes;
pub(crate) mod supervisor_handle;

pub(crate) mod conclusion;
mod event;
mod output;
mod start;
mod supervisor_reports;

pub(crate) use event::ChildEvent;
pub(crate) use output::{AgentRole, ChildOutput};
pub(crate) use start::{AgentStart, command_job, takes_schema};
pub(crate) use supervisor_reports::{SupervisorReports, supervise};
