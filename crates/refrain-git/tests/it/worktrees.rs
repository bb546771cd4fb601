//! Worktrees, clean checkouts, and the pool of a plan.

pub(crate) mod checkouts;
pub(crate) mod clean;
pub(crate) mod places;
pub(crate) mod pool;
