//! What a start takes: `[start]`, `[plan]`, and the agents and prompts that they name.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use refrain_core::agent::Usd;
use refrain_core::mirror::Mirror;
use refrain_core::plan::PlanLimits;
use refrain_core::promise::{MatchMode, PromiseText};
use refrain_core::spec::{
    AgentKind, Limits, Millis, OutputFormat, Permissions, PromptMode, Secret, Spec, StuckSpec,
};
use refrain_core::values::{self, Limit, OnStuck};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::config::value_text::{self, Command, ValueText};

/// The words that claim the work done where nothing else is said.
pub const PROMISE: &str = "COMPLETE";

/// `[start]`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub struct Start {
    /// The adapter or the named agent that is run; without it the kind follows the program's name.
    pub agent: Option<String>,
    /// What to run: one text, split like a shell's, or a list of words.
    pub command: Option<Command>,
    /// More arguments for it.
    #[serde(deserialize_with = "value_text::args")]
    #[schemars(with = "Option<Command>")]
    pub agent_arg: Option<Vec<String>>,
    /// Variables set for it.
    pub env: BTreeMap<String, Secret>,
    /// Start it from a short list of variables, not from all of the person's.
    #[schemars(extend("default" = false))]
    pub clean_env: Option<bool>,
    /// How the prompt reaches it.
    #[schemars(extend("default" = "auto"))]
    pub prompt_mode: Option<PromptMode>,
    /// What its standard output is.
    #[schemars(extend("default" = "auto"))]
    pub output_format: Option<OutputFormat>,
    /// Which model it uses; without it its own choice.
    pub model: Option<String>,
    /// What it may do unattended.
    #[schemars(extend("default" = "auto"))]
    pub permissions: Option<Permissions>,
    /// Which of the named prompts is the task, where the command line has none.
    pub prompt_name: Option<String>,
    /// Whether there is a promise; without one the first run that ends with exit code 0 is the end.
    #[schemars(extend("default" = true))]
    pub promise: Option<bool>,
    /// The words that claim the work done.
    #[schemars(extend("default" = PROMISE))]
    pub completion_promise: Option<PromiseText>,
    /// Where the promise counts; without it `tag` for known agents, `plain` for commands.
    pub promise_match: Option<MatchMode>,
    /// How many iterations at most.
    #[serde(deserialize_with = "value_text::iterations")]
    #[schemars(with = "Option<ValueText>", extend("minimum" = 1, "maximum" = 200, "default" = Limits::DEFAULT_ITERATIONS))]
    pub max_iterations: Option<u32>,
    /// How long the loop may take, less pauses and waits: seconds, or like "90s", "1h30m"; or "none".
    #[serde(deserialize_with = "value_text::duration_limit")]
    #[schemars(with = "Option<ValueText>", extend("default" = "none"))]
    pub max_duration: Option<Limit<Millis>>,
    /// How much money the loop may cost, in US dollars; or "none".
    #[serde(deserialize_with = "value_text::cost_limit")]
    #[schemars(with = "Option<ValueText>", extend("default" = "none"))]
    pub max_cost: Option<Limit<Usd>>,
    /// How many tokens the loop may use, in and out: 500000, "500k", "2M"; or "none".
    #[serde(deserialize_with = "value_text::token_limit")]
    #[schemars(with = "Option<ValueText>", extend("default" = "none"))]
    pub max_tokens: Option<Limit<u64>>,
    /// How long the loop may wait for a provider in a row; without it 24h for a limit and 2h for an outage.
    #[serde(deserialize_with = "value_text::duration_limit")]
    #[schemars(with = "Option<ValueText>")]
    pub retry_for: Option<Limit<Millis>>,
    /// How long one attempt may take; or "none".
    #[serde(deserialize_with = "value_text::duration_limit")]
    #[schemars(with = "Option<ValueText>", extend("default" = "none"))]
    pub timeout: Option<Limit<Millis>>,
    /// How long an attempt that took too long has to come to an end once it was asked to, before it is made to; without it
    /// 3s for most agents.
    #[serde(deserialize_with = "value_text::duration")]
    #[schemars(with = "Option<ValueText>")]
    pub timeout_grace: Option<Millis>,
    /// How long one attempt may print nothing, or "none"; without it 30m for known agents.
    #[serde(deserialize_with = "value_text::duration_limit")]
    #[schemars(with = "Option<ValueText>")]
    pub idle_timeout: Option<Limit<Millis>>,
    /// How long to rest between iterations; or "none".
    #[serde(deserialize_with = "value_text::pause")]
    #[schemars(with = "Option<ValueText>", extend("default" = "none"))]
    pub pause: Option<Limit<Millis>>,
    /// How often the same failure comes in a row before the prompt asks the agent to try something else; two more, and the loop is
    /// stuck.
    #[schemars(range(min = 1, max = 100), extend("default" = StuckSpec::THRESHOLD))]
    pub stuck_threshold: Option<u32>,
    /// What is done with a loop that is stuck: "stop", "ask", "model=NAME", "agent=NAME".
    #[schemars(extend("default" = "stop"))]
    pub on_stuck: Option<OnStuck>,
    /// Run gates in a clean checkout elsewhere, which has only what a commit would have, and the caches that gates wrote on the commit that the loop starts from.
    #[schemars(extend("default" = false))]
    pub clean_checkout: Option<bool>,
    /// A claim that its gates proved ends a loop only once a person approved it: refrain approve.
    #[schemars(extend("default" = false))]
    pub require_approval: Option<bool>,
    /// Other loops may work in the same worktree: do not mention it.
    #[schemars(extend("default" = false))]
    pub share_worktree: Option<bool>,
    /// Whether the gates and protections that the project's files offer are taken (`--auto-gates`).
    #[schemars(extend("default" = false))]
    pub auto_gates: Option<bool>,
    /// Whether anything is added to the prompt.
    #[schemars(extend("default" = true))]
    pub iteration_context: Option<bool>,
    /// The systems in whose files a loop is shown (`--mirror`).
    #[serde(deserialize_with = "value_text::mirrors")]
    #[schemars(with = "Option<Command>", extend("default" = []))]
    pub mirrors: Option<Vec<Mirror>>,
    /// How much of one stream of an attempt is kept, in bytes or like "512MiB"; past it the middle is dropped.
    #[serde(deserialize_with = "value_text::bytes")]
    #[schemars(with = "Option<ValueText>", extend("default" = Spec::OUTPUT_CAP))]
    pub output_cap: Option<u64>,
}

