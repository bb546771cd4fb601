//! What a loop was asked to do: the specification, pinned in the journal's first event and never changed afterwards
//! (limits can be granted anew by `resume`; what is in force then is in [`crate::LoopState`]).

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use camino::Utf8PathBuf;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::agent::Usd;
use crate::budget::Caps;
use crate::gate::{Check, GateSpec};
use crate::git::{GitSpec, Workflow};
use crate::ids::LoopId;
use crate::mirror::Mirror;
use crate::plan::TaskRef;
use crate::price::Price;
use crate::promise::Promise;
use crate::protect::Part;
use crate::stuck;

/// One loop's specification.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spec {
    /// The loop's name in its project.
    pub id: LoopId,
    /// The task that it is about, where it is a plan's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskRef>,
    /// What is run, and how it is talked to; in a state, the agent in force, which `--on-stuck` may have changed.
    pub agent: AgentSpec,
    /// The person's prompt, unchanged.
    pub prompt: String,
    /// Whether anything is added to the prompt (`--no-iteration-context` says no).
    pub iteration_context: bool,
    /// The words that claim the work done; none with `--no-promise`.
    pub promise: Option<Promise>,
    /// Where to stop. What `start` granted; `resume` may grant more.
    pub limits: Limits,
    /// The project: the main worktree of the repository, else the folder.
    #[schemars(with = "String")]
    pub project: Utf8PathBuf,
    /// The checkout that the agent works in, the main one or a linked one; else the project's folder.
    #[schemars(with = "String")]
    pub worktree: Utf8PathBuf,
    /// The folder that the agent is started in, in that checkout or anywhere.
    #[schemars(with = "String")]
    pub working_dir: Utf8PathBuf,
    /// What it does with git.
    #[serde(default)]
    pub git: GitSpec,
    /// The checks that prove its work, in the order in which they are run.
    #[serde(default)]
    pub gates: Vec<GateSpec>,
    /// What its work may not touch.
    #[serde(default, skip_serializing_if = "ProtectSpec::is_empty")]
    pub protect: ProtectSpec,
    /// The gates are asked about a checkout of the candidate elsewhere, not in the worktree (`--clean-checkout`).
    #[serde(default, skip_serializing_if = "is_false")]
    pub clean_checkout: bool,
    /// When it is stuck, and what is done then.
    #[serde(default)]
    pub stuck: StuckSpec,
    /// Who looks at its progress now and then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub critique: Option<CritiqueSpec>,
    /// What its project's file allowed all loops of the project when it was started; the user's own caps are read as it
    /// goes, and the lower one holds.
    #[serde(default, skip_serializing_if = "Caps::is_none")]
    pub caps: Caps,
    /// Its work is kept on a failure branch also where it ends at its cap or its time (`refrain run`, seed 004).
    #[serde(default, skip_serializing_if = "is_false")]
    pub keep_failed: bool,
    /// What it looks like in the files of other systems (`run`: seed 004's).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mirrors: Vec<Mirror>,
    /// How deep in loops this one was started: 0 by a person, 1 by an agent of such a loop.
    pub depth: u32,
    /// How much of one stream of an attempt is kept, in bytes; past it the middle is dropped with a visible mark.
    pub output_cap: u64,
}

impl Spec {
    /// What is kept of one stream of one attempt unless configured: 1 GiB (design.md section 4).
    pub const OUTPUT_CAP: u64 = 1 << 30;
    /// Loops inside loops: one started by a person is at depth 0; at this depth a start is refused.
    pub const MAX_DEPTH: u32 = 2;

    /// Whether there is a gate that decides.
    #[must_use]
    pub fn has_hard_gates(&self) -> bool {
        self.gates.iter().any(|gate| gate.hard)
    }

    /// Whether an agent that ends well without a word claims by what it changed: a task's does, where gates decide about it
    /// (seed 001: unknown, so that verification decides).
    #[must_use]
    pub fn hears_results(&self) -> bool {
        self.task.is_some() && self.promise.is_some() && self.has_hard_gates()
    }

    /// Every agent that it may start.
    pub fn agents_mut(&mut self) -> impl Iterator<Item = &mut AgentSpec> {
        let change = match &mut self.stuck.answer {
            OnStuck::Change(agent) => Some(agent.as_mut()),
            OnStuck::Stop | OnStuck::Ask => None,
        };
        let reviewers = self.gates.iter_mut().filter_map(|gate| match &mut gate.check {
            Check::Review(review) => Some(&mut review.agent),
            Check::Command(_) => None,
        });
        let critic = self.critique.as_mut().map(|critique| &mut critique.critic);
        std::iter::once(&mut self.agent).chain(change).chain(critic).chain(reviewers)
    }

