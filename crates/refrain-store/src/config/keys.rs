//! What may stand in `refrain.toml` and in the user's `config.toml`: the types that files are read into and that the
//! published schema (`docs/schema/config.json`) is derived from. A key without a value says nothing; defaults are only
//! told here, for people and editors, and applied where a start is made.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use camino::Utf8PathBuf;
use refrain_core::agent::Usd;
use refrain_core::budget::Caps;
use refrain_core::formats::mirror::Mirror;
use refrain_core::git::{self, CommitWhen, Template, Workflow};
use refrain_core::glob::PathGlob;
use refrain_core::memory;
use refrain_core::plan::PlanLimits;
use refrain_core::price::Price;
use refrain_core::promise::{MatchMode, PromiseText};
use refrain_core::sandbox::{Host, SandboxMode, SandboxSpec};
use refrain_core::signature::PublicKey;
use refrain_core::spec::{
    AgentKind, Limits, Millis, OutputFormat, Permissions, PromptMode, Secret, Spec, StuckSpec,
};
use refrain_core::values::{self, GateVariable, Limit, OnStuck};
use schemars::JsonSchema;
use serde::Deserialize;

use super::value_text::{self, Command, ValueText};

/// The words that claim the work done where nothing else is said.
pub const PROMISE: &str = "COMPLETE";

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

/// `[sandbox]`: of its keys a project's file may have `mode` alone, and only to ask for more.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub struct Sandbox {
    /// Whether agents and gates run in a sandbox (`--sandbox`): "on", "auto", "files" or "off".
    #[schemars(extend("default" = "off"))]
    pub mode: Option<SandboxMode>,
    /// Hosts that agents and gates may reach besides those of the agent's provider: NAME, NAME:PORT or
    /// NAME:PORT=ADDRESS.
    #[schemars(extend("default" = []))]
    pub hosts: Option<Vec<Host>>,
    /// Whether they may reach the registries of packages that lock files and your tools name when the loop starts.
    #[schemars(extend("default" = true))]
    pub registries: Option<bool>,
    /// Ports of the machine's own loopback address that they may reach.
    #[schemars(extend("default" = []))]
    pub localhost: Option<Vec<u16>>,
    /// Folders that they may write besides the worktree: absolute paths, or `~/`.
    #[schemars(with = "Option<Vec<String>>", extend("default" = []))]
    pub write: Option<Vec<Utf8PathBuf>>,
    /// Folders and files that they do not see, besides the usual ones: absolute paths, or `~/`.
    #[schemars(with = "Option<Vec<String>>", extend("default" = []))]
    pub hide: Option<Vec<Utf8PathBuf>>,
    /// How many processes one of them may have at a time.
    #[schemars(range(min = SandboxSpec::FEWEST_PROCESSES, max = 4_000_000), extend("default" = SandboxSpec::PROCESSES))]
    pub processes: Option<u32>,
    /// How much memory one of them may have, in bytes or like "8GiB"; needs a cgroup of your own.
    #[serde(deserialize_with = "value_text::bytes")]
    #[schemars(with = "Option<ValueText>")]
    pub memory: Option<u64>,
    /// How many CPUs one of them may use; needs a cgroup of your own.
    #[schemars(range(min = 1))]
    pub cpus: Option<NonZeroU32>,
}

/// `[git]`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub struct Git {
    /// What is done after each iteration (`--git-workflow`).
    #[schemars(extend("default" = "none"))]
    pub workflow: Option<Workflow>,
    /// The message of a loop's commits.
    #[schemars(extend("default" = Template::COMMIT))]
    pub commit_template: Option<Template>,
    /// Which iterations are committed if there are required gates: "verified" or "each", which needs a branch of the loop's own.
    #[schemars(extend("default" = "verified"))]
    pub commit_when: Option<CommitWhen>,
    /// Work on a new branch.
    #[schemars(extend("default" = false))]
    pub create_branch: Option<bool>,
    /// The name of a new branch.
    #[schemars(extend("default" = Template::BRANCH))]
    pub branch_template: Option<Template>,
    /// Work in a worktree of its own.
    #[schemars(extend("default" = false))]
    pub worktree: Option<bool>,
    /// What such a worktree begins at: a branch, a tag, a commit.
    #[schemars(extend("default" = "HEAD"))]
    pub base: Option<String>,
    /// The largest file that is committed, in bytes or like "10MiB".
    #[serde(deserialize_with = "value_text::bytes")]
    #[schemars(with = "Option<ValueText>", extend("default" = git::largest_file()))]
    pub largest_file: Option<u64>,
    /// Files that may be committed though they look like secrets: patterns as in .gitignore.
    #[serde(deserialize_with = "value_text::globs")]
    #[schemars(with = "Option<Command>", extend("default" = []))]
    pub allow_secrets: Option<Vec<PathGlob>>,
}

