//! The parts of a plan's view: its waves, its tasks, what is worked on and what is blocked.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::TaskLoop;
use crate::git::OmittedPath;
use crate::ids::LoopId;
use crate::plan::{
    PlanState, Priority, Return, RunningTask, Stage, TaskId, TaskState, TaskStatus, WaveNumber,
};
use crate::view::explanation::ASKS;
use crate::view::{StatusWord, Usage, WaitView};

/// A wave: tasks whose dependencies lie in the waves before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WaveView {
    /// Which, from 1.
    pub wave: u32,
    /// Where it stands.
    pub status: WaveWord,
    /// How many tasks it has.
    pub tasks_total: usize,
    /// How many of them have landed.
    pub tasks_done: usize,
    /// Its commit; null while it is not complete, or where nothing of it changed anything.
    pub commit: Option<String>,
    /// When it was complete.
    pub completed_at: Option<Timestamp>,
    /// Its tasks.
    pub tasks: Vec<TaskId>,
}

/// Where a wave stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WaveWord {
    /// Nothing of it was begun.
    Pending,
    /// Something of it was begun.
    InProgress,
    /// All of it is done.
    Complete,
    /// Nothing more of it will be done by itself: a task of it is blocked, or waits for one that is.
    Blocked,
}

/// A task, as shown.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TaskView {
    /// Its name in its file.
    pub id: TaskId,
    /// What is to be done, in a line.
    pub title: String,
    /// Its wave, from 1; null where it is not for this plan to do.
    pub wave: Option<u32>,
    /// Where it stands.
    pub status: TaskWord,
    /// How hard it is.
    pub complexity: u32,
    /// How urgent it is.
    pub priority: Priority,
    /// What has to be done first.
    pub dependencies: Vec<TaskId>,
    /// Those of them that are not.
    pub waits_for: Vec<TaskId>,
    /// How many rounds it began: loops of its own, one after the other.
    pub rounds: u32,
    /// Iterations that count, of the rounds that are over.
    pub iterations: u32,
    /// The loop of its last round; null before the first.
    #[serde(rename = "loop")]
    pub id_of_loop: Option<LoopId>,
    /// The worktree of the pool that it is worked on in; null while it is not.
    pub slot: Option<u32>,
    /// Its commit among what has landed; null where it has not, or changed nothing.
    pub commit: Option<String>,
    /// Why it is not done, or is tried again; null where there is nothing to say.
    pub reason: Option<String>,
    /// What its last round made and was left out of its commit; only known of the tasks that settled last.
    pub left_out: Vec<OmittedPath>,
    /// When it landed, or stopped.
    pub settled_at: Option<Timestamp>,
    /// What its rounds that are over cost, in US dollars; null where unknown.
    pub cost_usd: Option<f64>,
    /// They cost more than that: an agent was cut off before it said what it cost, or never said.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_least: bool,
}

/// Where a task stands: in the words of its file, and in those that only a plan that runs has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema, strum::IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum TaskWord {
    /// To be done.
    Pending,
    /// A loop works on it.
    InProgress,
    /// It is proven, and waits to be merged with what has landed.
    Landing,
    /// Done.
    Done,
    /// Done, and to be looked at by a person.
    Review,
    /// A person is needed.
    Blocked,
    /// It waits for something that will not be done by itself.
    WaitingOnBlocked,
    /// A person decides how it continues.
    AwaitingTune,
    /// Not now.
    Deferred,
    /// Not at all.
    Cancelled,
    /// Its subtasks are done in its place.
    Expanded,
    /// It was tried in vain, before this plan.
    Failed,
}

impl TaskWord {
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    fn of(state: &PlanState, place: usize, waiting: &BTreeSet<usize>) -> Self {
        let task = &state.tasks[place];
        if matches!(task.stage, Stage::Proven { .. }) && !state.is_final() {
            return Self::Landing;
        }
        if matches!(task.stage, Stage::Waiting(_)) && waiting.contains(&place) {
            return Self::WaitingOnBlocked;
        }
        match state.status_of(task) {
            TaskStatus::Pending => Self::Pending,
            TaskStatus::InProgress => Self::InProgress,
            TaskStatus::Done => Self::Done,
            TaskStatus::Review => Self::Review,
            TaskStatus::Blocked => Self::Blocked,
            TaskStatus::Deferred => Self::Deferred,
            TaskStatus::Cancelled => Self::Cancelled,
            TaskStatus::Expanded => Self::Expanded,
            TaskStatus::Failed => Self::Failed,
            TaskStatus::AwaitingTune => Self::AwaitingTune,
        }
    }
}

