//! A child process, as the state of its loop knows it.

use jiff::Timestamp;

use crate::event::StopReason;
use crate::ids::AttemptId;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildId {
    /// The agent, in an attempt.
    Attempt(AttemptId),
    /// A gate: a command, or a reviewer.
    Gate {
        /// Its place in the specification.
        gate: usize,
        /// The number of its run, from 1.
        run: u32,
    },
    Critic {
        /// The iteration that it follows.
        iteration: u32,
    },
}

/// A child in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Child {
    /// When it was recorded as started.
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
