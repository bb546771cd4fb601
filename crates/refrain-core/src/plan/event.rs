//! What happens to a plan, in the past tense, as its journal records it; stored, like [`crate::event`]. Whether an
//! event is synced before anything relies on it is in the table of `docs/architecture/core.md`.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::spec::{PlanLimits, PlanSpec};
use super::task::{Card, TaskId};
use crate::agent::Usd;
use crate::budget::CapUsage;
use crate::event::{Ask, Asker, Identity};
use crate::fingerprint::Fingerprint;
use crate::gate::GateName;
use crate::git::{Oid, RepoPath};
use crate::ids::{LoopId, RequestId};
use crate::model::status::StatusWord;

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", content = "data")]
pub enum PlanEvent {
    /// A plan exists: always the first event, and only the first.
    #[serde(rename = "plan.started")]
    Started(Box<PlanStarted>),
    /// A runner took the plan over: no loop of it has another any more, and nothing of a batch is under way.
    #[serde(rename = "runner.started")]
    RunnerStarted {
        /// Who drives the plan from here on.
        runner: Identity,
    },
    /// The task file was read: the first time, or because it had changed.
    #[serde(rename = "tasks.taken")]
    TasksTaken {
        /// All that stands in it, in its order.
        tasks: Vec<Card>,
    },
    /// The task file has changed, and cannot be used as it is now: what was taken before stands.
    #[serde(rename = "tasks.refused")]
    TasksRefused {
        /// What is wrong with it.
        error: String,
    },
    /// What the plan begins at.
    #[serde(rename = "base.taken")]
    BaseTaken {
        /// The commit that was checked out.
        head: Oid,
        /// The branch that was checked out, without `refs/heads/`; none where the head was detached.
        branch: Option<String>,
    },
    /// A loop is about to be started for a task: an intent.
    #[serde(rename = "task.started")]
    TaskStarted(Box<TaskStarted>),
    /// The loop of a task has stopped.
    #[serde(rename = "task.ended")]
    TaskEnded(Box<TaskEnded>),
    /// A person said how a task that was used up is to go on.
    #[serde(rename = "task.tuned")]
    TaskTuned {
        /// Which.
        task: TaskId,
        /// What the next agent's prompt adds.
        words: String,
    },
    /// The work of some tasks was merged, one after the other, onto what has landed; nothing of it has landed yet.
    #[serde(rename = "batch.merged")]
    BatchMerged {
        /// Each that could be, with what the tree is with it and all before it.
        merged: Vec<MergedTask>,
        /// Those that could not.
        refused: Vec<UnmergedTask>,
    },
    /// The verification was run on what a batch comes to.
    #[serde(rename = "batch.verified")]
    BatchVerified {
        /// With how many of its tasks.
        upto: usize,
        /// The gate that failed; none where all passed.
        failed: Option<FailedGate>,
    },
    /// The good ones of a batch are on the line of what has landed. Where it failed, the first that made it fail is not among
    /// them, and those after that one are to be merged again.
    #[serde(rename = "batch.landed")]
    BatchLanded {
        /// The commit of each; none for one that changed nothing.
        commits: Vec<Option<Oid>>,
        /// Why the next one may not land although it is well: what it holds looks like a secret.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        refused: Option<String>,
        /// What has landed in all.
        tip: Oid,
        /// Where the line was, if something else than the plan had moved it: an agent, most likely. It was taken back.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        line_was: Option<Oid>,
    },
    /// Nothing of a wave is to be done any more, and what of it has landed is one commit.
    #[serde(rename = "wave.completed")]
    WaveCompleted {
        /// Which, from 1.
        wave: WaveNumber,
        /// The commit; none where nothing of the wave changed anything.
        commit: Option<Oid>,
        /// Its tasks that landed.
        tasks: Vec<TaskId>,
        /// What has landed of later waves, anew on top of it, in order.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        rest: Vec<Oid>,
        /// The commits of its tasks that were made anew for it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        commits: Vec<TaskCommit>,
    },
    /// What is complete was handed over to the branch that the plan began on, or why not.
    #[serde(rename = "waves.handed-over")]
    HandedOver {
        /// What the branch has now, where it was; none where it was not.
        head: Option<Oid>,
        /// What has landed since, anew on top of it, in order.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        rest: Vec<Oid>,
        /// The waves that were made anew, because the branch had other commits by then.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        waves: Vec<RemadeWave>,
        /// Why not, and what a person has to do.
        refused: Option<String>,
    },
    /// Git could not do what comes next: the plan cannot go on by itself.
    #[serde(rename = "plan.hindered")]
    Hindered {
        /// What it said.
        error: String,
    },
    /// Something was asked of the plan.
    #[serde(rename = "asked")]
    Asked {
        /// The request's own name, where it came through the inbox.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request: Option<RequestId>,
        /// What.
        ask: Ask,
        /// Who asked.
        #[serde(default, skip_serializing_if = "Asker::is_person")]
        by: Asker,
    },
    /// The plan has stopped.
    #[serde(rename = "plan.ended")]
    Ended(PlanEnd),
    /// It continues, under these limits. What was blocked is tried again.
    #[serde(rename = "plan.resumed")]
    Resumed {
        /// The limits in force.
        limits: PlanLimits,
    },
    /// Half a line at the journal's end was moved aside.
    #[serde(rename = "journal.torn")]
    JournalTorn {
        /// How much.
        bytes: u64,
        /// The name that it has beside the journal.
        kept_as: String,
    },
    /// The journal was deleted under its writer, or another process had changed it, and was written back.
    #[serde(rename = "journal.restored")]
    JournalRestored {
        /// How much.
        bytes: u64,
        /// The file beside the journal that keeps what another process had made of it; none where it was deleted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kept_as: Option<String>,
    },
}

