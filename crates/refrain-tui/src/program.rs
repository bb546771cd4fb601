//! The interface to the program around this crate: its texts for events, and its verbs. Both are those of the command
//! line.

use refrain_core::r#loop::{Grant, LoopState};
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
    /// Resume, in a process of its own.
    Resume {
        /// Its new totals.
        grant: Grant,
        /// Whether to end its wait.
        now: bool,
    },
    /// Approve the waiting work, and finish in a process of its own.
    Approve {
        /// The tree that the user was shown; none without a repository.
        tree: Option<String>,
    },
    /// Continue without approval, in a process of its own.
    SendBack {
        /// The text that the agent receives; empty for none.
        words: String,
    },
    /// Stop for good: after the iteration, or at once.
    Cancel {
        /// At once.
        now: bool,
    },
    /// Steer the next attempt.
    Steer { words: String },
    /// Answer its question, and continue in a process of its own.
    Answer { words: String },
    /// Merge its branch into the branch that is checked out.
    Merge {
        /// As one commit.
        squash: bool,
    },
    /// Put it away; its name is free again.
    Archive,
}

/// A loop to be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewLoop {
    pub goal: String,
    pub agent: String,
    /// Gates as `NAME=CMD`.
    pub gates: Vec<String>,
    /// worktree, branch or folder.
    pub place: &'static str,
}

/// Why something was not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Objection {
    /// It was refused: why, and what to do next.
    Refused(String),
    /// A limit is used up: which, and the input that would raise it.
    Lacks(String, String),
}

pub trait Program: Send + Sync {
    /// Executes an action; returns a line about its result.
    ///
    /// # Errors
    /// [`Objection`]; nothing was done then.
    fn act(&self, service: &Service, id: &LoopId, act: &Act) -> Result<String, Objection>;

    /// Starts a loop in the project of `service`, in a process of its own.
    ///
    /// # Errors
    /// Why it was not started, in a line.
    fn start(&self, service: &Service, new: &NewLoop) -> Result<LoopId, String>;

    /// Parses new limits from a line; also whether to end the loop's wait.
    ///
    /// # Errors
    /// The part of the line that is no limit, in a line.
    fn grant(&self, line: &str) -> Result<(Grant, bool), String>;

    /// Renders a loop's events, from the first one on.
    fn narrator(&self) -> Box<dyn Narrator>;

    /// The output of an attempt's agent, of the latest one by default, in lines; only the end of a long one. Of a plan
    /// its status.
    ///
    /// # Errors
    /// Why it cannot be shown, in a line.
    fn log(&self, service: &Service, id: &LoopId, attempt: Option<AttemptId>) -> Result<String, String>;

    /// What a loop has changed so far, in lines.
    ///
    /// # Errors
    /// Why it cannot be shown, in a line.
    fn changes(&self, service: &Service, id: &LoopId) -> Result<String, String>;

    /// Shows a text in the user's pager, from its end or its beginning; false if there is no pager or it fails.
    fn page(&self, text: &str, at_end: bool) -> bool;
}

/// Renders one loop's events as text, with no control characters but style sequences.
pub trait Narrator {
    /// The text for an event: whole lines, or the next part of one.
    fn tell(&mut self, sight: &FollowEvent) -> String;

    /// The loop's state after the events so far.
    fn state(&self) -> Option<&LoopState>;
}
