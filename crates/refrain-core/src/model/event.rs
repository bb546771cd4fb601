//! What happened, in the past tense, as the journal records it. This is the stored vocabulary: names are dotted and
//! stable, and every change of shape is a change of [`FORMAT`]. Whether an event is synced before anything relies on it
//! is in the table of `docs/architecture/core.md`, and nowhere else.

mod moving;
mod process;
mod process_end;
mod stop;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::agent::AgentReport;
use crate::budget::CapUsage;
use crate::gate::GateName;
use crate::git::{Base, CommitReport, Effect, Oid, PublishReport, RepoPath};
use crate::ids::{AttemptId, RequestId};
use crate::protect::ProtectionBreach;
use crate::sandbox::Host;
use crate::session::Session;
use crate::signature::{Check, SignedKind};
use crate::spec::{AgentSpec, Limits, Secret, Spec};
use crate::work::WorkDigest;

pub use moving::{Arrival, Departure};
pub use process::{Identity, Process};
pub use process_end::{
    AttemptFinished, AttemptSeals, CritiqueFinished, Exit, GateFinished, ReviewResult, Seal,
};
pub use stop::StopReason;

/// The journal's format: what this version writes. It reads this format and all earlier ones. New kinds of events, or
/// of their values, raise it once a release; format 1 is that of 0.1.0.
pub const FORMAT: u32 = 2;

/// Whether this version reads a journal of that format.
pub fn is_readable(format: u32) -> bool {
    (1..=FORMAT).contains(&format)
}

/// One line of a journal, less its hash.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Record<E = Event> {
    /// Its place, from 1, without gaps.
    pub seq: u64,
    /// When it was recorded, by the writer's clock; never before the record in front of it.
    pub at: Timestamp,
    /// What happened.
    pub event: E,
}

