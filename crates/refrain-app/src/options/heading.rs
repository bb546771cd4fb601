//! The headings of options in the help and manuals of `start`, and of verbs that share some of its options.

pub const RUN: &str = "What to run";
pub const DONE: &str = "When it is done";
pub const PROOF: &str = "What proves it";
pub const COST: &str = "What it may cost";
pub const PLACE: &str = "Where it works";
pub const SHOWN: &str = "What is shown";
pub const FROM: &str = "From another system";
/// A plan of many tasks in place of one.
pub const PLAN: &str = "Many tasks: a plan";
