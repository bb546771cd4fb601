//! Which agents there are, and how one is started and talked to.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::agent::Usage;
use crate::price::Price;

/// Which agent, started how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgentSpec {
    /// The adapter.
    pub kind: AgentKind,
    /// The program: a path, or a name looked up in `PATH`.
    pub program: String,
    /// Its arguments as the person gave them.
    pub args: Vec<String>,
    /// How the prompt reaches it.
    pub prompt_mode: PromptMode,
    /// Variables set for the agent and its gates, over everything inherited. May hold secrets: never shown.
    pub env: BTreeMap<String, Secret>,
    /// Variables that the machine which runs it has to have: their names. Their values are in no journal.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env_names: Vec<String>,
    /// Start from a short allow-list instead of the person's environment.
    pub clean_env: bool,
    /// The model to use; none leaves that to the agent.
    pub model: Option<String>,
    /// What it may do unattended.
    #[serde(default)]
    pub permissions: Permissions,
    /// What its standard output is.
    #[serde(default)]
    pub output_format: OutputFormat,
    /// What its model costs by the configuration, for an agent that does not say so itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
}

impl AgentSpec {
    /// A program without arguments, and without anything configured.
    pub fn new(kind: AgentKind, program: impl Into<String>) -> Self {
        Self {
            kind,
            program: program.into(),
            args: Vec::new(),
            prompt_mode: PromptMode::Auto,
            env: BTreeMap::new(),
            env_names: Vec::new(),
            clean_env: false,
            model: None,
            permissions: Permissions::default(),
            output_format: OutputFormat::default(),
            price: None,
        }
    }

    /// Whether its standard output is a stream of events, and not a message.
    pub fn streams(&self) -> bool {
        self.kind.streams() || matches!(self.output_format, OutputFormat::Json | OutputFormat::StreamJson)
    }

    /// The usage, with its cost by the price of the model if the agent did not report it.
    pub(crate) fn priced(&self, used: Usage) -> Usage {
        let cost = used.cost.or_else(|| self.price?.of(used.tokens));
        let is_priced = used.cost.is_none() && cost.is_some();
        Usage { cost, cost_at_least: if is_priced { used.at_least } else { used.cost_at_least }, ..used }
    }
}

/// What an agent's standard output is (seed 001, `output_format`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OutputFormat {
    /// What the adapter expects: of known agents their stream, of generic commands a message.
    #[default]
    Auto,
    /// A message.
    Text,
    /// One JSON document that holds the message.
    Json,
    /// A stream of events, one JSON object a line, as Claude Code prints it.
    StreamJson,
}

/// What an unattended agent may do (design.md section 4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Permissions {
    /// Edit and run commands in the worktree, with the agent's own confinement where it has one.
    #[default]
    Auto,
    /// The agent's own flag that bypasses every question and confinement.
    Full,
    /// What the agent is configured to: nothing is added.
    Agent,
    /// Nothing but to read: what a reviewer may.
    ReadOnly,
}

/// The adapters that exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::Display)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum AgentKind {
    /// Any command; its message is all of its standard output.
    Generic,
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// OpenCode.
    Opencode,
    /// Gemini CLI.
    Gemini,
    /// Any program that speaks the Agent Client Protocol on its standard streams.
    Acp,
}

impl AgentKind {
    pub const ALL: [Self; 6] =
        [Self::Generic, Self::Claude, Self::Codex, Self::Opencode, Self::Gemini, Self::Acp];

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.to_string() == name)
    }

    pub fn of_program(program: &str) -> Self {
        let name = program.rsplit('/').next().unwrap_or_default();
        let known = [Self::Claude, Self::Codex, Self::Opencode, Self::Gemini];
        known.into_iter().find(|kind| kind.program() == Some(name)).unwrap_or(Self::Generic)
    }

    /// The program's own name; none if only a person can say what to run.
    pub fn program(self) -> Option<&'static str> {
        match self {
            Self::Generic | Self::Acp => None,
            Self::Claude => Some("claude"),
            Self::Codex => Some("codex"),
            Self::Opencode => Some("opencode"),
            Self::Gemini => Some("gemini"),
        }
    }

    /// Whether its standard output is a stream of events, and not a message.
    pub fn streams(self) -> bool {
        match self {
            Self::Generic => false,
            Self::Claude | Self::Codex | Self::Opencode | Self::Gemini | Self::Acp => true,
        }
    }

    /// Whether it says what a run cost in money (agent-clis.md: Codex and Gemini do not).
    pub fn tells_cost(self) -> bool {
        match self {
            Self::Claude | Self::Opencode | Self::Acp => true,
            Self::Generic | Self::Codex | Self::Gemini => false,
        }
    }

    /// Whether it says what was used only at the end of a run: one iteration can overshoot a cap.
    pub fn tells_usage_at_end(self) -> bool {
        match self {
            Self::Codex | Self::Gemini | Self::Acp => true,
            Self::Claude | Self::Opencode | Self::Generic => false,
        }
    }
}

/// How a prompt reaches the agent (seed 001, `prompt_mode`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::Display)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum PromptMode {
    /// The adapter's choice; for generic commands [`PromptMode::Arg`], or standard input past the argument limit.
    Auto,
    /// One argument, the last.
    Arg,
    /// Standard input, which is a file, so no process has to feed it.
    Stdin,
    /// The variable `PROMPT`.
    Env,
    /// The path of a file that holds it, as the last argument.
    File,
}

/// A value that is stored, but never shown.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    pub fn new(value: String) -> Self {
        Self(value)
    }

    /// The value itself, for the process that needs it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    pub fn redacted() -> Self {
        Self("[redacted]".to_owned())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_redacted_in_debug_output() {
        let secret = Secret::new("hunter2".into());
        assert_eq!(format!("{secret:?}"), "[redacted]");
        assert_eq!(secret.expose(), "hunter2");
    }
}