    /// Every agent that it may start, to be looked at.
    pub fn agents(&self) -> impl Iterator<Item = &AgentSpec> {
        let change = match &self.stuck.answer {
            OnStuck::Change(agent) => Some(agent.as_ref()),
            OnStuck::Stop | OnStuck::Ask => None,
        };
        let reviewers = self.gates.iter().filter_map(|gate| gate.reviewer());
        let critic = self.critique.as_ref().map(|critique| &critique.critic);
        std::iter::once(&self.agent).chain(change).chain(critic).chain(reviewers)
    }

    /// The agents that judge its work: the critic, and those that gates are.
    pub fn judges(&self) -> impl Iterator<Item = &AgentSpec> {
        let critic = self.critique.as_ref().map(|critique| &critique.critic);
        critic.into_iter().chain(self.gates.iter().filter_map(GateSpec::reviewer))
    }

    /// Whether there is something to be looked at behind each attempt.
    #[must_use]
    pub fn proves(&self) -> bool {
        !self.gates.is_empty() || !self.protect.is_empty()
    }

    /// Whether the loop needs its worktree for itself (design.md section 5).
    #[must_use]
    pub fn needs_worktree_alone(&self) -> bool {
        (self.git.workflow != Workflow::None || self.proves()) && !self.git.shared
    }

    /// The loop's own folder in the worktree: what the agent reads and writes.
    #[must_use]
    pub fn worktree_dir(&self) -> Utf8PathBuf {
        self.worktree.join(".refrain").join(self.id.as_str())
    }

    /// The contract with the agent, `state.md`.
    #[must_use]
    pub fn state_file(&self) -> Utf8PathBuf {
        self.worktree_dir().join("state.md")
    }

    /// What failed, verbatim, `context.md`.
    #[must_use]
    pub fn context_file(&self) -> Utf8PathBuf {
        self.worktree_dir().join("context.md")
    }
}

/// What a loop's work may not touch (design.md, "Claim and proof"); what the globs mean is [`crate::protect`]'s.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProtectSpec {
    /// Globs of paths that stay as they are (`--protect`).
    #[serde(default)]
    pub frozen: Vec<String>,
    /// Globs of paths that may gain files, but not change or lose them (`--protect-existing`).
    #[serde(default)]
    pub existing: Vec<String>,
    /// Parts of manifests (`--auto-gates`).
    #[serde(default)]
    pub parts: Vec<Part>,
}

impl ProtectSpec {
    /// Whether nothing is protected.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.frozen.is_empty() && self.existing.is_empty() && self.parts.is_empty()
    }
}

/// When a loop is stuck, and what is done then (design.md, "Errors are classified").
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StuckSpec {
    /// How often the same failure comes in a row before the strategy is to shift.
    pub threshold: u32,
    /// What is done where that did not help.
    #[serde(default)]
    pub answer: OnStuck,
}

impl Default for StuckSpec {
    fn default() -> Self {
        Self { threshold: stuck::THRESHOLD, answer: OnStuck::Stop }
    }
}

/// What is done with a loop that is stuck (`--on-stuck`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnStuck {
    /// It ends as stuck.
    #[default]
    Stop,
    /// It waits for a person.
    Ask,
    /// It goes on with another agent, or another model; where that one is stuck too, it ends as stuck.
    Change(Box<AgentSpec>),
}

/// Who looks at a loop's progress, and when.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CritiqueSpec {
    /// Behind how many charged iterations each time; at least 1.
    pub every: u32,
    /// The critic.
    pub critic: AgentSpec,
    /// How long it may take.
    #[serde(rename = "timeout_ms")]
    pub timeout: Millis,
}

impl CritiqueSpec {
    /// How long a critic may take unless something else is said: 5 minutes.
    pub const TIMEOUT: Millis = Millis(5 * 60 * 1000);
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
fn is_false(value: &bool) -> bool {
    !value
}

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
    /// Whether its standard output is a stream of events, and not a message.
    #[must_use]
    pub fn streams(&self) -> bool {
        self.kind.streams() || matches!(self.output_format, OutputFormat::Json | OutputFormat::StreamJson)
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
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
    /// Every one.
    pub const ALL: [Self; 6] =
        [Self::Generic, Self::Claude, Self::Codex, Self::Opencode, Self::Gemini, Self::Acp];

    /// The adapter of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.to_string() == name)
    }

    /// The kind of a program, by its name.
    #[must_use]
    pub fn of_program(program: &str) -> Self {
        let name = program.rsplit('/').next().unwrap_or_default();
        let known = [Self::Claude, Self::Codex, Self::Opencode, Self::Gemini];
        known.into_iter().find(|kind| kind.program() == Some(name)).unwrap_or(Self::Generic)
    }

    /// The program's own name; none where only a person can say what to run.
    #[must_use]
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
    #[must_use]
    pub fn streams(self) -> bool {
        match self {
            Self::Generic => false,
            Self::Claude | Self::Codex | Self::Opencode | Self::Gemini | Self::Acp => true,
        }
    }

