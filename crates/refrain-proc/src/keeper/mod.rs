//! The keeper: a small, single-threaded process between the runner and its agents.
//!
//! It is the same binary under another name. It is a session leader and a subreaper, so whatever an agent leaves behind
//! (a tool in its own session, a double fork) becomes its child. It starts each agent in a session of its own with default
//! signal dispositions and an empty mask, tells when the agent's own process ends, and then ends what is left. Its
//! standard input is a socket to the runner: when that closes, for whatever reason, it ends everybody and exits.

mod enclosing;
mod process;
pub(crate) mod wire;

pub(crate) use enclosing::is_keeper;
pub use enclosing::{EnclosingSupervisor, enclosing};
pub(crate) use process::LEFTOVER_BOUND;
pub use process::run;
pub use wire::{Rung, StopLadder};

/// The name under which the binary is the keeper.
pub const KEEPER_NAME: &str = "refrain-keeper";
