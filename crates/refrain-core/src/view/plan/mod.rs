//! The view of a plan: the object that `plan status --json` prints and every surface reads. Made from the plan's state,
//! from the loops of its tasks, and from what only the shell can know; never stored, never read back.

mod estimate;
mod explanation;
mod parts;
mod path;
#[cfg(test)]
mod tests;
mod unmerged;

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::{Kind, Runner, SCHEMA, Status, StatusWord, Tone, Usage, Verification, WaitView, WaitsFor, money};
use crate::ids::LoopId;
use crate::plan::{PlanEnd, PlanLimits, PlanState, Stage, TaskId};
use crate::spec::{AgentKind, Millis};
use crate::text::squeeze;

pub use parts::{BlockedTask, CurrentTask, TaskView, TaskWord, WaveCommit, WaveView, WaveWord};
pub use path::critical_path;
pub use unmerged::Behind;

/// One plan, for people and scripts.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PlanStatus {
    /// The version of this shape.
    pub schema: u32,
    /// The plan's id.
    pub id: LoopId,
    /// What its tasks are called together.
    pub tag: String,
    /// `plan`.
    pub kind: Kind,
    /// Where it stands, in the words of a loop.
    pub status: StatusWord,
    /// Whether all that was to be done is done and verified; null where nothing verifies it.
    pub verified: Option<bool>,
    /// Why it stands where it stands, in one line.
    pub reason: String,
    /// What a person has to do for it to go on; null where nothing.
    pub needs: Option<String>,
    /// What has to happen before it continues; null if nothing has to.
    pub waits_for: Option<WaitsFor>,
    /// Which adapter runs.
    pub agent: AgentKind,
    /// Which model it was told to use; null is its own choice.
    pub model: Option<String>,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The commands that decide about each task and about what has landed; those of single tasks if the plan has none.
    pub verification: Vec<String>,
    /// The project's folder.
    pub project: String,
    /// The file that its tasks stand in.
    pub tasks_file: String,
    /// The branch that it began on; null where the head was detached, or is not known yet.
    pub branch: Option<String>,
    /// The commit that it began at; null before it was taken.
    pub base: Option<String>,
    /// What has landed; null before the base was taken.
    pub tip: Option<String>,
    /// When it was started.
    pub started_at: Timestamp,
    /// When the last event happened.
    pub updated_at: Timestamp,
    /// When it stopped; null while it has not.
    pub ended_at: Option<Timestamp>,
    /// How long it had worked when the last event happened: with a runner.
    #[serde(rename = "active_ms")]
    pub active: Millis,
    /// How many tasks are worked on at a time.
    pub jobs: u32,
    /// A task starts as soon as its own dependencies have landed, and not with its wave.
    pub pipeline: bool,
    /// A task that is used up waits for a person to tell how to go on.
    pub tune: bool,
    /// The limits in force.
    pub limits: PlanLimits,
    /// What it used.
    pub usage: PlanUsage,
    /// Tasks that are the plan's to do.
    pub tasks_total: usize,
    /// Those of them that have landed.
    pub tasks_done: usize,
    /// Its waves, the first first.
    pub waves: Vec<WaveView>,
    /// All that stands in the task file, in its order.
    pub tasks: Vec<TaskView>,
    /// What is worked on.
    pub current: Vec<CurrentTask>,
    /// What a person is needed for.
    pub blocked: Vec<BlockedTask>,
    /// The commits of complete waves (seed 001).
    pub wave_commits: Vec<WaveCommit>,
    /// What has landed and is not on its branch; null where the branch has all of it.
    pub behind: Option<Behind>,
    /// Complete waves that its branch no longer has, as it was moved; only told once the plan has stopped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<WaveCommit>,
    /// Branches with what its tasks left and has not landed; only told once it has stopped.
    pub branches: Vec<String>,
    /// What its tasks left in worktrees of the pool and in no commit; only told once it has stopped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uncommitted: Vec<UncommittedWork>,
    /// When it is likely to be through; null where nothing is known of that.
    pub estimate: Option<Estimate>,
    /// Why the task file could not be read again when it had changed last; null where it could.
    pub tasks_refused: Option<String>,
    /// Who drives it, or drove it last.
    pub runner: Option<Runner>,
}

