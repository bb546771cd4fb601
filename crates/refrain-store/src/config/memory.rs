//! What only the user's own file may say: `[memory]` where texts are sent somewhere, or an agent is asked beside a loop, and
//! `[evolution]`, which asks one too.

use camino::Utf8Path;
use serde::Deserialize;

use super::file;
use super::keys::{Embeddings, Evolution};
use super::layers::{ConfigError, Values};

/// Keys that a project's file may not have, trusted or not: memories are of all projects, and what looks back on a loop costs
/// beside its caps.
const THE_USERS: [&str; 2] = ["embeddings", "judge"];

/// What the user's own file says of memories beside what any file may say; nothing where it cannot be read, whatever else is
/// wrong in it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct OwnMemory {
    /// What makes vectors.
    pub embeddings: Option<Embeddings>,
    /// Who looks back on loops.
    pub judge: Option<String>,
}

impl OwnMemory {
    /// That of this config home.
    #[must_use]
    pub fn read(config_home: &Utf8Path) -> Self {
        let file = file::user_file(config_home).ok().flatten();
        let read = file.and_then(|file| toml::from_str::<OnlyMemory>(&file.text).ok());
        read.unwrap_or_default().memory
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
    memory: OwnMemory,
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
                "memory.{}: it is about memories of all projects, and what is beside a loop's caps; accepted only in your own config.toml",
                path[1]
            ),
        }),
    }
}
