//! What a loop's events add up to. Never stored, always folded.

mod child;
mod critique;
mod outcome;
mod progress;
mod proof;
mod publish;

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use super::moving::Tenure;
use super::provider_faults::{ProviderRetry, Trouble};
use crate::agent::{FaultKind, Tokens, Usage, Usd};
use crate::budget::Allowance;
use crate::event::{ApprovedTree, Asker, AttemptFinished, BlockReason, ClaimSource, End, Process, Wait};
use crate::git::{Base, CommitReport, Dirty, ExposedSecret, Oid, OmittedPath, subject};
use crate::ids::{AttemptId, RequestId};
use crate::machine::Lifecycle;
use crate::memory::goal;
use crate::session::Session;
use crate::signature::{self, Signatures, SignedRecord};
use crate::spec::{Limits, Spec};

pub use child::{Child, ChildId};
pub use critique::{Feedback, RunningCritique};
pub(super) use outcome::Cause;
pub use outcome::Outcome;
pub use progress::{Progress, Saved};
pub use proof::{Approval, Candidate, DroppedGate, GateFailure, GateResult, Proof, Proving, RunningGate};
pub use publish::{Objection, PublishState, Publishing};

#[derive(Clone, Debug, PartialEq)]
pub struct LoopState {
    /// The part that plans have as well. Its own duration is wall time with a runner, less pauses and waits.
    pub lifecycle: Lifecycle<End>,
    /// The format of its journal: a few records of release 0.1.0 (format 1) mean what they meant there.
    pub(super) format: u32,
    pub spec: Spec,
    /// The limits in force: the specification's, or what the last `resume` granted.
    pub limits: Limits,
    /// Its phase: between two attempts, or in one.
    pub phase: Phase,
    /// Every attempt that is over, oldest first.
    pub attempts: Vec<Attempt>,
    pub iteration: u32,
    pub charged: u32,
    pub wait: Option<Wait>,
    /// When the last wait began, and until when it was to last; the inner none if it began again.
    pub(super) wait_span: (Option<Timestamp>, Timestamp),
    /// Words for the next prompt, until an iteration that got them is charged.
    pub steering: Vec<Steering>,
    /// The agent's own session that drives it: a runner only works between two of its turns.
    pub session: Option<Session>,
    pub spent: Usage,
    /// What its own cap on money counts besides, for agents that did not report their cost.
    pub assumed: Usd,
    /// The cost of each agent that ran, in their order; none if unknown.
    pub costs: Vec<Option<Usd>>,
    /// The usage of each agent that judged the work: a reviewer, or a critic.
    pub judged: Vec<JudgeUsage>,
    pub git: GitState,
    /// The gates' results before the first iteration: a failure then is not the loop's doing.
    pub baseline: Option<Proof>,
    /// Default gates that could not run then: they are no longer in the specification.
    pub dropped: Vec<DroppedGate>,
    pub proof: Option<Proof>,
    /// Processes of the last attempt, or gate, are being ended: nothing is started before that is over.
    pub sweeping: bool,
    pub progress: Progress,
    /// How many iterations in a row said that there was nothing to do, in a loop that continues all the same.
    pub unneeded: u32,
    pub feedback: Feedback,
    /// Why the agent gave the task up, until a person resumes the loop.
    pub given_up: Option<String>,
    /// How many iterations in a row ended with `status: blocked` in `state.md`, until a person resumes the loop.
    pub blocked: u32,
    pub approved: Option<(ApprovedTree, Timestamp)>,
    /// Which machine has it.
    pub tenure: Tenure,
    /// The reader's findings on the journal's signatures: not folded.
    pub signatures: Signatures,
    pub(super) refunds_in_a_row: u32,
    /// The usage of sessions at their last report, as far as they said.
    pub(super) sessions: BTreeMap<String, (Option<Tokens>, Option<Usd>)>,
    pub(super) trouble: Trouble,
    /// A request ended the wait: the next attempt starts at once.
    pub(super) hurried: bool,
    /// An agent did not report its cost: with a cap on money that needs a person.
    pub(super) cost_unknown: bool,
    /// How many iterations in a row were cut off before their agent said what it cost.
    pub(super) untold: u32,
    /// The same of its reviewers and critics.
    pub(super) untold_judges: u32,
    pub(super) churn: u32,
    /// How many turns of its session in a row did nothing but talk.
    pub(super) idle_turns: u32,
    /// How often the gates were asked after the last attempt.
    pub(super) rounds: u32,
    /// When the rest between iterations began to count.
    pub(super) rested_since: Option<Timestamp>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct GitState {
    pub base: Option<Base>,
    /// What its setup changed or made in its own worktree, before the first iteration.
    pub prepared: Vec<Dirty>,
    /// Where the head was before its first iteration; none on a branch without a commit.
    pub began: Option<Oid>,
    /// It was stopped, and all that it had done to the history was known then: what is added by now is not the loop's;
    /// nor is what is changed, if nothing of its own was uncommitted.
    pub stale: bool,
    /// No runner has watched for a while since the history was last looked at.
    pub(super) unwatched: bool,
    /// It was unwatched before the last attempt to commit: the agent or another process may have made what that found.
    pub mixed: bool,
    /// Why the base could not be read, or its branch or worktree not be made.
    pub refused: Option<String>,
    /// What was refused is the loop's own work: other loops of the repository are not hindered.
    pub bad_work: bool,
    /// Where the head was when it was last looked at.
    pub head: Option<Oid>,
    /// The commits made in it, by Refrain or by the agent, oldest first.
    pub commits: Vec<Oid>,
    /// The result of the last attempt to commit.
    pub last: Option<CommitReport>,
    /// What that omitted and the one before it did not, which a person does not know yet.
    pub newly_left_out: Vec<OmittedPath>,
    /// What looks like a secret and is in the agent's own commits, without having been allowed.
    pub exposed: Vec<ExposedSecret>,
    /// Why its own worktree is kept, if it is for good.
    pub kept: Option<String>,
    /// Its own worktree was removed, or is kept for good.
    pub released: bool,
    /// Its branch was removed with its worktree. Refrain 0.1 did not record it.
    pub(super) branch_removed: bool,
    pub published: PublishState,
}

impl GitState {
    /// Whether it has no commit: a branch of its own is removed with its worktree then.
    fn has_no_commit(&self) -> bool {
        self.commits.is_empty() && (self.head.is_none() || self.head == self.began)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Steering {
    pub text: String,
    pub by: Asker,
    pub request: Option<RequestId>,
}

/// The phase of a loop: between two attempts, or in one.
#[derive(Clone, Debug, PartialEq)]
pub enum Phase {
    /// The last iteration is charged and settled, or there was none yet.
    Idle {
        /// Its claim, with its gates' proof: nothing is missing any more.
        claim: Option<ClaimSource>,
        /// Its changes are still to be committed.
        uncommitted: bool,
    },
    /// An iteration has begun (or its last attempt was refunded): `next` is the attempt to start.
    Begun {
        next: AttemptId,
        /// Why it would fail like its predecessor, until a person resolves that.
        hindered: Option<BlockReason>,
    },
    InFlight(InFlight),
    /// The gates are asked about what an attempt left, or about what was there before the first.
    Proving(Box<Proving>),
    /// The result of the last iteration is being published.
    Publishing(Box<Publishing>),
    /// A critic looks at what the last iteration came to.
    Critiquing(RunningCritique),
}

impl Phase {
    /// The claim of the last iteration, once it is proven.
    pub(super) fn claim(&self) -> Option<ClaimSource> {
        match self {
            Self::Idle { claim, .. } => *claim,
            Self::Publishing(publishing) => publishing.claim,
            Self::Begun { .. } | Self::InFlight(_) | Self::Proving(_) | Self::Critiquing(_) => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct InFlight {
    pub id: AttemptId,
    pub child: Child,
    /// Its process, once there is one.
    pub spawned: Option<(Process, Timestamp)>,
    /// How much of the steering its prompt holds; later words are for the next.
    pub told: usize,
    /// Its prompt asks for another strategy.
    pub shifted: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Attempt {
    pub id: AttemptId,
    pub started_at: Timestamp,
    pub ended_at: Timestamp,
    pub outcome: Outcome,
    /// Whether it counts against the cap; else it was refunded.
    pub charged: bool,
    pub claim: Option<ClaimSource>,
    /// Its end; nothing if it was not seen.
    pub finished: Option<Box<AttemptFinished>>,
    /// Why it could not be started.
    pub error: Option<String>,
    pub usage: Usage,
    /// The gates' results on its work; none if they were not asked.
    pub proof: Option<Proof>,
    /// Its prompt asked for another strategy.
    pub shifted: bool,
}

impl Attempt {
    /// Whether its provider, or the way there, failed it, as that affects all loops of the account. A home that another
    /// run of the program holds affects this loop alone.
    pub fn met_its_provider(&self) -> bool {
        let fault = self.finished.as_ref().and_then(|finished| finished.report.as_ref()?.fault.as_ref());
        let is_busy = fault.is_some_and(|fault| fault.kind == FaultKind::Busy);
        matches!(self.outcome, Outcome::Limit | Outcome::Outage) && !is_busy
    }
}

/// The usage of an agent that judged the work.
#[derive(Clone, Debug, PartialEq)]
pub struct JudgeUsage {
    /// When the loop was last known to run before it was over: a gate's, or a critic's, start.
    pub at: Timestamp,
    /// The model that it used, as it said or was configured.
    pub model: Option<String>,
    /// The account that pays for it, if known.
    pub pool: Option<String>,
    pub usage: Usage,
}

/// Facts on the attempt in flight that are not worth an event each time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Live {
    /// When the child in flight was started, by the clock as it is now: its age is measured on a clock that cannot be set.
    pub started: Option<Timestamp>,
    /// When the agent last printed something.
    pub last_output: Option<Timestamp>,
    pub output_lost: bool,
    /// The usage of the attempt in flight so far.
    pub used: Usage,
    /// Its program waits for its provider, and has said nothing since.
    pub retrying: Option<ProviderRetry>,
    /// The wait of all loops of the same account.
    pub account: Option<Wait>,
    /// The account's gate was looked at, and is open: what was waited for its sake is over.
    pub is_account_open: bool,
    /// What the shared caps allow the agent that runs, or leave to the one that would be started; none if there is no
    /// such cap.
    pub allowance: Option<Allowance>,
}

/// Whether a cap is used up, or would be by the likely use.
pub(super) fn is_over(limits: &Limits, used: Usage, likely: Usage) -> bool {
    let over = |used: u64, likely: u64, cap: u64| used >= cap || used.saturating_add(likely) > cap;
    let cost = |usage: Usage| usage.cost.unwrap_or_default().0;
    let tokens = |usage: Usage| usage.tokens.counted();
    limits.max_cost.is_some_and(|cap| over(cost(used), cost(likely), cap.0))
        || limits.max_tokens.is_some_and(|cap| over(tokens(used), tokens(likely), cap))
}

impl LoopState {
    /// The loop's own duration: wall time with a runner, less pauses and waits.
    pub fn active(&self, now: Timestamp) -> Duration {
        self.lifecycle.active + self.running_stretch(now)
    }

    /// The stretch since the last event, as far as it counts.
    pub(super) fn running_stretch(&self, now: Timestamp) -> Duration {
        if !self.is_driven() || self.wait.is_some() {
            return Duration::ZERO;
        }
        self.stretch(now)
    }

    /// Whether the money or the tokens granted are used up, with what the agent that runs has used so far; or, if none
    /// runs and agents report only at their end, whether another attempt like the last would use them up.
    pub fn is_over_budget(&self, live: &Usage) -> bool {
        match self.runs() {
            Some(agent) => is_over(&self.limits, self.counted() + agent.priced(*live), Usage::default()),
            None => is_over(&self.limits, self.counted(), self.likely_use()),
        }
    }

    /// Whether the money or the tokens granted are used up: a reviewer is not started then, nor anything else that
    /// costs.
    pub(super) fn is_spent(&self) -> bool {
        is_over(&self.limits, self.counted(), Usage::default())
    }

    /// The usage that counts against its own caps.
    pub(crate) fn counted(&self) -> Usage {
        let cost = self.spent.cost.unwrap_or_default().plus(self.assumed);
        Usage { cost: Some(cost), ..self.spent }
    }

    /// The likely use of one more iteration, if the agent reports its usage only at its end.
    pub(crate) fn likely_use(&self) -> Usage {
        let last = self.last_charged().filter(|_| self.spec.agent.kind.tells_usage_at_end());
        last.map(|last| last.usage).unwrap_or_default()
    }

    /// The wait before it tries again, if its provider failed it.
    pub fn provider_wait(&self) -> Option<Wait> {
        self.trouble.next
    }

    /// How many hours it must be allowed to wait for its provider (`--retry-for`), if that was too long.
    pub fn hours_to_wait(&self) -> u64 {
        self.trouble.hours()
    }

    /// The last message of its agent's program, or of its reviewer's, about its trouble.
    pub fn said_of_trouble(&self) -> Option<&str> {
        let last = || self.attempts.last()?.finished.as_ref();
        let fault = || last()?.report.as_ref()?.fault.as_ref();
        let printed = || last().map(|finished| finished.preview.as_str());
        let said = self.trouble.said.as_deref().or_else(|| fault().map(|fault| fault.message.as_str()));
        said.or_else(printed).map(str::trim).filter(|said| !said.is_empty())
    }

    /// What is left to spend, if there is a cap on money.
    pub fn budget(&self) -> Option<Usd> {
        let cap = self.limits.max_cost?;
        Some(Usd(cap.0.saturating_sub(self.counted().cost.unwrap_or_default().0)))
    }

    /// Whether it is its session's turn: no runner has anything to do.
    pub fn is_in_session(&self) -> bool {
        let is_its_turn = matches!(
            self.phase,
            Phase::InFlight(_) | Phase::Begun { .. } | Phase::Idle { uncommitted: false, .. }
        );
        self.session.is_some() && self.ended.is_none() && is_its_turn
    }

    pub fn in_flight(&self) -> Option<&InFlight> {
        let Phase::InFlight(attempt) = &self.phase else { return None };
        Some(attempt)
    }

    /// Whether its own branch was removed with its worktree, as it had no commit.
    pub fn has_lost_branch(&self) -> bool {
        let is_known =
            self.git.branch_removed || self.spec.git.workflow.commits() && self.git.has_no_commit();
        is_known && self.git.released && self.git.kept.is_none()
    }

    /// Whether a worktree of its own is still to be made: its runner does that before the first iteration.
    pub fn lacks_worktree(&self) -> bool {
        self.spec.git.checkout.is_own_worktree() && self.git.base.is_none() && !self.is_final()
    }

    /// Whether it has a worktree of its own that was not given back.
    pub fn holds_worktree(&self) -> bool {
        let is_own = self.spec.git.checkout.is_own_worktree();
        is_own && self.git.base.is_some() && !self.git.released
    }

    pub fn proving(&self) -> Option<&Proving> {
        let Phase::Proving(proving) = &self.phase else { return None };
        Some(proving)
    }

    /// The verification that a child is a part of, if it may find nothing that others wrote into a cache.
    pub fn verification_of(&self, child: ChildId) -> Option<String> {
        let name = self.proving().and_then(Proving::name);
        let is_command = match child {
            ChildId::Attempt(_) => return None,
            ChildId::Gate { gate, .. } => self.spec.gates.get(gate).is_some_and(|it| it.reviewer().is_none()),
            ChildId::Critic { .. } => false,
        };
        match is_command {
            // Without a checkout of their own, gates find what others left in the worktree, too.
            true => name.filter(|_| self.spec.clean_checkout),
            false => Some(name.unwrap_or_else(|| self.attempts.len().to_string())),
        }
    }

    pub fn running_gate(&self) -> Option<&RunningGate> {
        self.proving()?.running.as_ref()
    }

    /// Whether a process of the loop's is under way: an agent, a gate, or a critic.
    pub fn is_busy(&self) -> bool {
        self.child().is_some()
    }

    /// Whether what the last iteration changed is to be committed, and git may be at it, with its hooks.
    pub fn is_committing(&self) -> bool {
        matches!(self.phase, Phase::Idle { uncommitted: true, .. })
    }

    /// The tree that was proven: the loop is completed, or is about to be, and its hard gates passed on it.
    pub fn proven_tree(&self) -> Option<&Oid> {
        self.proof.as_ref().filter(|_| self.is_proven())?.candidate.tree.as_ref()
    }

    /// Whether the gates passed on more than [`Self::proven_tree`]: on files in the worktree that were changed before
    /// the loop, or may not be committed, and that the loop changed. A checkout elsewhere has none of them.
    pub fn is_proven_beyond_its_tree(&self) -> bool {
        let is_partial = self.proof.as_ref().is_some_and(|proof| proof.candidate.partial);
        self.is_proven() && is_partial && !self.spec.clean_checkout
    }

    /// Whether a claim was proven. What an unsigned journal says proves nothing.
    pub fn is_proven(&self) -> bool {
        self.spec.has_hard_gates()
            && !self.lacks_tests()
            && self.phase.claim().is_some()
            && self.signatures.objection().is_none()
    }

    /// Why neither the user nor a trusted key vouches for its start, by these records of its journal.
    pub fn foreign_start(&self, records: &[SignedRecord]) -> Option<signature::Objection> {
        Signatures::foreign_start(records, self.format)
    }

    /// Whether the loop was to make its own tests, and its gate for them found none.
    pub fn lacks_tests(&self) -> bool {
        let result = |gate| self.proof.as_ref().and_then(|proof| proof.of_gate(gate));
        let mut own = self.spec.gates.iter().enumerate().filter(|(_, gate)| gate.own_tests);
        own.any(|(gate, _)| result(gate).is_none_or(|result| result.summaries == 0))
    }

    /// Whether this gate failed before the first iteration; none if it was not asked then.
    pub fn failed_before(&self, gate: usize) -> Option<bool> {
        Some(!self.baseline.as_ref()?.of_gate(gate)?.passed())
    }

    /// What follows a gate's failure: how the gate was before the first iteration, or in `run` as the agent calls it;
    /// empty if it was not asked then.
    pub fn said_before(&self, failed: &GateResult, iteration: &str) -> String {
        match self.baseline.as_ref().and_then(|proof| proof.of_gate(failed.gate)) {
            None => String::new(),
            Some(before) if before.summaries == 0 && self.spec.gates[failed.gate].own_tests => {
                format!("; there were no tests before the first {iteration}")
            }
            Some(before) if before.passed() => format!("; it passed before the first {iteration}"),
            // A test that broke since is not to pass for one that always failed.
            Some(before) if before.fingerprint != failed.fingerprint => {
                format!("; it failed before the first {iteration} too, but differently")
            }
            Some(_) => format!("; it failed before the first {iteration} too"),
        }
    }

    /// The last result of each gate, in their order.
    pub fn gate_results(&self) -> impl Iterator<Item = &GateResult> {
        let proofs = || self.attempts.iter().rev().filter_map(|attempt| attempt.proof.as_ref());
        let last = move |gate| proofs().chain(&self.baseline).find_map(|proof| proof.of_gate(gate));
        (0..self.spec.gates.len()).filter_map(last)
    }

    /// After which iteration the gates were asked last, if not after the last one; 0 is before the first.
    pub fn gates_asked_before(&self) -> Option<u32> {
        let last = self.last_charged()?.id.iteration;
        let asked = self.attempts.iter().rev().find(|attempt| attempt.proof.is_some());
        let asked = asked.map_or(0, |attempt| attempt.id.iteration);
        (asked < last).then_some(asked)
    }

    /// What this iteration's commit is about: the agent's summary, else the goal.
    pub fn commit_subject(&self) -> String {
        let last = self.attempts.iter().rev().find(|attempt| attempt.id.iteration == self.iteration);
        let summary = last.and_then(|attempt| attempt.finished.as_ref()?.summary.as_deref());
        let subject = summary.and_then(subject).or_else(|| subject(&goal(&self.spec)));
        subject.unwrap_or_else(|| format!("Iteration {} of {}", self.iteration, self.spec.id))
    }

    /// The last attempt of the last charged iteration, which the next prompt can mention.
    pub fn last_charged(&self) -> Option<&Attempt> {
        self.attempts.iter().rev().find(|attempt| attempt.charged)
    }
}
