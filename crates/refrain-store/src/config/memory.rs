//! What only the user's own file may say, and is read where they are: `[memory]` where texts are sent somewhere, and `[evolution]`.

use camino::Utf8Path;
use serde::Deserialize;

use super::file;
use super::keys::{Embeddings, Evolution};
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

impl Evolution {
    /// What the user's own file says; nothing where it cannot be read, whatever else is wrong in it.
    #[must_use]
    pub fn of_the_user(config_home: &Utf8Path) -> Self {
        let file = file::user_file(config_home).ok().flatten();
        file.and_then(|file| toml::from_str::<OnlyEvolution>(&file.text).ok()).unwrap_or_default().evolution
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct OnlyEvolution {
    evolution: Evolution,
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

/// Refuses a project's file that would say where the user's memories are sent, or have an agent asked at their cost.
pub(super) fn refuse_in_a_project(values: &Values) -> Result<(), ConfigError> {
    let is_the_users = |path: &[String]| {
        path[0] == "memory" && path.get(1).is_some_and(|key| THE_USERS.contains(&key.as_str()))
    };
    if let Some((_, given)) = values.iter().find(|(path, _)| path[0] == "evolution") {
        let what = "evolution: it spends your money on every loop; accepted only in your own config.toml";
        return Err(ConfigError::Wrong { at: given.origin.clone(), what: what.to_owned() });
    }
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
