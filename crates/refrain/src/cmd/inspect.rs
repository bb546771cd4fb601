//! Verbs that only read.

pub(crate) mod diff;
pub(crate) mod export;
pub(crate) mod list;
pub(crate) mod logs;
pub(crate) mod open;
pub(crate) mod overview;
pub(crate) mod report;
pub(crate) mod show;
pub(crate) mod status;
pub(crate) mod top;
pub(crate) mod usage;
pub(crate) mod verify;
pub(crate) mod watch;