/// `[worktrees]`: those of loops, and those that tasks work in one after the other, with what their tools keep in them.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub struct Worktrees {
    /// The largest size of a project's unused worktrees, in bytes or like "20GiB". Above it, files that git ignores
    /// are removed from those unused for longest, then those worktrees themselves; never one with work in it that
    /// is nowhere else.
    #[serde(deserialize_with = "value_text::bytes")]
    #[schemars(with = "Option<ValueText>", extend("default" = Worktrees::DISK_BUDGET))]
    pub disk_budget: Option<u64>,
    /// A shell command that prepares a new worktree before an agent works in it, such as "npm ci". It counts only in trusted
    /// configuration.
    pub setup: Option<String>,
}

impl Worktrees {
    /// How much room they may take unless configured: 20 GiB.
    pub const DISK_BUDGET: u64 = 20 << 30;

    /// How much room they may take, in bytes.
    pub fn disk_budget(&self) -> u64 {
        self.disk_budget.unwrap_or(Self::DISK_BUDGET)
    }
}

/// `[budget]`: caps that loops share. Of the user's file and a project's the lower value holds.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub struct Budget {
    /// How much money all loops of the user may cost in one day, in US dollars; or "none". Days are those of the machine's
    /// time zone.
    #[serde(deserialize_with = "value_text::cost_limit")]
    #[schemars(with = "Option<ValueText>", extend("default" = "none"))]
    pub max_cost_per_day: Option<Limit<Usd>>,
    /// How much all loops of one project may cost in one day; or "none".
    #[serde(deserialize_with = "value_text::cost_limit")]
    #[schemars(with = "Option<ValueText>", extend("default" = "none"))]
    pub project_max_cost_per_day: Option<Limit<Usd>>,
    /// How much all loops of one project may cost in all; or "none".
    #[serde(deserialize_with = "value_text::cost_limit")]
    #[schemars(with = "Option<ValueText>", extend("default" = "none"))]
    pub project_max_cost: Option<Limit<Usd>>,
}

impl From<&Budget> for Caps {
    fn from(budget: &Budget) -> Self {
        let cap = |limit: Option<Limit<Usd>>| limit.and_then(Option::from);
        Self {
            day: cap(budget.max_cost_per_day),
            project_day: cap(budget.project_max_cost_per_day),
            project: cap(budget.project_max_cost),
        }
    }
}

/// `[fleet] tls`: files in the PEM format. Without any, the authorities of the system decide who the server is.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub struct FleetTls {
    /// The certificate of the authority that signed the server's.
    pub ca: Option<String>,
    /// The certificate of this machine, with its key: the server may want to know who asks.
    pub cert: Option<String>,
    /// The private key of that certificate.
    pub key: Option<String>,
    /// The name in the server's certificate, where it is not that of its address.
    pub name: Option<String>,
}

