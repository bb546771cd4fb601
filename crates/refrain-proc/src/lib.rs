//! The only place that starts processes.
//!
//! A [`Supervisor`] is one thread that does all blocking work with the processes of one loop: the socket to its
//! keeper and the pipes of its agent. Output is on disk before it is interpreted, and both pipes are always drained.
//! The [`keeper`] is a small separate process: it starts and ends agents and lets none of their descendants survive.
//! When its socket closes, for any reason, it ends them all and exits.
//!
//! Nothing here decides when to stop an agent, and nothing here knows an agent's output format.

pub mod child_io;
pub mod detach;
pub mod identity;
pub mod keeper;
pub mod lease;
pub mod limits;
pub mod orphans;
pub mod output;
pub mod probe;
pub mod program;
pub mod supervisor;
pub mod sweep;
mod system;
pub mod tool;

pub use keeper::{KEEPER_NAME, Rung, StopLadder};
pub use output::{Listener, Meter};
pub use supervisor::{Job, KeeperSpec, Report, Stdin, Supervisor};
pub use system::{OWN_PROGRAM, free_memory};