/// A task that a loop works on.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CurrentTask {
    /// Which.
    pub task: TaskId,
    /// What is to be done, in a line.
    pub title: String,
    /// How hard it is.
    pub complexity: u32,
    /// Its loop.
    #[serde(rename = "loop")]
    pub id_of_loop: LoopId,
    /// Which of its rounds, from 1.
    pub round: u32,
    /// The worktree of the pool.
    pub slot: u32,
    /// When the round began.
    pub started_at: Timestamp,
    /// Iterations that the round began; 0 where its loop says nothing yet.
    pub iteration: u32,
    /// The latest attempt of that iteration, from 1; 0 before the first.
    pub attempt: u32,
    /// Iterations that the round may take.
    pub max_iterations: u32,
    /// Where its loop stands; null where that cannot be read.
    pub status: Option<StatusWord>,
    /// What it does, in one line; null where that cannot be read.
    pub reason: Option<String>,
    /// What it waits for.
    pub wait: Option<WaitView>,
    /// The last line that its agent said.
    pub preview: Option<String>,
    /// What the round used.
    pub usage: Usage,
}

/// A task that a person is needed for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BlockedTask {
    /// Which.
    pub task: TaskId,
    /// What is to be done, in a line.
    pub title: String,
    /// Why it is not done.
    pub reason: String,
    /// Its agent's own question; null if it asks nothing.
    pub question: Option<String>,
    /// In how many iterations it was tried.
    pub attempts: u32,
    /// A person decides how it continues.
    pub awaits_tune: bool,
    /// When it stopped.
    pub blocked_at: Option<Timestamp>,
}

/// The commit of a complete wave, under the keys of seed 001.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WaveCommit {
    /// Which wave, from 1.
    pub wave: u32,
    /// The commit.
    pub commit_hash: String,
    /// When it was made.
    pub timestamp: Option<Timestamp>,
    /// The tasks whose work it holds.
    pub tasks_completed: Vec<TaskId>,
}

fn has_landed(state: &PlanState, task: usize) -> bool {
    matches!(state.tasks[task].stage, Stage::Landed { .. })
}

/// The tasks that wait for something that a person has to settle. A task that was only stopped with its plan is none:
/// it is still to be done.
fn waiting_on_blocked(state: &PlanState) -> BTreeSet<usize> {
    let is_blocked = |task: &TaskState| match task.stage {
        Stage::Out => !task.is_met(),
        Stage::Stopped(_) => state.status_of(task) != TaskStatus::Pending,
        Stage::Waiting(_) | Stage::Running(_) | Stage::Proven { .. } | Stage::Landed { .. } => false,
    };
    let blocked = state.tasks.iter().enumerate().filter(|(_, task)| is_blocked(task));
    let mut reached: Vec<_> = blocked.flat_map(|(place, _)| state.graph.dependents(place)).collect();
    let mut waiting = BTreeSet::new();
    while let Some(task) = reached.pop() {
        if matches!(state.tasks[task].stage, Stage::Waiting(_)) && waiting.insert(task) {
            reached.extend(state.graph.dependents(task));
        }
    }
    waiting
}

/// The waves of the graph: a task that is tried again stays in its wave.
pub(super) fn waves(state: &PlanState) -> Vec<WaveView> {
    let waiting = waiting_on_blocked(state);
    let mut waves: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for task in 0..state.tasks.len() {
        if let Some(number) = state.wave_number(task) {
            waves.entry(number).or_default().push(task);
        }
    }
    waves.into_iter().map(|(number, tasks)| wave(state, number, &tasks, &waiting)).collect()
}

fn wave(state: &PlanState, number: u32, tasks: &[usize], waiting: &BTreeSet<usize>) -> WaveView {
    let done = tasks.iter().filter(|task| has_landed(state, **task)).count();
    let places: BTreeSet<usize> = tasks.iter().filter_map(|task| state.tasks[*task].wave).collect();
    let places: Vec<_> = places.iter().filter_map(|place| state.waves.get(*place)).collect();
    let is_over = |task: &usize| match state.tasks[*task].stage {
        Stage::Landed { .. } => true,
        // A task that was stopped with its plan is still to be done.
        Stage::Stopped(_) => state.status_of(&state.tasks[*task]) != TaskStatus::Pending,
        Stage::Waiting(_) => waiting.contains(task),
        Stage::Out | Stage::Running(_) | Stage::Proven { .. } => false,
    };
    let is_begun = tasks.iter().any(|task| state.tasks[*task].rounds > 0);
    let is_complete = places.iter().all(|wave| wave.completed.is_some());
    let last = places.iter().rev().find(|wave| matches!(wave.completed, Some(Some(_))));
    let last = last.or_else(|| places.iter().rev().find(|wave| wave.completed.is_some()));
    WaveView {
        wave: number,
        status: match (is_complete, is_begun) {
            (true, _) if done == tasks.len() => WaveWord::Complete,
            (true, _) => WaveWord::Blocked,
            // Tried in vain, or waiting on what was: no event says that it is over.
            (false, _) if done < tasks.len() && tasks.iter().all(is_over) => WaveWord::Blocked,
            (false, true) if !state.is_final() => WaveWord::InProgress,
            (false, _) => WaveWord::Pending,
        },
        tasks_total: tasks.len(),
        tasks_done: done,
        commit: last.and_then(|wave| Some(wave.completed.as_ref()?.as_ref()?.to_string())),
        completed_at: last.and_then(|wave| wave.completed_at),
        tasks: tasks.iter().map(|task| state.tasks[*task].card.id.clone()).collect(),
    }
}