/// `[fleet]`: the server of Temporal that gives loops to workers, and the git remote that has them.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub struct Fleet {
    /// Where the server is: HOST:PORT.
    #[schemars(extend("default" = "127.0.0.1:7233"))]
    pub address: Option<String>,
    /// The namespace there.
    #[schemars(extend("default" = "default"))]
    pub namespace: Option<String>,
    /// How the connection to the server is encrypted. TEMPORAL_API_KEY holds a key of the service, if it needs one.
    pub tls: Option<FleetTls>,
    /// The git remote that has the journals and branches of loops: its address.
    pub state: Option<String>,
    /// Which workers may take them: those that serve this pool.
    #[schemars(extend("default" = "default"))]
    pub pool: Option<String>,
    /// Who the loops are for. Teams get workers in turn, however many loops each of them has, if the server is set up for that.
    pub team: Option<String>,
    /// After how long without a sign of its worker a loop is given to another; the agents of the one that was lost are ended
    /// after two thirds of it.
    #[serde(deserialize_with = "value_text::duration")]
    #[schemars(with = "Option<ValueText>", extend("default" = "90s"))]
    pub lease: Option<Millis>,
    /// How often a worker gives that sign.
    #[serde(deserialize_with = "value_text::duration")]
    #[schemars(with = "Option<ValueText>", extend("default" = "20s"))]
    pub beat: Option<Millis>,
    /// How long a worker may fail to reach the git remote before it gives the loop away.
    #[serde(deserialize_with = "value_text::duration")]
    #[schemars(with = "Option<ValueText>", extend("default" = "60s"))]
    pub replicate: Option<Millis>,
}

/// `[worker]`: loops of others run commands on this machine, so nothing is taken that is not named here.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub struct Worker {
    /// The git remotes whose loops it takes: their addresses.
    #[schemars(extend("default" = []))]
    pub remotes: Vec<String>,
    /// The kinds of agents that it runs; `generic` is any command.
    #[schemars(extend("default" = []))]
    pub agents: Vec<AgentKind>,
    /// The pools that it serves.
    #[schemars(extend("default" = ["default"]))]
    pub pools: Vec<String>,
    /// How many loops it drives at a time.
    #[schemars(range(min = 1, max = 1000), extend("default" = 2))]
    pub slots: Option<u32>,
    /// What the fleet calls it; without it the name of the machine.
    pub name: Option<String>,
}

/// `[trust]`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub struct Signers {
    /// Public keys of other homes of yours, as `refrain doctor` there names them: what they signed is signed here too.
    #[schemars(extend("default" = []))]
    pub signers: Vec<PublicKey>,
}

/// `[memory]`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub struct Memory {
    /// Whether loops are told what is remembered of earlier ones, and are remembered themselves (`--memory`): "on" or "off";
    /// without it on for known agents, and off for commands.
    pub recall: Option<Switch>,
    /// How many tokens of memories a prompt has at most.
    #[schemars(range(min = 200, max = 50_000), extend("default" = memory::BUDGET))]
    pub budget: Option<u32>,
    /// What makes vectors of memories, so that those are found that say the same in other words. Only in the user's own file.
    pub embeddings: Option<Embeddings>,
    /// Which agent is asked, once a loop has ended, what there is to learn from it: an adapter, a named agent or a
    /// command; without it no agent is asked. It costs what it costs beside the loop. Only in the user's own file.
    pub judge: Option<String>,
}

/// On or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Switch {
    /// It is done.
    On,
    /// It is not.
    Off,
}

/// `[memory] embeddings`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub struct Embeddings {
    /// Where texts are posted to: a URL that ends in `/embeddings` (OpenAI's kind) or `/api/embed` (Ollama's). The key, where
    /// one is needed, stands elsewhere.
    pub url: String,
    /// Which model makes the vectors.
    pub model: String,
}

/// `[notify]`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub struct Notify {
    /// Where (`--notify`).
    #[schemars(extend("default" = "off"))]
    pub how: Option<NotifyHow>,
    /// A command that is given the message too (`--notify-command`).
    pub command: Option<Command>,
    /// Where each is posted to as JSON, signed: a URL of http or https. The secret stands elsewhere.
    pub webhook: Option<String>,
    /// A topic of an ntfy server, in place of a webhook: `https://ntfy.sh/TOPIC`, or `https://:TOKEN@HOST/TOPIC`.
    pub ntfy: Option<String>,
    /// The topic that `refrain serve` reads answers and approvals from, another one than `ntfy`. Only in the user's own file.
    pub ntfy_replies: Option<String>,
    /// Waits for a provider that are longer are told too: like "30m"; or "none".
    #[serde(deserialize_with = "value_text::duration_limit")]
    #[schemars(with = "Option<ValueText>", extend("default" = "none"))]
    pub wait_longer_than: Option<Limit<Millis>>,
}