    /// Whether it says what a run cost in money (agent-clis.md: Codex and Gemini do not).
    #[must_use]
    pub fn tells_cost(self) -> bool {
        match self {
            Self::Claude | Self::Opencode | Self::Acp => true,
            Self::Generic | Self::Codex | Self::Gemini => false,
        }
    }

    /// Whether it says what was used only at the end of a run: one iteration can overshoot a cap.
    #[must_use]
    pub fn tells_usage_at_end(self) -> bool {
        match self {
            Self::Codex | Self::Gemini | Self::Acp => true,
            Self::Claude | Self::Opencode | Self::Generic => false,
        }
    }
}

impl fmt::Display for AgentKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Generic => f.write_str("generic"),
            Self::Claude => f.write_str("claude"),
            Self::Codex => f.write_str("codex"),
            Self::Opencode => f.write_str("opencode"),
            Self::Gemini => f.write_str("gemini"),
            Self::Acp => f.write_str("acp"),
        }
    }
}

/// How a prompt reaches the agent (seed 001, `prompt_mode`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PromptMode {
    /// The adapter's choice; for generic commands [`PromptMode::Arg`], or standard input past the argument limit.
    Auto,
    /// One argument, the last.
    Arg,
    /// Standard input, which is a file: nobody has to feed it.
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
    /// Wraps a value.
    #[must_use]
    pub fn new(value: String) -> Self {
        Self(value)
    }

    /// The value itself, for the process that needs it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// What stands in its place wherever people look.
    #[must_use]
    pub fn redacted() -> Self {
        Self("[redacted]".to_owned())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

/// Where a loop stops, and where an attempt does. `None` is no limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Limits {
    /// Iterations that may be charged.
    pub max_iterations: Option<u32>,
    /// The loop's own duration: wall time less pauses and waits, and less the time without a runner.
    #[serde(rename = "max_duration_ms")]
    pub max_duration: Option<Millis>,
    /// One attempt's duration.
    #[serde(rename = "timeout_ms")]
    pub timeout: Option<Millis>,
    /// How long one attempt may print nothing.
    #[serde(rename = "idle_timeout_ms")]
    pub idle_timeout: Option<Millis>,
    /// Rest between iterations.
    #[serde(rename = "pause_ms")]
    pub pause: Option<Millis>,
    /// Money that may be spent.
    #[serde(default, rename = "max_cost_usd")]
    pub max_cost: Option<Usd>,
    /// Tokens that may be used, in and out.
    #[serde(default)]
    pub max_tokens: Option<u64>,
    /// How long the loop may wait for a provider in a row; none is 24 h for a limit and 2 h for an outage.
    #[serde(default, rename = "retry_for_ms")]
    pub retry_for: Option<Millis>,
}

impl Limits {
    /// The default cap (all seeds but one agree on it; section 8, conflict 1).
    pub const DEFAULT_ITERATIONS: u32 = 20;
    /// How long a known agent may print nothing unless something else is said: none of them gives up on a model that hangs
    /// (agent-clis.md, trap 5).
    pub const DEFAULT_SILENCE: Millis = Millis(30 * 60 * 1000);
    /// The most that one `start`, or one `resume` on top of what is charged, may grant (seed 000, FR-NL13).
    pub const MAX_GRANT: u32 = 200;
}

/// A duration in whole milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Millis(pub u64);

impl From<Millis> for Duration {
    fn from(Millis(ms): Millis) -> Self {
        Duration::from_millis(ms)
    }
}

impl From<Duration> for Millis {
    /// Rounds down; the longest duration becomes the largest number.
    fn from(duration: Duration) -> Self {
        Self(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for Millis {
    /// As a person would say it: `0.4s`, `12s`, `2m 15s`, `1h 5m`, `3d 4h`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = self.0 / 1000;
        match s {
            0..10 => write!(f, "{s}.{}s", self.0 % 1000 / 100),
            10..60 => write!(f, "{s}s"),
            60..3600 => write!(f, "{}m {}s", s / 60, s % 60),
            3600..86400 => write!(f, "{}h {}m", s / 3600, s % 3600 / 60),
            _ => write!(f, "{}d {}h", s / 86400, s % 86400 / 3600),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_people_say_them() {
        for (ms, shown) in [
            (0, "0.0s"),
            (449, "0.4s"),
            (9_999, "9.9s"),
            (59_999, "59s"),
            (135_000, "2m 15s"),
            (3_900_000, "1h 5m"),
            (273_600_000, "3d 4h"),
        ] {
            assert_eq!(Millis(ms).to_string(), shown);
        }
    }

    #[test]
    fn a_secret_shows_itself_to_nobody() {
        let secret = Secret::new("hunter2".into());
        assert_eq!(format!("{secret:?}"), "[redacted]");
        assert_eq!(secret.expose(), "hunter2");
    }
}
