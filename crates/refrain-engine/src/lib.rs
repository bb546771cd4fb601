//! The imperative shell: it asks the core what comes next, does it, and records what happened.
//!
//! [`Service`] is the one door for every surface: start, resume, status, list, ask, follow. A [`runner`] drives one loop:
//! one select, one handler; everything else executes a step or shows an event.

mod clock;
mod error;
mod executor;
pub mod follow;
mod pulse;
pub mod runner;
pub mod service;

pub use clock::now;
pub use error::EngineError;
pub use follow::{Follower, Sight};
pub use refrain_agents::generic::prompt_limit;
pub use refrain_proc::detach::READY as DETACHED_READY;
pub use refrain_proc::keeper;
pub use refrain_store::Project;
pub use runner::Signals;
pub use service::{Host, Listed, Located, Service};

/// Tools that Refrain runs for itself, like git.
pub mod tool {
    pub use refrain_proc::tool::{ToolError, run};
}
