//! Runners of loops and plans: the select loop, the locks a runner holds while it runs, and its recovery of a dead
//! runner's work. Child processes are in `child`, steps of git in `git_steps`; the next step is decided in
//! `refrain-core`.

pub(crate) mod account;
pub(crate) mod budget;
pub(crate) mod dispatcher;
pub(crate) mod doorbell;
pub(crate) mod drive;
pub(crate) mod input;
pub(crate) mod lease;
pub(crate) mod lifecycle;
pub(crate) mod liveness;
pub(crate) mod locks;
pub(crate) mod progress;
pub(crate) mod recovery;
pub(crate) mod runner;
pub(crate) mod signals;
