//! The interface to the program around this crate: its texts for events, and its verbs. Both are those of the command
//! line.

use jiff::Timestamp;
use refrain_core::r#loop::{Grant, LoopState};
use refrain_core::view::plan::PlanStatus;
use refrain_core::{AttemptId, LoopId};
use refrain_engine::{FollowEvent, Service};

/// Something that a person asks of a loop, or a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Stop for now: after the iteration, or at once.
    Pause {
        /// At once.
        now: bool,
    },
    /// Go on, in a process of its own.
    Resume {
        /// Its new totals.
        grant: Grant,
        /// Whether it waits no longer for what it waits for.
        now: bool,
    },
    /// Finish with what waits for a person, who says that it is good, in a process of its own.
    Approve {
        /// The tree that they were shown; none where there is no repository.
        tree: Option<String>,
    },
    /// Go on without a person's yes to what waits for it, in a process of its own.
    SendBack {
        /// The text that the agent receives; empty for none.
        words: String,
    },
    /// Stop for good: after the iteration, or at once.
    Cancel {
        /// At once.
        now: bool,
    },
    /// Be told something with the next attempt.
    Steer { words: String },
}

/// Why something was not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Objection {
    /// It cannot be: why, and what to do next.
    Refused(String),
    /// All that it was granted is used up: what, and the words that would grant it more.
    Lacks(String, String),
}

pub trait Program: Send + Sync {
    /// Does something, and says what it came to, in a line.
    ///
    /// # Errors
    /// [`Objection`]; nothing was done then.
    fn act(&self, service: &Service, id: &LoopId, act: &Act) -> Result<String, Objection>;

    /// The new totals that a line says, and whether the loop waits no longer.
    ///
    /// # Errors
    /// What the line has that is no total, in a line.
    fn grant(&self, line: &str) -> Result<(Grant, bool), String>;

    /// Renders a loop's events, from the first one on.
    fn narrator(&self) -> Box<dyn Narrator>;

    /// What the agent of an attempt printed, in lines; the end of it where that is long.
    ///
    /// # Errors
    /// Why it cannot be shown, in a line.
    fn log(&self, service: &Service, id: &LoopId, attempt: AttemptId) -> Result<String, String>;

    /// How a plan stands, in lines of so many columns; all but its tasks.
    fn board(&self, plan: &PlanStatus, columns: usize, now: Timestamp) -> String;
}

/// Tells of one loop: text, with no other control characters in it than those of style.
pub trait Narrator {
    /// What there is to be shown of it: whole lines, or the next part of one.
    fn tell(&mut self, sight: &FollowEvent) -> String;

    /// The loop's state, from what was told.
    fn state(&self) -> Option<&LoopState>;
}
