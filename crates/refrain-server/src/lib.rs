//! The server side of Refrain: protocols over which agents and other programs start, watch and control loops. A request
//! is checked against its limits and the folders that the person opened, and passed to [`refrain_engine::Service`]. No
//! loop is driven here: each has a runner of its own, which outlives this process.
//!
//! [`RequestHandler`] is what can be asked over every protocol; [`mcp`] speaks the Model Context Protocol, [`http`] serves
//! browsers and programs, [`slack`] connects to Slack, [`ntfy`] reads replies to notifications.

pub mod http;
pub mod mcp;
pub mod ntfy;
mod requests;
pub mod slack;

pub use requests::{Handovers, OpenError, RequestHandler};