pub(super) fn wave_commits(state: &PlanState) -> Vec<WaveCommit> {
    let commit = |(place, wave): (usize, &crate::plan::Wave)| {
        let landed = wave.tasks.iter().filter(|task| has_landed(state, **task));
        Some(WaveCommit {
            wave: state.shown_wave(WaveNumber::of_place(place)),
            commit_hash: wave.completed.as_ref()?.as_ref()?.to_string(),
            timestamp: wave.completed_at,
            tasks_completed: landed.map(|task| state.tasks[*task].card.id.clone()).collect(),
        })
    };
    (0..).zip(&state.waves).filter_map(commit).collect()
}

pub(super) fn tasks(state: &PlanState) -> Vec<TaskView> {
    let waiting = waiting_on_blocked(state);
    (0..state.tasks.len()).map(|place| task(state, place, &waiting)).collect()
}

fn task(state: &PlanState, place: usize, waiting: &BTreeSet<usize>) -> TaskView {
    let task = &state.tasks[place];
    let (commit, slot) = match &task.stage {
        Stage::Landed { commit } => (commit.as_ref().map(ToString::to_string), None),
        Stage::Running(running) => (None, state.spec.fleet.is_none().then_some(running.slot)),
        Stage::Out | Stage::Waiting(_) | Stage::Proven { .. } | Stage::Stopped(_) => (None, None),
    };
    let is_settled = matches!(task.stage, Stage::Landed { .. } | Stage::Stopped(_));
    let is_waiting = matches!(task.stage, Stage::Waiting(_));
    let unmet = |task: &&TaskState| is_waiting && !task.is_met();
    let dependencies = state.graph.dependencies(place).into_iter().map(|task| &state.tasks[task]);
    TaskView {
        id: task.card.id.clone(),
        title: task.card.title.clone(),
        wave: state.wave_number(place),
        status: TaskWord::of(state, place, waiting),
        complexity: task.card.complexity,
        priority: task.card.priority,
        dependencies: task.card.dependencies.clone(),
        waits_for: dependencies.filter(unmet).map(|task| task.card.id.clone()).collect(),
        rounds: task.rounds,
        iterations: task.iterations,
        id_of_loop: (task.rounds > 0).then(|| state.spec.loop_of(&task.card.id, task.rounds)),
        slot,
        commit,
        reason: state.blocked_because(task).or_else(|| task.again.as_ref().map(again)),
        left_out: Vec::new(),
        settled_at: task.settled_at.filter(|_| is_settled),
        cost_usd: task.cost.map(f64::from),
        at_least: task.cost_at_least && task.cost.is_some(),
    }
}

/// Why a task has another round, in a line.
fn again(why: &Return) -> String {
    match why {
        Return::Conflict(paths) => {
            let paths: Vec<_> = paths.iter().map(ToString::to_string).collect();
            format!("tried again: it conflicted with what landed, in {}", paths.join(", "))
        }
        Return::Failed(failed) => format!("tried again: with what landed, {} failed", failed.gate),
        Return::Tuned(_) => "tried again: a person said how".to_owned(),
        Return::Resumed(_) => "tried again".to_owned(),
    }
}

pub(super) fn current(
    state: &PlanState,
    place: usize,
    running: &RunningTask,
    loops: &BTreeMap<TaskId, TaskLoop>,
) -> CurrentTask {
    let card = &state.tasks[place].card;
    let says = loops.get(&card.id);
    CurrentTask {
        task: card.id.clone(),
        title: card.title.clone(),
        complexity: card.complexity,
        id_of_loop: running.id.clone(),
        round: running.round,
        slot: running.slot,
        started_at: running.started_at,
        iteration: says.map_or(0, |says| says.iteration),
        attempt: says.map_or(0, |says| says.attempt),
        max_iterations: running.granted,
        status: says.map(|says| says.status),
        reason: says.map(|says| says.reason.clone()),
        wait: says.and_then(|says| says.wait),
        preview: says.and_then(|says| says.preview.clone()),
        usage: says.map(|says| says.usage).unwrap_or_default(),
    }
}

pub(super) fn blocked(state: &PlanState, task: &TaskState) -> Option<BlockedTask> {
    let reason = state.blocked_because(task)?;
    Some(BlockedTask {
        question: reason.strip_prefix(ASKS).map(str::to_owned),
        reason,
        task: task.card.id.clone(),
        title: task.card.title.clone(),
        attempts: task.iterations,
        awaits_tune: state.awaits_tune(task),
        blocked_at: task.settled_at,
    })
}
