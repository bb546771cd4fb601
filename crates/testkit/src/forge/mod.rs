//! A forge for tests: a real bare repository to push to, an HTTP API on loopback with the part of GitHub's and GitLab's
//! that Refrain uses, and substitutes for `gh`, `glab` and `ssh` that talk to both.
//!
//! [`Forge`] is the test's handle to it, [`World`] its state and rules. Faults are set up beforehand, and every request
//! is counted by name.

mod github;
mod gitlab;
mod programs;
mod real;
mod reply;
mod repository;
mod server;
mod smart_http;
mod world;

pub(crate) use server::decoded;
pub use server::{Forge, HeldRequest};
pub use world::{Fault, Limit, World};
