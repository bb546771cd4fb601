//! A forge for tests: a real bare repository that is pushed to, an HTTP API on loopback with as much of GitHub's and GitLab's as
//! Refrain asks for, and programs that stand in for `gh`, `glab` and `ssh` and speak to both.
//!
//! [`Forge`] is the test's hold on it, [`World`] what it knows and by which rules it goes. What is to happen when is said
//! beforehand, and everything that is asked is counted by name.

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
pub use server::{Forge, Held};
pub use world::{Fault, Limit, World};
