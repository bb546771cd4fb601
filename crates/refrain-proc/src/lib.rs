//! The only starter of processes.
//!
//! A [`Supervisor`] is one thread that owns everything of one loop's processes that can block: the socket to its keeper
//! and the pipes of its agent. What the agent prints is on disk before anyone looks at it, and both pipes are drained
//! always. The [`keeper`] is a small process of its own: it starts agents, ends them, and lets none of their descendants
//! survive; when its socket closes, for whatever reason, it ends everybody and exits.
//!
//! Nothing here decides when to stop somebody, and nothing here knows an agent's language.

pub mod child_io;
pub mod detach;
pub mod identity;
pub mod keeper;
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
pub use supervisor::{Job, KeeperSpec, Report, Supervisor};
pub use system::{OWN_PROGRAM, free_memory};