impl PlanEvent {
    /// The event without what must not be seen outside: values of variables that were set for the agents.
    #[must_use]
    pub fn redacted(mut self) -> Self {
        if let Self::Started(started) = &mut self {
            started.spec.each.redact();
        }
        self
    }
}

/// How a plan begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlanStarted {
    /// The journal's format, [`crate::event::FORMAT`] at its writing.
    pub format: u32,
    /// The version of Refrain that wrote it.
    pub refrain: String,
    /// What is to be done.
    pub spec: PlanSpec,
}

/// The commit of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskCommit {
    /// Which task.
    pub task: TaskId,
    /// Its commit.
    pub commit: Oid,
}

/// A wave by its number in the events, from 1: they number waves in the order in which these are completed. People see
/// another number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct WaveNumber(pub u32);

impl WaveNumber {
    /// The number of the wave at this place in the plan's state.
    pub fn of_place(place: usize) -> Self {
        Self(u32::try_from(place + 1).unwrap_or(u32::MAX))
    }

    /// Its place in the plan's state; none for 0, which is no number.
    pub fn place(self) -> Option<usize> {
        (self.0 as usize).checked_sub(1)
    }
}

impl fmt::Display for WaveNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A wave on top of other commits than those that it was made on first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RemadeWave {
    /// Which, from 1.
    pub wave: WaveNumber,
    /// Its commit.
    pub commit: Oid,
    /// The commits of its tasks.
    pub commits: Vec<TaskCommit>,
}

/// How one round of a task begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskStarted {
    /// Which task.
    pub task: TaskId,
    /// Which of its rounds, from 1: each is a loop of its own.
    pub round: u32,
    /// The loop.
    pub id: LoopId,
    /// The worktree of the pool that it works in.
    pub slot: u32,
    /// What had landed by then: what its work is compared with.
    pub onto: Oid,
    /// How many iterations it may take.
    pub granted: u32,
    /// How much money it may spend, where that is limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub money: Option<Usd>,
}