/// Work of a task that no commit has. The next task that gets the folder saves it on a branch `wip/slot-…`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UncommittedWork {
    /// The task's branch, which lacks it.
    pub branch: String,
    /// The worktree that has it.
    pub folder: String,
    /// How many files are changed or new there.
    pub files: usize,
}

/// What a plan used. Unknown is null, never 0.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PlanUsage {
    /// Iterations of all its tasks that count.
    pub iterations_used: u32,
    /// Iterations that it may take in all.
    pub iterations_granted: u32,
    /// Iterations that the tasks at work may still take, out of what is left.
    pub iterations_reserved: u32,
    /// Money, in US dollars, of the rounds that are over and of what is at work.
    pub cost_usd: Option<f64>,
    /// It is more than that: an agent was cut off before it said what it cost, or never said.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_least: bool,
}

impl PlanUsage {
    /// What it cost, in words; none if unknown.
    pub fn cost(&self) -> Option<String> {
        money(self.cost_usd, self.at_least)
    }
}

/// What is left to do, in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Estimate {
    /// How long it still takes, driven without a pause.
    pub left_ms: Millis,
    /// When it is through; null while it has no runner.
    pub at: Option<Timestamp>,
    /// From how many tasks that have landed this is concluded.
    pub from_tasks: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub struct TaskLoop {
    pub iteration: u32,
    pub attempt: u32,
    pub status: StatusWord,
    pub reason: String,
    pub wait: Option<WaitView>,
    /// The last line that its agent said.
    pub preview: Option<String>,
    pub usage: Usage,
}

impl From<&Status> for TaskLoop {
    fn from(status: &Status) -> Self {
        let said = |iterations: &Vec<super::Iteration>| {
            iterations.iter().rev().find_map(|iteration| iteration.preview.clone())
        };
        Self {
            iteration: status.iteration,
            attempt: status.attempt,
            status: status.status,
            reason: status.reason.clone(),
            wait: status.wait,
            preview: status.iterations.as_ref().and_then(said).filter(|line| !line.is_empty()),
            usage: status.usage,
        }
    }
}

/// Whether the plan did a task itself: one that a person did was not verified.
/// The view of a plan. `loops` has what the loops of the tasks at work say, as far as they can be read; `alive` whether
/// the plan's runner lives, none if unknown.
pub fn status(
    state: &PlanState,
    loops: &BTreeMap<TaskId, TaskLoop>,
    alive: Option<bool>,
    now: Timestamp,
) -> PlanStatus {
    let PlanState { lifecycle, spec, limits, .. } = state;
    let ended = lifecycle.ended;
    let word = word(state, loops, alive);
    let (base, branch) = match &state.base {
        Some((head, branch)) => (Some(head.to_string()), branch.clone()),
        None => (None, None),
    };
    let at_work: Vec<Usage> =
        state.running().filter_map(|(n, _)| Some(loops.get(&state.tasks[n].card.id)?.usage)).collect();
    let costs = state.spent.map(f64::from).into_iter();
    let costs: Vec<f64> = costs.chain(at_work.iter().filter_map(|usage| usage.cost_usd)).collect();
    let at_least = state.spent_at_least || at_work.iter().any(|usage| usage.cost_at_least);
    PlanStatus {
        schema: SCHEMA,
        id: spec.id.clone(),
        tag: spec.tag.clone(),
        kind: Kind::Plan,
        status: word,
        verified: state.is_verified().then_some(word == StatusWord::Completed && state.has_landed()),
        reason: squeeze(&explanation::reason(state, word)),
        needs: explanation::needs(state, word),
        waits_for: waits_for(state),
        agent: spec.each.agent.kind,
        model: spec.each.agent.model.clone(),
        command: std::iter::once(&spec.each.agent.program).chain(&spec.each.agent.args).cloned().collect(),
        verification: spec.commands(),
        project: spec.each.project.to_string(),
        tasks_file: spec.tasks.to_string(),
        branch,
        base,
        tip: state.tip.as_ref().map(ToString::to_string),
        started_at: state.started_at,
        updated_at: state.updated_at,
        ended_at: ended.map(|ended| ended.at),
        active: state.active.into(),
        jobs: spec.jobs,
        pipeline: spec.pipeline,
        tune: spec.tune,
        limits: limits.clone(),
        usage: PlanUsage {
            iterations_used: state.used,
            iterations_granted: limits.total,
            iterations_reserved: state.reserved,
            cost_usd: (!costs.is_empty()).then(|| costs.iter().sum()),
            at_least: at_least && !costs.is_empty(),
        },
        tasks_total: state.waves.iter().map(|wave| wave.tasks.len()).sum(),
        tasks_done: state.tasks.iter().filter(|task| matches!(task.stage, Stage::Landed { .. })).count(),
        waves: parts::waves(state),
        tasks: parts::tasks(state),
        current: state.running().map(|(n, running)| parts::current(state, n, running, loops)).collect(),
        blocked: state.tasks.iter().filter_map(|task| parts::blocked(state, task)).collect(),
        wave_commits: parts::wave_commits(state),
        behind: unmerged::of(state),
        missing: Vec::new(),
        branches: Vec::new(),
        uncommitted: Vec::new(),
        estimate: estimate::of(state, alive != Some(false), now),
        tasks_refused: state.refused.clone(),
        runner: state.runner.as_ref().map(|runner| Runner {
            pid: Some(runner.process.pid),
            host: runner.host.clone(),
            alive: if ended.is_some() { Some(false) } else { alive },
            session: None,
            stopped: false,
        }),
    }
}

