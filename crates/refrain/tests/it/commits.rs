//! Commits, branches and publishing.

pub(crate) mod committing;
pub(crate) mod committing_care;
pub(crate) mod failure_branch;
pub(crate) mod hosted;
pub(crate) mod publishing;
pub(crate) mod worktree_setup;