/// What happened.
#[serde_with::apply(
    Option => #[serde(default, skip_serializing_if = "Option::is_none")],
    Vec => #[serde(default, skip_serializing_if = "Vec::is_empty")],
    bool => #[serde(default, skip_serializing_if = "std::ops::Not::not")],
)]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", content = "data")]
pub enum Event {
    /// A loop exists: always the first event, and only the first.
    #[serde(rename = "loop.started")]
    LoopStarted(Box<LoopStarted>),
    /// A runner took the loop over, and says what became of an attempt that it found in flight.
    #[serde(rename = "runner.started")]
    RunnerStarted {
        /// Who drives the loop from here on.
        runner: Identity,
        /// The attempt that its predecessor left behind, ended and refunded by this event.
        interrupted: Option<AttemptId>,
        /// What that attempt's stream holds: the agent's own last word ([`Exit::Unseen`]), and then it is not run again, or
        /// only what it used until it was lost.
        adopted: Option<Box<AttemptFinished>>,
        /// What the stream of a reviewer or a critic holds that it left behind in flight: what it used is paid, and what it
        /// said is not believed.
        judged: Option<Box<AgentReport>>,
        /// The fence under which it drives the loop, if other machines may take the loop over from it.
        fence: Option<u64>,
    },
    /// An agent's own session drives the loop from here on, or it is known better which one: its turns are the attempts.
    #[serde(rename = "session.bound")]
    SessionBound(Session),
    /// No session drives the loop any more: a runner starts its agents from here on.
    #[serde(rename = "session.left")]
    SessionLeft,
    /// What was in the repository before the loop, once its branch or worktree is there: everything later is its own.
    #[serde(rename = "base.taken")]
    BaseTaken(Box<Base>),
    /// The branch or the worktree could not be made, or what is in the repository could not be told.
    #[serde(rename = "base.refused")]
    BaseRefused {
        /// What git said.
        error: String,
    },
    /// The counter moved: iteration `iteration` is under way.
    #[serde(rename = "iteration.begun")]
    IterationBegun {
        /// From 1, without gaps.
        iteration: u32,
        /// The work at that time; none if it is not known.
        work: Option<WorkDigest>,
    },
    /// The agent is about to be started: an intent.
    #[serde(rename = "attempt.started")]
    AttemptStarted(AttemptId),
    /// The agent's process exists.
    #[serde(rename = "attempt.spawned")]
    AttemptSpawned {
        /// The agent's own process, and leader of its session.
        process: Process,
    },
    /// The agent could not be started at all.
    #[serde(rename = "attempt.spawn-failed")]
    AttemptSpawnFailed {
        /// What the system said.
        error: String,
    },
    /// The attempt is being ended by the stop ladder.
    #[serde(rename = "attempt.stop-requested")]
    AttemptStopRequested {
        /// Why.
        because: StopReason,
    },
    /// The agent's own process is gone.
    #[serde(rename = "attempt.finished")]
    AttemptFinished(Box<AttemptFinished>),
    /// What the agent, or a gate, left running was ended, or what of it can be.
    #[serde(rename = "attempt.swept")]
    AttemptSwept {
        /// How many processes were ended.
        killed: u32,
        /// Those that were killed and did not go: another user's, or hung in the system. The loop no longer waits for
        /// them.
        survivors: Vec<i32>,
        /// What they were: the names of their programs, some of them.
        names: Vec<String>,
    },
    /// What the gates are to prove is known: before the first iteration, after one, or once more when all have spoken.
    #[serde(rename = "candidate.taken")]
    CandidateTaken {
        /// Its tree; none where there is no repository.
        tree: Option<Oid>,
        /// The loop changed something that the tree does not show: what was dirty before it, or must not be committed.
        partial: bool,
        /// What of the protected was touched since the start.
        touched: Vec<ProtectionBreach>,
        /// What the gates, or a commit hook, changed of the candidate before: the first paths of them.
        changed: Vec<RepoPath>,
    },
    /// Git does not say what there is to prove.
    #[serde(rename = "candidate.refused")]
    CandidateRefused {
        /// What it said.
        error: String,
        /// The work itself is to blame: objects that git does not make. Other work of the repository is not hindered.
        bad_work: bool,
    },
    /// A gate is about to be started: an intent.
    #[serde(rename = "gate.started")]
    GateStarted {
        /// Which.
        gate: GateName,
        /// Which of its runs after this attempt, from 1.
        run: u32,
    },
    /// The gate could not be started at all: it failed.
    #[serde(rename = "gate.spawn-failed")]
    GateSpawnFailed {
        /// What the system said.
        error: String,
    },
    /// The gate is being ended by the stop ladder.
    #[serde(rename = "gate.stop-requested")]
    GateStopRequested {
        /// Why.
        because: StopReason,
    },
    /// The gate's own process is gone.
    #[serde(rename = "gate.finished")]
    GateFinished(Box<GateFinished>),
    /// What an iteration changed was committed, or could not be.
    #[serde(rename = "commit.settled")]
    CommitSettled(Box<CommitReport>),
    /// Something is about to be done outside the repository: an intent.
    #[serde(rename = "publish.started")]
    PublishStarted {
        /// What, with the commit that the head is at.
        effect: Effect,
    },
    /// It was done, or not; or the checks were looked at.
    #[serde(rename = "publish.settled")]
    PublishSettled(Box<PublishReport>),
    /// The critic is about to be started: an intent.
    #[serde(rename = "critique.started")]
    CritiqueStarted {
        /// Behind which iteration.
        iteration: u32,
    },
    /// The critic could not be started at all.
    #[serde(rename = "critique.failed")]
    CritiqueFailed {
        /// What the system said.
        error: String,
    },
    /// The critic is being ended by the stop ladder.
    #[serde(rename = "critique.stop-requested")]
    CritiqueStopRequested {
        /// Why.
        because: StopReason,
    },
    /// The critic's own process is gone.
    #[serde(rename = "critique.finished")]
    CritiqueFinished(Box<CritiqueFinished>),
    /// The loop was stuck, and continues with another agent or model.
    #[serde(rename = "agent.changed")]
    AgentChanged(Box<AgentSpec>),
    /// The loop is about to end without a proof, and what it did is on a branch of its own.
    #[serde(rename = "work.saved")]
    WorkSaved {
        /// The branch.
        branch: String,
        /// Its commit.
        commit: Oid,
        /// Where it was pushed to, or why that failed; none where there is no remote.
        pushed: Option<PushReport>,
        /// Files that were changed before the loop and by it: they hold the user's changes too.
        mixed: Vec<RepoPath>,
    },
    /// The loop is about to end without a proof, and there is no branch with what it did.
    #[serde(rename = "work.unsaved")]
    WorkUnsaved {
        /// Why.
        why: String,
    },
    /// The loop is about to end for good, and its own worktree was removed, or is kept because something would be lost.
    #[serde(rename = "worktree.released")]
    WorktreeReleased {
        /// Why it is kept; none where it was removed.
        kept: Option<String>,
        /// Its branch was removed with it: it had no commit of its own.
        branch_removed: bool,
    },
    /// A request to the loop was recorded.
    #[serde(rename = "asked")]
    Asked {
        /// The request's id; none where it was a signal.
        request: Option<RequestId>,
        /// What was asked.
        ask: Ask,
        /// Who asked.
        #[serde(default, skip_serializing_if = "Asker::is_person")]
        by: Asker,
    },
    /// The loop waits for a time to come.
    #[serde(rename = "wait.started")]
    WaitStarted(Wait),
    /// The loop stopped, for good or until `resume`.
    #[serde(rename = "loop.ended")]
    LoopEnded(End),
    /// A person lets a stopped loop go on.
    #[serde(rename = "loop.resumed")]
    LoopResumed {
        /// The limits from here on, as totals.
        limits: Limits,
        /// What they approved of: the candidate that waited for it. One that waited, and continues without, was not approved.
        approved: Option<ApprovedTree>,
        /// From here on its agent and its gates run with the user's rights.
        no_sandbox: bool,
    },
    /// The loop leaves this machine: from here on the remote has it.
    #[serde(rename = "loop.left")]
    LoopLeft(Box<Departure>),
    /// A machine took the loop over.
    #[serde(rename = "loop.moved")]
    LoopMoved(Box<Arrival>),
    /// The writer found an unterminated last line and moved it aside.
    #[serde(rename = "journal.torn")]
    JournalTorn {
        /// How many bytes were cut off.
        bytes: u64,
        /// The file beside the journal that keeps them.
        kept_as: String,
    },
    /// The journal's file was gone under the runner, or another process had changed it, and was written back.
    #[serde(rename = "journal.restored")]
    JournalRestored {
        /// How many bytes were written back.
        bytes: u64,
        /// The file beside the journal that keeps what another process had made of it; none where it was gone.
        kept_as: Option<String>,
    },
}

