//! The folders of a project: its loops and plans, their archive, checkouts, worktrees and sessions, and the inbox for
//! requests.

pub mod archive;
pub mod checkout;
pub mod inbox;
pub mod layout;
pub mod mirrors;
pub mod moving;
pub mod pool;
pub mod projects;
pub mod sessions;
pub mod worktree;
