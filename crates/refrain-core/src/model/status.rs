//! The status of a loop or a plan, in a word.

use schemars::JsonSchema;
use serde::Serialize;

use crate::event::End;

/// Where a loop stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema, strum::IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum StatusWord {
    /// A runner drives it.
    Running,
    /// A runner drives it, and waits.
    Waiting,
    /// Stopped for now.
    Paused,
    /// Moved to another machine.
    Moved,
    /// Stopped until a person did something.
    Blocked,
    /// It has not stopped, but its runner is gone.
    Crashed,
    /// Done.
    Completed,
    /// Stopped for good by a person.
    Cancelled,
    /// Every granted iteration is used.
    IterationCap,
    /// All the money or tokens granted are used.
    BudgetExceeded,
    /// Its own duration is over.
    TimedOut,
    /// The same failure came back too often.
    Stuck,
    /// It ended in an error.
    Failed,
}

impl StatusWord {
    /// Whether it is over: nothing more happens unless a person resumes it.
    pub fn has_stopped(self) -> bool {
        !matches!(self, Self::Running | Self::Waiting)
    }

    /// Whether nothing continues it.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Cancelled)
    }

    /// Whether a loop that asks nothing takes an answer: it stopped, and a person's words may help it on.
    pub fn takes_answer(self) -> bool {
        use StatusWord::{Blocked, BudgetExceeded, Failed, IterationCap, Stuck, TimedOut};
        matches!(self, Blocked | Failed | IterationCap | BudgetExceeded | TimedOut | Stuck)
    }

    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl From<End> for StatusWord {
    fn from(end: End) -> Self {
        match end {
            End::Completed { .. } => Self::Completed,
            End::Cancelled => Self::Cancelled,
            End::IterationCap => Self::IterationCap,
            End::Stuck => Self::Stuck,
            End::TimedOut => Self::TimedOut,
            End::BudgetExceeded { .. } => Self::BudgetExceeded,
            End::Blocked { .. } => Self::Blocked,
            End::Paused => Self::Paused,
        }
    }
}
