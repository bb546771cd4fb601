//! One module an agent: how to start it, how to read what it prints, how to stop it.
//!
//! So far there is one kind, the [`generic`] command. What all agents share is here: the environment that they get.

pub mod adapter;
pub mod environment;
pub mod generic;
