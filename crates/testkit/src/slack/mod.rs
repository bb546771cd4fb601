//! A Slack on loopback: its Web API over HTTP, and socket mode over a web socket, with one bot and all channels that
//! begin with `C`. It keeps every call and every message, is as strict as Slack if it matters, and can be down, slow,
//! or faulty.

mod api;
mod server;
mod socket;
mod world;

pub use server::Slack;
pub use world::{Call, CallFault, SlackMessage};
