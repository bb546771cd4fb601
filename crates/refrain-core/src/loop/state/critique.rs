//! The part of a loop's state on critics.

use super::child::Child;

/// A critic in flight.
#[derive(Clone, Debug, PartialEq)]
pub struct Critiquing {
    /// The iteration that it follows.
    pub iteration: u32,
    pub child: Child,
}

/// The feedback of critics.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Feedback {
    /// The iteration after which the last one was started.
    pub(in crate::r#loop) asked: u32,
    /// The critic's message, until an iteration that got it is charged.
    pub said: Option<String>,
    /// Why it said nothing.
    pub error: Option<String>,
}