impl Event {
    /// The kind of a record with this event, if it is signed.
    pub fn signed(&self) -> Option<SignedKind> {
        if let Self::LoopStarted(_) = self {
            Some(SignedKind::Start)
        } else if let Self::RunnerStarted { .. } = self {
            Some(SignedKind::Runner)
        } else if let Self::LoopResumed { approved, .. } = self {
            Some(SignedKind::Resumed { approves: approved.is_some() })
        } else if let Self::LoopEnded(_) = self {
            Some(SignedKind::End)
        } else if let Self::LoopLeft(_) = self {
            Some(SignedKind::Departure)
        } else if let Self::LoopMoved(_) = self {
            Some(SignedKind::Arrival)
        } else {
            None
        }
    }

    /// The event without what must not be seen outside: values of variables that were set for the agent.
    #[must_use]
    pub fn redacted(mut self) -> Self {
        if let Self::LoopStarted(started) = &mut self {
            started.spec.redact();
        } else if let Self::AgentChanged(agent) = &mut self {
            agent.env.values_mut().for_each(|value| *value = Secret::redacted());
        }
        self
    }
}

/// The first event of a journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoopStarted {
    /// The journal's format, [`FORMAT`] at its writing.
    pub format: u32,
    /// The version of Refrain that wrote it.
    pub refrain: String,
    /// What is to be done.
    pub spec: Spec,
}

/// What a person approved of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovedTree {
    /// Which attempt left it.
    pub attempt: AttemptId,
    /// Its tree; none where there is no repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<Oid>,
}

/// What became of pushing a branch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PushReport {
    /// The remote's name.
    pub remote: String,
    /// What git said where it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What can be asked of a loop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Ask {
    /// Stop, to go on later.
    Pause(Urgency),
    /// Stop for good.
    Cancel(Urgency),
    /// Words for the next prompt.
    Steer(String),
    /// Wait no longer: try at once.
    Proceed,
    /// Let its sandbox reach one more host.
    AllowHost(Host),
    /// Take back an earlier request that has had no effect yet.
    Withdraw(RequestId),
}

/// Who asks something of a loop or a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Asker {
    /// A process inside an attempt of a loop.
    Agent,
    /// A request that names a person and is not signed: any process of the user can write one.
    Unknown,
    /// A person, a program of theirs, or a signal.
    #[default]
    Person,
}

