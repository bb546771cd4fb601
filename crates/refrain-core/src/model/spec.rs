//! What a loop was asked to do: the specification, pinned in the journal's first event and never changed afterwards
//! (limits can be granted anew by `resume`; what is in force then is in [`crate::LoopState`]).

mod agent;
mod limits;
mod millis;
mod until;

use camino::Utf8PathBuf;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::budget::Caps;
use crate::gate::{Check, GateEnv, GateSpec};
use crate::git::GitSpec;
use crate::ids::LoopId;
use crate::memory::MemorySpec;
use crate::mirror::{CarriedCounter, Mirror};
use crate::plan::TaskRef;
use crate::promise::Promise;
use crate::protect::Part;
use crate::sandbox::SandboxSpec;
use crate::serde_default::is_default;
use crate::session::SessionSpec;
use crate::view::trace::Parent;

pub use agent::{AgentKind, AgentSpec, OutputFormat, Permissions, PromptMode, Secret};
pub use limits::Limits;
pub use millis::Millis;
pub use until::Until;

/// One loop's specification.
#[serde_with::apply(
    Option => #[serde(default, skip_serializing_if = "Option::is_none")],
    bool => #[serde(default, skip_serializing_if = "std::ops::Not::not")],
)]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spec {
    /// The loop's name in its project.
    pub id: LoopId,
    /// The task that it is about, where it is a plan's.
    pub task: Option<TaskRef>,
    /// What is special about it where an agent's own session began it.
    pub session: Option<SessionSpec>,
    /// What is run, and how it is talked to; in a state, the agent in force, which `--on-stuck` may have changed.
    pub agent: AgentSpec,
    /// The person's prompt, unchanged.
    pub prompt: String,
    /// Whether anything is added to the prompt (`--no-iteration-context` says no).
    #[serde_with(skip_apply)]
    pub iteration_context: bool,
    /// The words that claim the work done; none with `--no-promise`.
    #[serde_with(skip_apply)]
    pub promise: Option<Promise>,
    /// Where to stop. What `start` granted; `resume` may grant more.
    pub limits: Limits,
    /// Until when it continues by itself.
    #[serde(default, skip_serializing_if = "is_default")]
    pub until: Until,
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
    /// The environment of the gates.
    #[serde(default, skip_serializing_if = "is_default")]
    pub gate_env: GateEnv,
    /// What its work may not touch.
    #[serde(default, skip_serializing_if = "is_default")]
    pub protect: ProtectSpec,
    /// The gates are asked about a checkout of the candidate elsewhere, not in the worktree (`--clean-checkout`).
    pub clean_checkout: bool,
    /// A gate that cannot run blocks the loop before its first attempt. False with `--allow-missing-gates`, and for loops of 0.1.0.
    pub gates_must_run: bool,
    /// What names gates and was left out at its start, as the user does not trust it: `refrain.toml`, or commands that the
    /// project's files offer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub untrusted: Vec<String>,
    /// A claim that its gates proved ends it only once a person approved that very candidate (`--require-approval`).
    pub approval: bool,
    /// When it is stuck, and what is done then.
    #[serde(default)]
    pub stuck: StuckSpec,
    /// Who looks at its progress now and then.
    pub critique: Option<CritiqueSpec>,
    /// What its project's file allowed all loops of the project when it was started; the user's own caps are read as it
    /// goes, and the lower one holds.
    #[serde(default, skip_serializing_if = "is_default")]
    pub caps: Caps,
    /// Its work is kept on a failure branch also where it ends at its cap or its time (`refrain run`, seed 004).
    pub keep_failed: bool,
    /// What it looks like in the files of other systems (`run`: seed 004's).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mirrors: Vec<Mirror>,
    /// What another system counted before, and it continues with (`resume --from`).
    pub carried: Option<CarriedCounter>,
    /// What it has to do with memories of other loops: it gets some, and leaves some. None where it has nothing to do with
    /// them.
    pub memory: Option<MemorySpec>,
    /// The mode that its prompt was put together from; none where the person wrote the whole of it.
    pub mode: Option<String>,
    /// The parent span: that of a plan's task, or of the process that started it.
    pub trace: Option<Parent>,
    /// The sandbox of its agent and its gates; none if they run with the user's rights.
    pub sandbox: Option<SandboxSpec>,
    /// How deep in loops this one was started: 0 by a person, 1 by an agent of such a loop.
    pub depth: u32,
    /// The data folder of the loop whose attempt started it.
    #[schemars(with = "Option<String>")]
    pub parent: Option<Utf8PathBuf>,
    /// How much of one stream of an attempt is kept, in bytes; past it the middle is dropped with a visible mark.
    pub output_cap: u64,
}

