//! The keys that only the user's own file may have (`THE_USERS`), and its settings of memories.

use camino::Utf8Path;
use refrain_core::signature::PublicKey;
use serde::Deserialize;

use super::file;
use super::keys::{Embeddings, Evolution, Signers};
use super::setting::{ConfigError, Values};

/// Tables and keys that a project's file may not have, trusted or not, and why: its authors would decide for all who
/// work in it.
const THE_USERS: [(&[&str], &str); 17] = [
    (&["notify", "ntfy-replies"], "it says who answers your loops"),
    (&["slack"], "it says who commands your loops"),
    (&["fleet"], "it says where your loops and their code are sent"),
    (&["worker"], "it says whose commands run on your machine"),
    (&["telemetry"], "it says where what your loops do is sent"),
    (&["trust"], "it says whose signatures you believe"),
    (&["evolution"], "it spends your money on every loop"),
    (&["memory", "embeddings"], "it says where memories of all your projects are sent"),
    (&["sandbox", "hosts"], "it widens the sandbox"),
    (&["sandbox", "registries"], "it widens the sandbox"),
    (&["sandbox", "localhost"], "it widens the sandbox"),
    (&["sandbox", "write"], "it widens the sandbox"),
    (&["sandbox", "hide"], "it takes the place of what you hide"),
    (&["sandbox", "processes"], "it widens the sandbox"),
    (&["sandbox", "memory"], "it widens the sandbox"),
    (&["sandbox", "cpus"], "it widens the sandbox"),
    (&["memory", "judge"], "it spends your money beside every loop's caps"),
];

pub(super) fn refuse_in_a_project(values: &Values, user_file: &Utf8Path) -> Result<(), ConfigError> {
    let refused = values.iter().find_map(|(path, given)| {
        let is_below = |key: &[&str]| path.len() >= key.len() && path.iter().zip(key).all(|(a, b)| a == b);
        let (key, why) = THE_USERS.iter().find(|(key, _)| is_below(key))?;
        let what = format!("{}: {why}; accepted only in your own {user_file}", key.join("."));
        Some(ConfigError::Wrong { at: given.origin.clone(), what })
    });
    refused.map_or(Ok(()), Err)
}

/// What the user's own file says of memories beside what any file may say; the default if it cannot be read. Errors
/// elsewhere in it do not matter.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct OwnMemory {
    pub embeddings: Option<Embeddings>,
    pub judge: Option<String>,
}

impl OwnMemory {
    pub fn read(config_home: &Utf8Path) -> Self {
        let file = file::user_file(config_home).ok().flatten();
        let read = file.and_then(|file| toml::from_str::<OnlyMemory>(&file.text).ok());
        read.unwrap_or_default().memory
    }
}

impl Evolution {
    /// What the user's own file says; the default if it cannot be read. Errors elsewhere in it do not matter.
    pub fn of_the_user(config_home: &Utf8Path) -> Self {
        let file = file::user_file(config_home).ok().flatten();
        file.and_then(|file| toml::from_str::<OnlyEvolution>(&file.text).ok()).unwrap_or_default().evolution
    }
}

/// The public keys of other homes that the user's own file trusts; none if it cannot be read. Errors elsewhere in it do
/// not matter.
pub fn trusted_signers(config_home: &Utf8Path) -> Vec<PublicKey> {
    let file = file::user_file(config_home).ok().flatten();
    let read = file.and_then(|file| toml::from_str::<OnlyTrust>(&file.text).ok());
    read.unwrap_or_default().trust.signers
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct OnlyTrust {
    trust: Signers,
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
