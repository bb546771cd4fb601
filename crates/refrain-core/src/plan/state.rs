//! The state of a plan: the fold of its events. What each event changes is in `apply`, what comes next in `next_step`.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use jiff::Timestamp;

use super::event::{AgentFault, FailedGate, MergedTask, PlanEnd, Stop, WaveNumber};
use super::graph::Graph;
use super::schedule::Ready;
use super::spec::{PlanLimits, PlanSpec};
use super::task::{Card, TaskId, TaskStatus};
use crate::agent::Usd;
use crate::budget::CapUsage;
use crate::git::{Oid, RepoPath};
use crate::ids::LoopId;
use crate::machine::Lifecycle;

#[derive(Clone, Debug)]
pub struct PlanState {
    pub lifecycle: Lifecycle<PlanEnd>,
    pub spec: PlanSpec,
    pub limits: PlanLimits,
    /// The commit that it began at, and the branch.
    pub base: Option<(Oid, Option<String>)>,
    /// The tip of all landed work, the commits of waves included.
    pub tip: Option<Oid>,
    /// What the commit of the next wave follows: that of the last complete wave, or what the branch has since it was
    /// handed over. The same as `tip`, unless something landed that belongs to no complete wave.
    pub trunk: Option<Oid>,
    /// What the branch that the plan began on has of it: its start, or what was handed over last.
    pub handed: Option<Oid>,
    /// The work that has landed on top of the trunk, in order.
    pub line: Vec<(TaskId, Oid)>,
    /// Its tasks, in the order of their file; none before they were taken.
    pub tasks: Vec<TaskState>,
    pub graph: Graph,
    /// Why the task file could not be taken again when it had changed last.
    pub refused: Option<String>,
    pub waves: Vec<Wave>,
    pub batch: Option<Batch>,
    /// Something landed with a tree that no gate has passed on.
    pub landed_unverified: bool,
    /// The state of the branch that the plan began on, and why it is not further.
    pub handover: HandOver,
    pub used: u32,
    pub reserved: u32,
    /// Spent money, as far as agents reported it.
    pub spent: Option<Usd>,
    /// More was spent: some agent did not say.
    pub spent_at_least: bool,
    /// What its cap on money counts besides, for agents that did not report their cost.
    pub assumed: Usd,
    /// How many tasks in a row ended without any work, as their agents failed in one way; and in which.
    pub(super) in_vain: Option<(u32, AgentFault)>,
    /// Why it cannot continue by itself.
    pub hindered: Option<String>,
    /// Tasks that could be started, the one to start first in front.
    pub(super) ready: BTreeSet<Ready>,
    pub(super) running: BTreeSet<usize>,
    pub(super) proven: BTreeSet<usize>,
    /// How many rounds those had that are gone from the file.
    pub(super) gone: HashMap<TaskId, u32>,
    pub(super) taken: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskState {
    pub card: Card,
    /// Its wave, from 0; none if it is not for this plan to do.
    pub wave: Option<usize>,
    pub stage: Stage,
    /// It waits for something that will not be done without a person.
    pub is_hopeless: bool,
    /// A person took it off the plan, or did it, while it was under way: its loop's work does not land.
    pub is_withdrawn: bool,
    pub rounds: u32,
    /// Iterations that count, of all rounds.
    pub iterations: u32,
    /// Iterations that count, of the last round that is over.
    pub of_round: u32,
    /// How the last agent of that round failed; none if it ended well.
    pub fault: Option<AgentFault>,
    /// The gate that failed last in its last round, and what it said.
    pub failed_gate: Option<String>,
    /// How often it came back although its own gates had passed.
    pub returns: u32,
    /// The tip of the landed work when its last round began.
    pub onto: Option<Oid>,
    /// The head that the round before that left on its branch, and the tip when it began.
    pub before: Option<(Oid, Oid)>,
    /// The head that its last round left on its branch.
    pub head: Option<Oid>,
    /// Its cost, as far as its agents reported it.
    pub cost: Option<Usd>,
    /// It cost more: some agent did not say.
    pub cost_at_least: bool,
    pub again: Option<Return>,
    /// How long its finished rounds took, without the time in which the plan had no runner.
    pub worked: Duration,
    pub settled_at: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It is not for this plan to do: done before, or not to be done.
    Out,
    /// It is to be done, once this many others have landed.
    Waiting(usize),
    Running(RunningTask),
    Proven {
        tree: Option<Oid>,
    },
    Landed {
        /// Its commit; none if nothing was to be changed.
        commit: Option<Oid>,
    },
    Stopped(Stop),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningTask {
    pub id: LoopId,
    pub round: u32,
    pub slot: u32,
    /// The tip of the landed work when it began.
    pub onto: Oid,
    pub granted: u32,
    pub money: Option<Usd>,
    pub started_at: Timestamp,
    /// How long the plan had been driven then.
    pub since: Duration,
    /// Why it has no runner, although it is not over.
    pub halt: Option<Halt>,
}

/// Why a loop is left alone for now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Halt {
    /// A person paused it: it continues with the plan's next runner.
    Rests,
    /// It has spent its share, and there was no more to give.
    OutOfMoney,
    /// A cap that it shares with other loops left nothing for it.
    CapReached(CapUsage),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Return {
    /// Others had changed the same paths.
    Conflict(Vec<RepoPath>),
    /// With what others had landed, a gate failed.
    Failed(FailedGate),
    /// A person said how to continue.
    Tuned(String),
    /// A person resumed it after it had stopped for this reason.
    Resumed(String),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wave {
    pub tasks: Vec<usize>,
    /// How many of them are neither done, nor stopped, nor waiting for a stopped one.
    pub open: usize,
    /// Its commit, once it is complete; the inner one is none if nothing was changed.
    pub completed: Option<Option<Oid>>,
    pub completed_at: Option<Timestamp>,
}

/// How far the branch that the plan began on has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HandOver {
    /// The waves that it does not have, each with the commits of its tasks.
    pub due: Vec<(WaveNumber, Vec<(TaskId, Oid)>)>,
    /// Why it does not, when that was tried last.
    pub refused: Option<String>,
}

/// Tasks whose work was merged, one on top of the other, and which of that is known to be well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The work, in order.
    pub merged: Vec<MergedTask>,
    /// This many of them, from the first, pass together.
    pub good: usize,
    /// This many of them, from the first, fail, and at which gate.
    pub bad: Option<(usize, FailedGate)>,
}

impl Batch {
    /// With how many of its tasks the verification is run next: the middle between the number known to pass and the
    /// number known to fail. None if it is known how many may land.
    pub fn question(&self) -> Option<usize> {
        match &self.bad {
            None if self.good == self.merged.len() => None,
            None => Some(self.merged.len()),
            Some((bad, _)) if *bad == self.good + 1 => None,
            Some((bad, _)) => Some(usize::midpoint(self.good, *bad)),
        }
    }
}

impl PlanState {
    pub fn task(&self, id: &TaskId) -> Option<&TaskState> {
        self.tasks.get(self.graph.index(id)?)
    }