impl Spec {
    /// A loop in a folder that is asked for nothing but its prompt: no claim, gate or limit.
    pub fn new(
        id: LoopId,
        agent: AgentSpec,
        prompt: impl Into<String>,
        folder: impl Into<Utf8PathBuf>,
    ) -> Self {
        let folder = folder.into();
        Self {
            id,
            task: None,
            session: None,
            agent,
            prompt: prompt.into(),
            iteration_context: true,
            promise: None,
            limits: Limits::default(),
            until: Until::default(),
            project: folder.clone(),
            worktree: folder.clone(),
            working_dir: folder,
            git: GitSpec::default(),
            gates: Vec::new(),
            gate_env: GateEnv::default(),
            protect: ProtectSpec::default(),
            clean_checkout: false,
            gates_must_run: false,
            untrusted: Vec::new(),
            approval: false,
            stuck: StuckSpec::default(),
            critique: None,
            caps: Caps::default(),
            keep_failed: false,
            mirrors: Vec::new(),
            carried: None,
            memory: None,
            mode: None,
            trace: None,
            sandbox: None,
            depth: 0,
            parent: None,
            output_cap: Self::OUTPUT_CAP,
        }
    }

    /// How much of one stream of one attempt is kept by default: 1 GiB (design.md section 4).
    pub const OUTPUT_CAP: u64 = 1 << 30;
    /// Loops inside loops: one started by a person is at depth 0; at this depth a start is refused.
    pub const MAX_DEPTH: u32 = 2;

    pub fn has_hard_gates(&self) -> bool {
        self.gates.iter().any(|gate| gate.hard)
    }

    /// Whether a gate completes the loop by itself (`--success-command`).
    pub fn completes_by_gate(&self) -> bool {
        self.gates.iter().any(|gate| gate.completes)
    }

    /// Whether only the exit code of a known agent would complete the loop. Such an agent exits with 0 in any case.
    pub fn trusts_exit_code(&self) -> bool {
        self.promise.is_none()
            && !self.has_hard_gates()
            && self.agent.kind != AgentKind::Generic
            // There the exit code is no claim.
            && self.until != Until::Forever
    }

    /// Whether an agent that ends well without a word claims by what it changed: a task's does, if gates decide about
    /// it (seed 001: unknown, so that verification decides).
    pub fn hears_results(&self) -> bool {
        self.task.is_some() && self.promise.is_some() && self.has_hard_gates()
    }

    /// How many iterations another system counted before its first.
    pub fn carried(&self) -> u32 {
        self.carried.as_ref().map_or(0, |carried| carried.iteration)
    }

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

    /// Visits every value that is never shown.
    pub fn visit_secrets(&mut self, mut visit: impl FnMut(&mut Secret)) {
        self.agents_mut().for_each(|agent| agent.env.values_mut().for_each(&mut visit));
        self.gate_env.variables.values_mut().flatten().for_each(visit);
    }

    /// Takes out what must not be seen outside: values of variables, and what names the mark of the gates.
    pub fn redact(&mut self) {
        self.visit_secrets(|value| *value = Secret::redacted());
        self.gate_env.mark.clear();
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

    /// Whether anything is checked after attempts.
    pub fn proves(&self) -> bool {
        !self.gates.is_empty() || !self.protect.is_empty() || self.approval
    }

    /// Whether only the proven tree counts: gates, or a person if there is a claim, decide about it.
    pub fn is_held_to_its_tree(&self, claims: bool) -> bool {
        self.has_hard_gates() || self.approval && claims
    }

    /// Whether the loop needs its worktree for itself (design.md section 5).
    pub fn needs_worktree_alone(&self) -> bool {
        (self.git.workflow.commits() || self.proves()) && !self.git.shared
    }

    /// Whether its worktree is in a git repository, as found at its start.
    pub fn is_in_repository(&self) -> bool {
        self.git.needs_base() || self.git.before.is_some()
    }

    /// The loop's own folder in the worktree: what the agent reads and writes.
    pub fn worktree_dir(&self) -> Utf8PathBuf {
        self.worktree.join(".refrain").join(self.id.as_str())
    }

    /// The contract with the agent, `state.md`.
    pub fn state_file(&self) -> Utf8PathBuf {
        self.worktree_dir().join("state.md")
    }

    /// The path of `context.md`, which has the failures verbatim.
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
    /// Folders that a Python test runner imports from first: no new file there may hide a module of its own (`--auto-gates`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modules: Vec<String>,
}

impl ProtectSpec {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// When a loop is stuck, and what is done then (design.md, "Errors are classified").
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StuckSpec {
    /// After how many iterations in a row without progress the strategy shifts (`stuck::ROWS`).
    pub threshold: u32,
    /// The same failure counts whatever else changes (`refrain run`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_failure: bool,
    /// What is done where that did not help.
    #[serde(default)]
    pub answer: OnStuck,
}

impl StuckSpec {
    /// After how many iterations of one pattern the strategy shifts, unless `--stuck-threshold` says otherwise.
    pub const THRESHOLD: u32 = 3;
}

impl Default for StuckSpec {
    fn default() -> Self {
        Self { threshold: Self::THRESHOLD, by_failure: false, answer: OnStuck::Stop }
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
    /// It continues with another agent, or another model; where that one is stuck too, it ends as stuck.
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
    /// How long a critic may take by default: 5 minutes.
    pub const TIMEOUT: Millis = Millis(5 * 60 * 1000);
}