impl Asker {
    /// Who a request counts as from that names this one. An agent can write a request too, and name a person in it:
    /// only a signature shows a person.
    #[must_use]
    pub fn checked(self, signature: &Check) -> Self {
        match (self, signature) {
            (Self::Person, Ok(())) => Self::Person,
            (Self::Person | Self::Unknown, _) => Self::Unknown,
            (Self::Agent, _) => Self::Agent,
        }
    }

    pub fn is_person(&self) -> bool {
        *self == Self::Person
    }
}

/// When to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Urgency {
    /// When this iteration is over.
    AfterIteration,
    /// At once: the agent is ended.
    Now,
}

/// Something that is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Wait {
    /// What for.
    pub kind: WaitKind,
    /// Until when.
    pub until: Timestamp,
}

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WaitKind {
    /// The rest between iterations that `--pause` asks for.
    Pace,
    /// The provider's limit to be reset.
    Limit,
    /// The provider, or the way there, to work again.
    Outage,
    /// The checks of a pull request to be over.
    Checks,
    /// The remote, or the forge, to work again.
    Remote,
}

/// How a loop stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "status", rename_all = "kebab-case")]
pub enum End {
    /// The work is done. Final.
    Completed {
        /// Who said so.
        claim: ClaimSource,
    },
    /// A person said stop. Final.
    Cancelled,
    /// As many iterations were charged as were granted.
    IterationCap,
    /// It makes no progress, and what was tried against that did not help.
    Stuck,
    /// The loop's own duration is over.
    TimedOut,
    /// The money or the tokens granted are used up, or the next iteration would use them up.
    BudgetExceeded {
        /// The cap, where it is one that loops share; else it is the loop's own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<CapUsage>,
    },
    /// It waits for a person.
    Blocked {
        /// Why it cannot go on by itself.
        why: BlockReason,
    },
    /// A person, or a signal, stopped it for now.
    Paused,
}

/// Who claimed that the work is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimSource {
    /// The promise in the agent's message.
    Promise,
    /// `status: done` in `state.md`.
    StateFile,
    /// Exit code 0, where there is neither a promise nor a hard gate.
    ExitCode,
    /// The gates alone: the agent ended well and there is no promise, or `--success-command` passed.
    Gates,
    /// The gates alone, as a task's agent ended well without a word, and changed something.
    Result,
    /// No agent: the number of iterations that was asked for is done (`--exact N`).
    Count,
}

impl ClaimSource {
    /// Whether the agent said in words that it is done.
    pub fn is_said(self) -> bool {
        match self {
            Self::Promise | Self::StateFile => true,
            Self::ExitCode | Self::Gates | Self::Result | Self::Count => false,
        }
    }
}

/// Why a loop cannot go on by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BlockReason {
    /// Three attempts in a row were refunded for reasons that are no provider's wait.
    Refunds,
    /// Three instant failures of the agent in a row.
    Churn,
    /// The agent cannot be started.
    AgentMissing,
    /// What the agent prints cannot be kept.
    OutputLost,
    /// A gate's command was not found, or may not be executed, before the first iteration.
    GateMissing,
    /// The agent is not logged in.
    Login,
    /// The provider, or a proxy on the way there, refuses the agent's requests.
    Forbidden,
    /// There is no money left at the provider.
    Credit,
    /// There is no such model.
    Model,
    /// The agent refused its command line or its configuration.
    Setup,
    /// The session that it was to go on with does not exist.
    Session,
    /// The provider's limit is reset later than the loop may wait.
    Limit,
    /// The provider did not work for longer than the loop may wait.
    Outage,
    /// There is a cap on money, and the agent does not say what it costs.
    CostUnknown,
    /// It makes no progress, and a person wanted to be asked.
    Stuck,
    /// Its branch or its worktree cannot be made, or git does not say what is in the repository.
    Repository,
    /// Its agent gave the task up.
    GaveUp,
    /// Its session ended its turn again and again without having done anything.
    Idle,
    /// What it did cannot be published.
    Publish,
    /// Its agent said `status: blocked` in `state.md`, and it still stood there after one more iteration.
    StateFile,
    /// What it claims is proven as far as gates can, and a person is to approve it.
    Approval,
}

impl BlockReason {
    /// Whether another machine may be able to continue the loop as it is.
    pub fn is_of_machine(self) -> bool {
        matches!(self, Self::AgentMissing | Self::OutputLost | Self::GateMissing | Self::Login)
    }

    /// Whether the work itself did not get on.
    pub(crate) fn is_of_work(self) -> bool {
        matches!(self, Self::Stuck | Self::GaveUp | Self::StateFile)
    }
}
