//! The specification of a plan: pinned in its journal's first event, like a loop's.

use std::collections::BTreeSet;

use camino::Utf8PathBuf;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::TaskId;
use super::brief::{MAX_TOKENS, SpecTemplate};
use super::event::TaskStarted;
use crate::agent::Usd;
use crate::gate::Check;
use crate::ids::LoopId;
use crate::serde_default::is_default;
use crate::spec::{Millis, Spec};

/// One plan's specification.
#[serde_with::apply(bool => #[serde(default, skip_serializing_if = "std::ops::Not::not")])]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlanSpec {
    /// The plan's name, among the loops and plans of its project.
    pub id: LoopId,
    /// What its tasks are called together: in their file, and in the commits of its waves.
    pub tag: String,
    /// The file that the tasks stand in.
    #[schemars(with = "String")]
    pub tasks: Utf8PathBuf,
    /// What its agents are told of the whole.
    #[serde(default)]
    pub brief: BriefSpec,
    /// What the loop of each task is started with, but for its name, its prompt and its worktree.
    pub each: Box<Spec>,
    /// How many tasks are worked on at a time; at least 1.
    pub jobs: u32,
    /// A task starts as soon as its own dependencies have landed, and not with its wave (`--pipeline`).
    pub pipeline: bool,
    /// How many waves earlier plans of this tag completed: its own are numbered after them.
    #[serde(default, skip_serializing_if = "is_default")]
    pub waves_before: u32,
    /// Its state is also kept in the file of seed 001 (`--mirror scud`).
    pub mirror: bool,
    /// A task that is used up waits for a person to tell how to go on (`--tune`).
    pub tune: bool,
    /// The git remote of the fleet whose machines drive the loops of its tasks (`--on fleet`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fleet: Option<String>,
    /// The commands of single tasks that were trusted at the start; none in a plan of 0.1.0, which runs whatever they say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verifications: Option<Vec<String>>,
    /// Where to stop. What was granted at the start; `resume` may grant more.
    pub limits: PlanLimits,
}

impl PlanSpec {
    /// Whether there is something that can be run to see whether what landed is well.
    pub fn verifies(&self) -> bool {
        self.gates().next().is_some()
    }

    fn gates(&self) -> impl Iterator<Item = &String> {
        self.each.gates.iter().filter(|gate| gate.hard).filter_map(|gate| match &gate.check {
            Check::Command(command) => Some(command),
            Check::Review(_) => None,
        })
    }

    /// The commands that decide: those of the plan, without any those of single tasks.
    pub fn commands(&self) -> Vec<String> {
        match self.verifies() {
            true => self.gates().cloned().collect(),
            false => {
                let commands = self.verifications.iter().flatten().collect::<BTreeSet<_>>();
                commands.into_iter().cloned().collect()
            }
        }
    }

    /// The branch that the loop of a task works on in its `round`-th round, from 1.
    pub fn branch(&self, task: &TaskId, round: u32) -> String {
        let round = if round > 1 { format!("-r{round}") } else { String::new() };
        format!("refrain/{}/{}{round}", self.id, task.slug())
    }

    /// The branches of all rounds of a task.
    pub fn branches(&self, task: &TaskId, rounds: u32) -> impl Iterator<Item = String> {
        (1..=rounds).map(move |round| self.branch(task, round))
    }

    /// Whether a branch saves what a round left in its worktree, or work of it that failed.
    pub fn is_saved_of(&self, round: &TaskStarted, branch: &str) -> bool {
        let own = self.branch(&round.task, round.round);
        let slot = format!("wip/slot-{}", own.trim_start_matches("refrain/").replace('/', "-"));
        let is_number = |rest: &str| rest.parse::<u32>().is_ok();
        let is_of_slot = |rest: &str| rest.is_empty() || rest.strip_prefix('-').is_some_and(is_number);
        branch.starts_with(&format!("wip/ralph-fail-{}-", round.id))
            || branch.strip_prefix(&slot).is_some_and(is_of_slot)
    }

    /// The ref that keeps the line of what has landed, until a branch has it.
    pub fn line(&self) -> String {
        format!("refs/refrain/plans/{}/line", self.id)
    }

    /// The ref that keeps the last wave, until a branch has it.
    pub fn last_wave(&self) -> String {
        format!("refs/refrain/plans/{}/wave", self.id)
    }

    /// The name of the loop of a task, in its `round`-th round, from 1.
    pub fn loop_of(&self, task: &TaskId, round: u32) -> LoopId {
        LoopId::of_task(&self.id, task, round)
    }
}

/// What the agents of a plan are told besides their tasks (seed 001, `LoopSpecConfig`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BriefSpec {
    /// The document that has a section for each task (`--plan`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub document: Option<Utf8PathBuf>,
    /// Files that are in every prompt as a whole (`--spec-file`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>")]
    pub files: Vec<Utf8PathBuf>,
    /// The most tokens in total before a warning (`--max-spec-tokens`).
    #[serde(default = "max_tokens")]
    pub max_tokens: u64,
    /// How it is put together (`--spec-template`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<SpecTemplate>,
}

fn max_tokens() -> u64 {
    MAX_TOKENS
}

/// Where a plan stops.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanLimits {
    /// Iterations that one task may take (seed 001, `max_iterations_per_task`).
    pub per_task: u32,
    /// Iterations that all of them may take together (seed 001, `max_total_iterations`).
    pub total: u32,
    /// Money that all of them may spend together.
    #[serde(default, rename = "max_cost_usd", skip_serializing_if = "Option::is_none")]
    pub max_cost: Option<Usd>,
    /// How long it may take, less pauses.
    #[serde(default, rename = "max_duration_ms", skip_serializing_if = "Option::is_none")]
    pub max_duration: Option<Millis>,
}

impl PlanLimits {
    pub const PER_TASK: u32 = 3;
    /// Iterations of all tasks by default.
    pub const TOTAL: u32 = 100;
}

impl Default for PlanLimits {
    fn default() -> Self {
        Self { per_task: Self::PER_TASK, total: Self::TOTAL, max_cost: None, max_duration: None }
    }
}

/// How many tasks are worked on at a time by default: one per core, as far as there is memory for their agents, and
/// never more than 8, as they also share a provider.
pub fn jobs(cores: usize, free_memory: u64) -> u32 {
    const EACH: u64 = 2 << 30;
    let by_memory = usize::try_from(free_memory / EACH).unwrap_or(usize::MAX);
    u32::try_from(cores.min(by_memory).clamp(1, 8)).unwrap_or(1)
}
