//! The state of agents' plugins: what `plugin status --json` prints.

use camino::Utf8PathBuf;
use schemars::JsonSchema;
use serde::Serialize;

use crate::spec::AgentKind;

/// An agent's plugin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PluginStatus {
    /// The agent.
    pub agent: AgentKind,
    /// How it stands as a whole.
    pub standing: PluginState,
    /// Everything that it is made of.
    pub parts: Vec<Part>,
    /// The path of the program that it calls; null where nothing is installed, or it was installed by 0.1.0.
    pub program: Option<String>,
    /// Why a shell cannot run that program; null where it can.
    pub problem: Option<String>,
}

impl PluginStatus {
    pub fn of(agent: AgentKind, parts: Vec<Part>) -> Self {
        let is_there = |part: &Part| !matches!(part.state, PartState::Missing | PartState::Unfit);
        let standing = if parts.iter().all(|part| !is_there(part)) {
            PluginState::NotInstalled
        } else if !parts.iter().all(is_there) {
            PluginState::Partly
        } else if parts.iter().all(|part| part.state == PartState::Present) {
            PluginState::Installed
        } else {
            PluginState::Older
        };
        Self { agent, standing, parts, program: None, problem: None }
    }
}

/// How a plugin stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PluginState {
    /// All of it is there, as this version has it.
    Installed,
    /// All of it is there, and some of it differs from what this version has.
    Older,
    /// Some of it is there.
    Partly,
    /// Nothing of it is there.
    NotInstalled,
}

impl PluginState {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Installed => "installed",
            Self::Older => "installed, but older",
            Self::Partly => "partly installed",
            Self::NotInstalled => "not installed",
        }
    }
}

/// A file of a plugin, or what is ours in a file of the person's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Part {
    /// The file.
    #[schemars(with = "String")]
    pub path: Utf8PathBuf,
    /// How it stands.
    pub state: PartState,
}

/// How a part of a plugin stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PartState {
    /// As this version has it.
    Present,
    /// As another version had it, or for another place of the program.
    Older,
    /// Changed by the user or another program.
    Changed,
    /// It is not there.
    Missing,
    /// Its file cannot hold it: `plugin install` says why.
    Unfit,
}

impl PartState {
    /// For people; nothing if all is as it should be.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Present => "",
            Self::Older => "older",
            Self::Changed => "changed",
            Self::Missing => "missing",
            Self::Unfit => "unfit",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plugin_stands_as_its_parts_do() {
        use PartState::{Changed, Missing, Older, Present, Unfit};
        let cases: [(&[PartState], PluginState); 7] = [
            (&[Present, Present], PluginState::Installed),
            (&[Present, Older], PluginState::Older),
            (&[Changed, Present], PluginState::Older),
            (&[Present, Missing], PluginState::Partly),
            (&[Older, Unfit], PluginState::Partly),
            (&[Missing, Unfit], PluginState::NotInstalled),
            (&[Missing], PluginState::NotInstalled),
        ];
        for (states, standing) in cases {
            let parts = states.iter().map(|state| Part { path: "/x".into(), state: *state }).collect();
            assert_eq!(PluginStatus::of(AgentKind::Codex, parts).standing, standing, "{states:?}");
        }
    }
}
