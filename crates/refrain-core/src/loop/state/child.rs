//! A child process, as the state of its loop knows it.

use jiff::Timestamp;

use crate::event::StopReason;
use crate::ids::AttemptId;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildId {
    Attempt(AttemptId),
    /// A gate: a command, or a reviewer.
    Gate {
        gate: usize,
        /// The number of its run, from 1.
        run: u32,
    },
    Critic {
        iteration: u32,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Child {
    pub started_at: Timestamp,
    /// Why it is being ended, once it is.
    pub stopping: Option<StopReason>,
    /// Whether it is killed at once, as it was asked to end again.
    pub killed: bool,
}

impl Child {
    pub(in crate::r#loop) fn new(started_at: Timestamp) -> Self {
        Self { started_at, stopping: None, killed: false }
    }
}
