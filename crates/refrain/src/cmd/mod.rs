//! One file for each subcommand: its arguments and its `run` function. The doc comments of the arguments are the help
//! text.

pub(crate) mod connect;
pub(crate) mod control;
pub(crate) mod inspect;
pub(crate) mod launch;
pub(crate) mod memory;
pub(crate) mod plan;
pub(crate) mod setup;
mod state_file;
