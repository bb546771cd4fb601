//! `[memory]` where it says that texts are sent somewhere: only the user's own file may, as it is read where they are.

use camino::Utf8Path;
use serde::Deserialize;

use super::file;
use super::keys::Embeddings;
use super::layers::{ConfigError, Values};

/// Keys that a project's file may not have, trusted or not: what they lead elsewhere are memories of all projects.
const THE_USERS: [&str; 1] = ["embeddings"];

impl Embeddings {
    /// What the user's own file says; nothing where it cannot be read, whatever else is wrong in it.
    #[must_use]
    pub fn of_the_user(config_home: &Utf8Path) -> Option<Self> {
        let file = file::user_file(config_home).ok()??;
        toml::from_str::<OnlyMemory>(&file.text).ok()?.memory.embeddings
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct OnlyMemory {
    memory: Part,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Part {
    embeddings: Option<Embeddings>,
}

/// Refuses a project's file that would say where the user's memories are sent.
pub(super) fn refuse_in_a_project(values: &Values) -> Result<(), ConfigError> {
    let is_the_users = |path: &[String]| {
        path[0] == "memory" && path.get(1).is_some_and(|key| THE_USERS.contains(&key.as_str()))
    };
    match values.iter().find(|(path, _)| is_the_users(path)) {
        None => Ok(()),
        Some((path, given)) => Err(ConfigError::Wrong {
            at: given.origin.clone(),
            what: format!(
                "memory.{}: memories of all projects would be sent there; accepted only in your own config.toml",
                path[1]
            ),
        }),
    }
}
