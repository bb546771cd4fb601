//! One module per agent: how to start it, read its output and stop it.
//!
//! Any other command is a [`generic`] agent. Shared code is here: what an [`adapter`] is, the agents' environment,
//! command lines, turning a stream's lines into events, the meaning of providers' errors, and shortening output for
//! display.
//!
//! Processes are started by `refrain-proc`; this crate only describes them.

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
