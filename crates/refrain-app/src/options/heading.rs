//! The headings of options in the help and manuals of `start`, and of verbs that share some of its options.

/// What to run.
pub const RUN: &str = "What to run";
/// When it is done.
pub const DONE: &str = "When it is done";
/// What proves it.
pub const PROOF: &str = "What proves it";
/// What it may cost.
pub const COST: &str = "What it may cost";
/// Where it works.
pub const PLACE: &str = "Where it works";
/// What is shown.
pub const SHOWN: &str = "What is shown";
/// What another system left.
pub const FROM: &str = "From another system";
/// A plan of many tasks in place of one.
pub const PLAN: &str = "Many tasks: a plan";
