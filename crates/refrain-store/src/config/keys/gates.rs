//! Who checks the work: `[gates]` and `[critique]`.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use camino::Utf8PathBuf;
use refrain_core::spec::Millis;
use refrain_core::values::GateVariable;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::config::value_text::{self, ValueText};

/// `[gates]`: gates by their names, and what all of them get.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Gates {
    /// Variables of gates that are commands: `NAME=VALUE`, or `NAME` to pass on the one that Refrain has.
    #[schemars(with = "Option<Vec<GateVariable>>")]
    env: Option<GatesEnv>,
    #[serde(flatten)]
    named: BTreeMap<String, Gate>,
}

impl Gates {
    pub fn named(&self) -> impl Iterator<Item = (&str, &Gate)> {
        let called_env = match &self.env {
            Some(GatesEnv::Gate(gate)) => Some(("env", gate.as_ref())),
            Some(GatesEnv::Variable(_) | GatesEnv::Variables(_)) | None => None,
        };
        called_env.into_iter().chain(self.named.iter().map(|(name, gate)| (name.as_str(), gate)))
    }

    pub fn variables(&self) -> &[GateVariable] {
        match &self.env {
            Some(GatesEnv::Variable(variable)) => std::slice::from_ref(variable),
            Some(GatesEnv::Variables(variables)) => variables,
            Some(GatesEnv::Gate(_)) | None => &[],
        }
    }
}

/// The key `env` of `[gates]`: it may be the name of a gate, too.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
enum GatesEnv {
    Variable(GateVariable),
    Variables(Vec<GateVariable>),
    Gate(Box<Gate>),
}

/// `[gates.NAME]`: either a command, or a specification and who reviews by it.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub struct Gate {
    /// The check: a shell command that exits with 0 where all is well.
    pub command: Option<String>,
    /// A file that says what the work has to be, relative to the file that names it: an agent holds the work against it.
    #[schemars(with = "Option<String>")]
    pub spec: Option<Utf8PathBuf>,
    /// Which agent: an adapter, a named agent or a command; without it the loop's own, started afresh.
    pub reviewer: Option<String>,
    /// Which model it uses.
    pub model: Option<String>,
    /// Whether it decides; else it informs.
    #[serde(default = "is_hard")]
    pub hard: bool,
    /// How long it may take.
    #[serde(default, deserialize_with = "value_text::duration")]
    #[schemars(with = "Option<ValueText>")]
    pub timeout: Option<Millis>,
    /// How often it is tried again before it counts as failed.
    #[serde(default)]
    pub retries: u32,
    /// When it is run; without it `iteration`, and `claim` where it is an agent.
    #[serde(default)]
    pub when: Option<GateMoment>,
}

/// When a gate is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GateMoment {
    /// After every iteration that changed something, and after every claim.
    Iteration,
    /// After a claim only.
    Claim,
}

fn is_hard() -> bool {
    true
}

/// `[critique]`: an agent looks at the progress now and then.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub struct Critique {
    /// Behind how many iterations each time; without it never.
    #[schemars(range(min = 1))]
    pub every: Option<NonZeroU32>,
    /// Which agent: an adapter, a named agent or a command; without it the loop's own, started afresh.
    pub critic: Option<String>,
    /// Which model it uses.
    pub model: Option<String>,
    /// How long it may take.
    #[serde(deserialize_with = "value_text::duration")]
    #[schemars(with = "Option<ValueText>", extend("default" = "5m"))]
    pub timeout: Option<Millis>,
}
