//! Configuration: the known keys ([`keys`]), how one file is read ([`file`]), and the values of all files and variables
//! together, each with its origin ([`load`]). Whether a project's file counts is decided in [`crate::access::trust`];
//! how a start uses the values, in `refrain-app`.
//!
//! The `config` crate was weighed: it merges values after their lines are lost, and knows neither the names of keys nor
//! the nearest one. `toml` keeps the place of every key, and the published schema, derived from the types, knows the
//! rest.

mod caps;
pub mod edit;
mod file;
pub mod keys;
mod layers;
mod memory;
mod objection;
mod schema;
mod setting;
mod show;
mod value_text;
mod variables;
mod wording;

#[cfg(test)]
mod tests;

pub use caps::UserCaps;
pub use file::{ConfigFile, project_file, user_file};
pub use keys::{Config, Embeddings, Theme};
pub use layers::{AgentChoice, Places, ProjectFile, Settings, load};
pub use memory::{OwnMemory, trusted_signers};
pub use refrain_core::text::nearest;
pub use schema::schema;
pub use setting::{ConfigError, Origin};
pub use show::Entry;
pub use value_text::Command;