/// `[plan]`: defaults of `refrain plan run`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub struct Plan {
    /// How many tasks are worked on at a time; without it as many as cores and memory allow, 8 at most.
    #[serde(deserialize_with = "value_text::jobs")]
    #[schemars(with = "Option<ValueText>", extend("minimum" = 1, "maximum" = values::MOST_JOBS))]
    pub jobs: Option<u32>,
    /// Whether a task starts as soon as its own dependencies have landed, and not with its wave.
    #[schemars(extend("default" = false))]
    pub pipeline: Option<bool>,
    /// How many iterations one task may take.
    #[serde(deserialize_with = "value_text::iterations")]
    #[schemars(with = "Option<ValueText>", extend("minimum" = 1, "maximum" = 200, "default" = PlanLimits::PER_TASK))]
    pub max_iterations_per_task: Option<u32>,
    /// How many iterations all tasks may take together.
    #[serde(deserialize_with = "value_text::iteration")]
    #[schemars(with = "Option<ValueText>", extend("minimum" = 1, "default" = PlanLimits::TOTAL))]
    pub max_total_iterations: Option<u32>,
    /// Whether a task that is used up waits for words of the user, in place of being blocked.
    #[schemars(extend("default" = false))]
    pub tune: Option<bool>,
    /// The shell command that proves each task and what has landed, where neither an option nor the plan names one.
    pub verify: Option<String>,
}

/// `[agents.NAME]`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub struct Agent {
    /// Which adapter runs it; without it the kind follows the program's name.
    pub kind: Option<AgentKind>,
    /// What to run, as one text, split like a shell's, or as a list; without it the program of its kind.
    pub command: Option<Command>,
    /// More arguments for it.
    #[serde(deserialize_with = "value_text::args")]
    #[schemars(with = "Option<Command>")]
    pub args: Option<Vec<String>>,
    /// Which model it uses.
    pub model: Option<String>,
    /// Variables set for it.
    pub env: BTreeMap<String, Secret>,
    /// What it may do unattended.
    pub permissions: Option<Permissions>,
    /// How the prompt reaches it.
    pub prompt_mode: Option<PromptMode>,
    /// What its standard output is.
    pub output_format: Option<OutputFormat>,
}

/// `[prompts.NAME]` and `[modes.NAME]`: one of both.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub struct Prompt {
    /// The text itself.
    pub text: Option<String>,
    /// The file that holds it, relative to the file that names it.
    #[schemars(with = "Option<String>")]
    pub file: Option<Utf8PathBuf>,
}
