//! Drives a loop or a plan: the select loop, what a runner holds while it runs, and what it finds when it begins.

pub(crate) mod account;
pub(crate) mod budget;
pub(crate) mod dispatcher;
pub(crate) mod doorbell;
pub(crate) mod drive;
pub(crate) mod input;
pub(crate) mod lifecycle;
pub(crate) mod liveness;
pub(crate) mod locks;
pub(crate) mod progress;
pub(crate) mod recovery;
pub(crate) mod runner;
pub(crate) mod signals;
