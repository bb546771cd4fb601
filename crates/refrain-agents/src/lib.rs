//! One module an agent: how to start it, how to read what it prints, how to stop it.
//!
//! Whatever is known of no agent is a [`generic`] command. What all agents share is here: what an [`adapter`] is, the
//! environment that they get, how arguments are put together, how a stream's lines become events, what providers' errors
//! mean, what is shown of what was said.

pub mod acp;
pub mod adapter;
pub mod checkup;
pub mod environment;
pub mod gemini;
pub mod generic;
pub mod hook;
pub mod judge;
pub mod output_parser;
pub mod plugin;
pub mod version;

mod claude;
mod codex;
mod opencode;

mod args;
mod message;
mod provider_error;
mod summarize;
mod wire;