impl PlanStatus {
    /// The tasks that the plan has not tried, as a person or their file says that they are not to be done now.
    pub fn not_tried(&self) -> impl Iterator<Item = &TaskView> {
        // What it tried, and gave up, is in the list of the blocked.
        let is_tried = |task: &TaskView| self.blocked.iter().any(|blocked| blocked.task == task.id);
        let is_left_out =
            |word| matches!(word, TaskWord::Blocked | TaskWord::Failed | TaskWord::AwaitingTune);
        self.tasks.iter().filter(move |task| is_left_out(task.status) && !is_tried(task))
    }
}

fn waits_for(state: &PlanState) -> Option<WaitsFor> {
    match state.ended?.end {
        PlanEnd::Blocked if state.hindered.is_some() => Some(WaitsFor::Setup),
        PlanEnd::Blocked if state.handover.refused.is_some() => Some(WaitsFor::Repository),
        PlanEnd::Blocked => Some(WaitsFor::Tasks),
        PlanEnd::Completed
        | PlanEnd::Cancelled
        | PlanEnd::Paused
        | PlanEnd::TimedOut
        | PlanEnd::IterationCap
        | PlanEnd::BudgetExceeded => None,
    }
}

impl PlanStatus {
    /// The same of a plan whose runner is stopped.
    #[must_use]
    pub fn of_stopped_runner(mut self) -> Self {
        super::say_stopped(self.runner.as_mut(), &mut self.reason, &mut self.needs);
        self
    }

    /// The same of a plan whose runner, if it is gone, stopped by this error.
    #[must_use]
    pub fn of_failed_runner(mut self, error: &str) -> Self {
        super::say_failed(error, &mut self.reason, &mut self.needs);
        self
    }

    pub fn verification(&self) -> Verification {
        Verification::of(self.status, self.verified)
    }

    pub fn tone(&self) -> Tone {
        Tone::of(self.status, self.verified)
    }
}

/// A plan that has not stopped has a runner, or it has crashed. It waits if all that it does is to wait.
fn word(state: &PlanState, loops: &BTreeMap<TaskId, TaskLoop>, alive: Option<bool>) -> StatusWord {
    let waits = |n: usize| loops.get(&state.tasks[n].card.id).is_some_and(|it| it.wait.is_some());
    let mut running = state.running().map(|(n, _)| n).peekable();
    match state.ended.map(|ended| ended.end) {
        Some(end) => end.into(),
        None if state.runner.is_none() || alive == Some(false) => StatusWord::Crashed,
        None if running.peek().is_some() && running.all(waits) => StatusWord::Waiting,
        None => StatusWord::Running,
    }
}
