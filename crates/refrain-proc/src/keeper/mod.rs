//! The keeper: a small, single-threaded process between the runner and its agents.
//!
//! It is the same binary under another name. It is a session leader and a subreaper, so every process that an agent
//! leaves (a tool in its own session, a double fork) becomes its child. It starts each agent in a session of its own
//! with default signal dispositions and an empty mask, reports the end of the agent's own process, and then ends the
//! rest. Its standard input is a socket to the runner: when that closes, for any reason, it ends all of them and
//! exits.

mod ancestors;
mod process;
pub(crate) mod wire;

pub(crate) use ancestors::is_keeper;
pub use ancestors::{EnclosingSupervisor, enclosing};
pub(crate) use process::LEFTOVER_BOUND;
pub use process::run;
pub use wire::{FrameReader, Rung, StopLadder, send};

/// The program name under which the binary is the keeper.
pub const KEEPER_NAME: &str = "refrain-keeper";
