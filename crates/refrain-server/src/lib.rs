//! The door over protocols. What agents and other programs ask of loops arrives here, is held against its bounds and the
//! folders that the person opened, and goes on to [`refrain_engine::Service`]; nothing is decided about a loop here, and none
//! is driven: each has a runner of its own, which outlives this process.
//!
//! [`Desk`] is what can be asked, whatever the protocol; [`mcp`] speaks the Model Context Protocol, [`http`] that of browsers,
//! [`slack`] with people.

mod desk;
pub mod http;
pub mod mcp;
pub mod slack;

pub use desk::{Desk, DeskError, Handovers};
