//! One file a subcommand: its arguments, whose comments are its help, and what it does.

pub(crate) mod acp_bridge;
pub(crate) mod archive;
pub(crate) mod cancel;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod drive;
mod gate_args;
pub(crate) mod generate;
mod git_args;
pub(crate) mod list;
pub(crate) mod logs;
pub(crate) mod man;
pub(crate) mod pause;
pub(crate) mod promise;
pub(crate) mod report;
pub(crate) mod resume;
mod review_args;
pub(crate) mod show;
pub(crate) mod start;
pub(crate) mod status;
pub(crate) mod steer;
pub(crate) mod trust;
pub(crate) mod usage;
pub(crate) mod verify;
pub(crate) mod watch;