/// How one round of a task ended.
#[serde_with::apply(Option => #[serde(default, skip_serializing_if = "Option::is_none")])]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskEnded {
    /// Which task.
    pub task: TaskId,
    /// What came of it.
    pub end: TaskEnd,
    /// What its branch has: all that was committed in the round. None where there is no such branch.
    pub head: Option<Oid>,
    /// Iterations that count.
    pub iterations: u32,
    /// What the round cost, as far as its agents said.
    pub cost: Option<Usd>,
    /// It cost more than that: an agent did not say what it cost, or was cut off before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cost_at_least: bool,
    /// What the plan's cap on money counts besides, for agents that did not report their cost.
    pub assumed_cost: Option<Usd>,
    /// How the last agent of the round failed; none where it ended well.
    pub fault: Option<AgentFault>,
    /// The required gate that failed last, and the last line that it printed.
    pub failed_gate: Option<String>,
}

/// How an agent failed by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentFault {
    /// How it ended, with the last line that it printed.
    pub said: String,
    /// What that comes down to, where it could be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<Fingerprint>,
}

/// What came of a round.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TaskEnd {
    /// It is done, and waits to land.
    Proven {
        /// The tree that its gates proved; none where no gate decides, or they saw files that the tree has not.
        tree: Option<Oid>,
    },
    /// It is not done, and is not tried again automatically.
    Stopped(Stop),
    /// The money that it was given is spent.
    OutOfMoney,
    /// A cap on money that all loops share leaves nothing for it; it continues once there is more.
    CapReached {
        /// The cap, as it stood then.
        by: CapUsage,
    },
    /// It rests, and continues where it was with the plan's next runner.
    Rests,
    /// It cannot go on for a reason that every other task would meet too: the agent is not there, not logged in, or whatever
    /// this line says.
    Hindered {
        /// Why, and what a person has to do.
        error: String,
    },
}

/// Why a task is not done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Stop {
    /// The iterations that it may take are used.
    UsedUp,
    /// The same failure came back too often.
    Stuck,
    /// It took longer than one task may.
    TimedOut,
    /// Its agent said that it cannot be done.
    GaveUp {
        /// Why, in the agent's words.
        reason: String,
    },
    /// What it made did not fit what others had landed meanwhile, each time.
    Unfit,
    /// A person cancelled its loop.
    Cancelled,
    /// For another reason.
    Other {
        /// Which.
        reason: String,
    },
}

/// A task's work on top of what has landed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MergedTask {
    /// Which task.
    pub task: TaskId,
    /// What there is with it, and all of the batch before it.
    pub tree: Oid,
}

/// A task whose work cannot be merged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnmergedTask {
    /// Which task.
    pub task: TaskId,
    /// Where both sides changed the same.
    pub paths: Vec<RepoPath>,
    /// Another reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// A gate that failed on what would land.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FailedGate {
    /// Which.
    pub gate: GateName,
    /// The file with what it printed, in the plan's folder.
    pub log: String,
}

/// How a plan stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PlanEnd {
    /// Every task is done, has landed, and was handed over. Final.
    Completed,
    /// A person said stop. Final.
    Cancelled,
    /// All iterations that were granted are used.
    IterationCap,
    /// The money is used.
    BudgetExceeded,
    /// Its own duration is over.
    TimedOut,
    /// It waits for a person.
    Blocked,
    /// A person, or a signal, stopped it for now.
    Paused,
}

impl From<PlanEnd> for StatusWord {
    fn from(end: PlanEnd) -> Self {
        match end {
            PlanEnd::Completed => Self::Completed,
            PlanEnd::Cancelled => Self::Cancelled,
            PlanEnd::IterationCap => Self::IterationCap,
            PlanEnd::BudgetExceeded => Self::BudgetExceeded,
            PlanEnd::TimedOut => Self::TimedOut,
            PlanEnd::Blocked => Self::Blocked,
            PlanEnd::Paused => Self::Paused,
        }
    }
}
