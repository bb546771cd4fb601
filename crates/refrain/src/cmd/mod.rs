//! One file a subcommand: its arguments, whose comments are its help, and what it does.

pub(crate) mod connect;
pub(crate) mod control;
pub(crate) mod inspect;
pub(crate) mod launch;
pub(crate) mod memory;
pub(crate) mod plan;
pub(crate) mod setup;
