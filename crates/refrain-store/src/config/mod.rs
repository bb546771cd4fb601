//! Configuration: what may stand in a file ([`keys`]), how one file is read ([`file`]), and what all of them and the
//! variables come to, each value with its origin ([`load`]). Whether a project's file counts is [`crate::access::trust`]'s to say;
//! what a start makes of the values is not decided here.
//!
//! The `config` crate was weighed: it merges values after their lines are lost, and knows neither the names of keys nor
//! the nearest one. `toml` keeps the place of every key, and the published schema, derived from the types, knows the
//! rest.

mod caps;
mod file;
mod given;
pub mod keys;
mod layers;
mod memory;
mod objection;
mod schema;
mod show;
mod variables;
mod wording;
mod written;

#[cfg(test)]
mod tests;

pub use caps::UserCaps;
pub use file::{ConfigFile, project_file, user_file};
pub use given::{ConfigError, Origin};
pub use keys::{Config, Embeddings};
pub use layers::{Chosen, Places, ProjectFile, Settings, load};
pub use memory::{OwnMemory, trusted_signers};
pub use refrain_core::text::nearest;
pub use schema::schema;
pub use show::Entry;
pub use written::Command;
