//! The records of a loop that moves between machines.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::git::{GitPins, Oid};
use crate::protect::Program;
use crate::sandbox::SandboxSpec;

/// A loop that leaves this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Departure {
    /// The address of the remote that has the loop from here on, without a password.
    pub to: String,
    /// The fence of the machine that it leaves.
    pub fence: u64,
    /// The head of its branch.
    pub head: Oid,
    /// The content of its worktree, if not all of that was committed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<Oid>,
}

/// A loop that a machine takes over, with what is different there.
#[serde_with::apply(Option => #[serde(default, skip_serializing_if = "Option::is_none")])]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Arrival {
    /// The address of the remote that had the loop, without a password.
    pub from: String,
    /// Higher than the fence of every machine that had the loop before.
    pub fence: u64,
    /// The commit with which this machine claimed the loop at the remote; none if the loop had never reached the remote.
    pub claim: Option<Oid>,
    /// The name of the machine.
    pub host: String,
    /// The project.
    #[schemars(with = "String")]
    pub project: Utf8PathBuf,
    /// The loop's worktree.
    #[schemars(with = "String")]
    pub worktree: Utf8PathBuf,
    /// The branch of that worktree, if the loop worked in the checkout of its user before.
    pub branch: Option<String>,
    /// The folder that the agent is started in.
    #[schemars(with = "String")]
    pub working_dir: Utf8PathBuf,
    /// The programs of agents that have another path here, each with the new path.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub agents: BTreeMap<String, String>,
    /// What git runs here, and where it pushes.
    pub pins: Option<Box<GitPins>>,
    /// The programs that the gates look up, as they are here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<Program>,
    /// Its sandbox, as far as the user of this machine allows it, or as that user asks for it; none if it has none, or if it
    /// stays as it was.
    pub sandbox: Option<SandboxSpec>,
}