    pub fn has_landed(&self) -> bool {
        self.tasks.iter().any(|task| matches!(task.stage, Stage::Landed { .. }))
    }

    /// Whether gates pass on what has landed: those of the plan, or those of tasks on that very tree.
    pub fn is_verified(&self) -> bool {
        self.spec.verifies() || self.has_landed() && !self.landed_unverified
    }

    pub fn iterations_left(&self) -> u32 {
        self.limits.total.saturating_sub(self.used).saturating_sub(self.reserved)
    }

    /// The tasks that a loop works on, by their places.
    pub fn running(&self) -> impl Iterator<Item = (usize, &RunningTask)> {
        self.running.iter().filter_map(|task| {
            let Stage::Running(running) = &self.tasks[*task].stage else { return None };
            Some((*task, running))
        })
    }

    /// The shared cap that left nothing for one of its loops.
    pub fn shared_cap(&self) -> Option<CapUsage> {
        self.running().find_map(|(_, running)| match running.halt {
            Some(Halt::CapReached(by)) => Some(by),
            Some(Halt::Rests | Halt::OutOfMoney) | None => None,
        })
    }

    /// The status in the task file, if the plan decides it: until the plan has touched a task, the file's own word
    /// stays. After a crash a task is not in progress.
    pub fn status_of(&self, task: &TaskState) -> TaskStatus {
        match &task.stage {
            Stage::Out => task.card.status,
            Stage::Waiting(_) => TaskStatus::Pending,
            Stage::Running(_) | Stage::Proven { .. } if task.is_withdrawn => task.card.status,
            Stage::Running(_) | Stage::Proven { .. } if self.is_final() => TaskStatus::Pending,
            Stage::Running(_) | Stage::Proven { .. } => TaskStatus::InProgress,
            // Landed work of a cancelled plan that is on no branch is still to be done.
            Stage::Landed { .. } if self.is_final() && !self.is_handed_over(&task.card.id) => {
                TaskStatus::Pending
            }
            Stage::Stopped(Stop::Cancelled) if self.cancel.is_some() => TaskStatus::Pending,
            Stage::Landed { .. } => TaskStatus::Done,
            Stage::Stopped(_) if self.awaits_tune(task) => TaskStatus::AwaitingTune,
            Stage::Stopped(_) => TaskStatus::Blocked,
        }
    }

