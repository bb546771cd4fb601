//! One module an agent: how to start it, how to read what it prints, how to stop it.
//!
//! What all agents share is here: what an [`adapter`] is, the environment that they get, and what several of them need.

pub mod adapter;
pub mod environment;
pub mod gemini;
pub mod generic;
pub mod opencode;

mod brief;
mod faults;
mod flags;
mod message;
#[cfg(test)]
mod testing;