/// `[slack]`: what `refrain serve` does with a workspace of Slack. The tokens stand elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub struct Slack {
    /// The ids of the channels that are heard; all that the app was invited to, where none is named. Notices go to the first.
    pub channels: Vec<String>,
    /// The ids of the people who may start loops, and steer them. Others may not.
    pub may_start: Vec<String>,
    /// The ids of the people who may stop loops. Others may not.
    pub may_stop: Vec<String>,
    /// The folders of the projects that loops may be started in, each called by the folder's name; the one that `serve` is run
    /// in, where none is named.
    #[schemars(with = "Vec<String>")]
    pub projects: Vec<Utf8PathBuf>,
    /// Whether the ends of loops are told that were started elsewhere.
    #[schemars(extend("default" = false))]
    pub notify: Option<bool>,
    /// Where Slack's Web API is: a URL of http or https.
    #[schemars(extend("default" = "https://slack.com/api"))]
    pub api_url: Option<String>,
}

/// `[telemetry]`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub struct Telemetry {
    /// A collector of OpenTelemetry that takes traces over HTTP, where `OTEL_EXPORTER_OTLP_ENDPOINT` names none: a URL of
    /// http or https, like "http://localhost:4318".
    pub endpoint: Option<String>,
}

/// `[top]`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub struct Top {
    /// The background that its colours are for.
    #[schemars(extend("default" = "auto"))]
    pub theme: Theme,
}

/// The background of a terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Theme {
    /// As the terminal says with `COLORFGBG`; dark if it does not.
    #[default]
    Auto,
    /// A dark one.
    Dark,
    /// A light one.
    Light,
}

/// Where a notification is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NotifyHow {
    /// On the terminal that shows the loop; on the desktop, where no terminal does.
    Auto,
    /// On the terminal.
    Terminal,
    /// On the desktop.
    Desktop,
    /// Nowhere.
    Off,
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

/// The key `env` of `[gates]`: it may be the name of a gate, too.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
enum GatesEnv {
    Variable(GateVariable),
    Variables(Vec<GateVariable>),
    Gate(Box<Gate>),
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

/// `[evolution]`, which only the user's own file may have: it spends their money.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub struct Evolution {
    /// Which agent: an adapter, a named agent or a command; without it no agent is asked.
    pub agent: Option<String>,
    /// Which model it uses.
    pub model: Option<String>,
    /// How much money it may spend on one loop, where it can be held to that.
    #[serde(deserialize_with = "value_text::cost_limit")]
    #[schemars(with = "Option<ValueText>", extend("default" = "none"))]
    pub max_cost: Option<Limit<Usd>>,
}

fn is_hard() -> bool {
    true
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

/// `[protect]`: globs, seen from the top of the worktree.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub struct Protect {
    /// What neither changes, nor goes, nor comes (`--protect`).
    pub frozen: Vec<String>,
    /// What neither changes nor goes; new files are welcome (`--protect-existing`).
    pub existing: Vec<String>,
}

/// `[prices."MODEL"]`: US dollars for a million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub struct ModelPrice {
    /// In.
    #[serde(deserialize_with = "value_text::price")]
    #[schemars(with = "ValueText")]
    pub input: Usd,
    /// In, read from a cache; without it as dear as any.
    #[serde(default, deserialize_with = "value_text::some_price")]
    #[schemars(with = "Option<ValueText>")]
    pub cached_input: Option<Usd>,
    /// Out.
    #[serde(deserialize_with = "value_text::price")]
    #[schemars(with = "ValueText")]
    pub output: Usd,
}

impl From<ModelPrice> for Price {
    fn from(price: ModelPrice) -> Self {
        let ModelPrice { input, cached_input, output } = price;
        Self { input, cached_input: cached_input.unwrap_or(input), output }
    }
}