    /// The tasks that landed and that its file calls to do, as the plan handed none of their work over.
    pub fn landed_but_to_do(&self) -> impl Iterator<Item = &TaskId> {
        let is_to_do = |task: &&TaskState| {
            matches!(task.stage, Stage::Landed { .. }) && self.status_of(task) == TaskStatus::Pending
        };
        self.tasks.iter().filter(is_to_do).map(|task| &task.card.id)
    }

    /// Whether the branch that the plan began on has what a task did.
    fn is_handed_over(&self, task: &TaskId) -> bool {
        let due = self.handover.due.iter().flat_map(|(_, its)| its);
        !self.line.iter().chain(due).any(|(id, _)| id == task)
    }

    /// Whether a person has to say how a task continues: it was tried in vain, and the plan asks for that.
    pub fn awaits_tune(&self, task: &TaskState) -> bool {
        let in_vain = matches!(task.stage, Stage::Stopped(Stop::UsedUp | Stop::Stuck | Stop::Unfit));
        in_vain && self.spec.tune
    }

    /// Why a task is not done, in a line, for its file and for people.
    pub fn blocked_because(&self, task: &TaskState) -> Option<String> {
        task.stopped_because().filter(|_| self.status_of(task) != TaskStatus::Pending)
    }
}

impl TaskState {
    /// Whether a person may say how it continues: it has stopped, or was told so and has not begun since.
    pub fn may_be_tuned(&self) -> bool {
        match &self.stage {
            Stage::Stopped(_) => true,
            Stage::Waiting(_) => matches!(self.again, Some(Return::Tuned(_))),
            Stage::Out | Stage::Running(_) | Stage::Proven { .. } | Stage::Landed { .. } => false,
        }
    }

    /// Whether git's conflict marks may be in its work: its last round began with the work of an earlier one, merged onto
    /// what had landed. While they are there it does not land, whatever its gates say of it, also after a resume.
    pub fn may_hold_marks(&self) -> bool {
        self.before.is_some()
    }

    /// Why it has stopped, in a line; none if it has not.
    pub(super) fn stopped_because(&self) -> Option<String> {
        let Stage::Stopped(stop) = &self.stage else { return None };
        Some(match stop {
            Stop::UsedUp => format!("not proven in {}{}", self.tries(), self.failure()),
            Stop::Stuck => format!("stuck after {}{}", self.tries(), self.failure()),
            Stop::TimedOut => format!("it took too long{}", self.failure()),
            Stop::GaveUp { reason } | Stop::Other { reason } => reason.clone(),
            Stop::Unfit => match &self.again {
                Some(Return::Conflict(paths)) => {
                    let paths: Vec<_> = paths.iter().map(ToString::to_string).collect();
                    format!("it still conflicts with what landed, in {}", paths.join(", "))
                }
                Some(Return::Failed(failed)) => {
                    format!("with what landed, {} still fails", failed.gate)
                }
                Some(Return::Tuned(_) | Return::Resumed(_)) | None => {
                    "it does not fit what landed".to_owned()
                }
            },
            Stop::Cancelled => "its loop was cancelled".to_owned(),
        })
    }

    /// The iterations of its last round, and in total if there were more rounds.
    pub fn tries(&self) -> String {
        let last = iterations(self.of_round);
        if self.rounds > 1 {
            format!("{last} of round {}, {} in all", self.rounds, self.iterations)
        } else {
            last
        }
    }

    fn failure(&self) -> String {
        let fault = self.fault.as_ref().map(|fault| format!("; its agent {}", fault.said));
        let gate = || self.failed_gate.as_ref().map(|gate| format!("; {gate}"));
        fault.or_else(gate).unwrap_or_default()
    }
}

fn iterations(count: u32) -> String {
    if count == 1 { "1 iteration".to_owned() } else { format!("{count} iterations") }
}
