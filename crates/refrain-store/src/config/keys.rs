//! What may stand in `refrain.toml` and in the user's `config.toml`: the types that files are read into and that the
//! published schema (`docs/schema/config.json`) is derived from. A key without a value says nothing; defaults are only
//! told here, for people and editors, and applied where a start is made.

mod fleet;
mod gates;
mod memory;
mod money;
mod start;
mod surfaces;
mod worktree;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

pub use fleet::{BlobPlace, Fleet, FleetTls, Signers, Worker};
pub use gates::{Critique, Gate, GateMoment, Gates};
pub use memory::{Embeddings, Evolution, Memory, Switch};
pub use money::{Budget, ModelPrice};
pub use start::{Agent, PROMISE, Plan, Prompt, Start};
pub use surfaces::{Notify, NotifyHow, Slack, Telemetry, Theme, Top};
pub use worktree::{Git, Protect, Sandbox, Worktrees};

/// A configuration file of Refrain.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub struct Config {
    /// What `refrain start` takes where its options do not say otherwise.
    pub start: Start,
    /// What a loop does with git.
    pub git: Git,
    /// Agents of one's own, by name: `--agent NAME`.
    pub agents: BTreeMap<String, Agent>,
    /// Prompts, by name: `--prompt-name NAME`.
    pub prompts: BTreeMap<String, Prompt>,
    /// Ways of working, by name: `--mode NAME`. One may take the place of a built-in one.
    pub modes: BTreeMap<String, Prompt>,
    /// Gates, by name: checks of the agent's work; and their variables.
    pub gates: Gates,
    /// What `refrain plan run` takes where its options do not say otherwise.
    pub plan: Plan,
    /// The worktrees that the tasks of plans work in.
    pub worktrees: Worktrees,
    /// What the work may not touch.
    pub protect: Protect,
    /// The sandbox of agents and gates.
    pub sandbox: Sandbox,
    /// Who looks at the progress.
    pub critique: Critique,
    /// How a person is notified that a loop ended, or needs them.
    pub notify: Notify,
    /// Loops from Slack, and Slack of loops; only in the user's own file.
    pub slack: Slack,
    /// What loops are told of earlier ones, and leave for later ones.
    pub memory: Memory,
    /// Who reflects on loops that are over; only in one's own file.
    pub evolution: Evolution,
    /// Where telemetry is sent.
    pub telemetry: Telemetry,
    /// How `refrain top` looks.
    pub top: Top,
    /// What loops may cost together.
    pub budget: Budget,
    /// Whose signatures are believed; only in the user's own file.
    pub trust: Signers,
    /// The machines that loops are given to (`--on fleet`); only in the user's own file.
    pub fleet: Fleet,
    /// What this machine takes of the fleet (`refrain worker`); only in the user's own file.
    pub worker: Worker,
    /// What models cost, by name, for agents that do not say what they cost.
    pub prices: BTreeMap<String, ModelPrice>,
}
