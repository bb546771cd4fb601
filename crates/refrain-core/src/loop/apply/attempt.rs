//! How an attempt's end changes the state: its outcome, whether it counts, what may come next.

use std::time::Duration;

use jiff::Timestamp;

use super::super::next_step::CHURN_WITHIN;
use super::super::provider_faults::{Reaction, Trouble, answer};
use super::super::state::{Attempt, Cause, Child, InFlight, LoopState, Outcome, Phase};
use super::money::withholds_cost;
use crate::agent::{Until as ProviderUntil, Usage};
use crate::event::{AttemptFinished, BlockReason, ClaimSource, Exit, WaitKind};
use crate::ids::AttemptId;
use crate::prompt::state_file::WorkStatus;
use crate::spec::Until;
use crate::stuck::Verdict;
use crate::work::WorkDigest;

impl LoopState {
    pub(super) fn begin_iteration(
        &mut self,
        iteration: u32,
        work: Option<&WorkDigest>,
    ) -> Result<(), &'static str> {
        let fits = matches!(self.phase, Phase::Idle { claim: None, uncommitted: false })
            && (self.git.base.is_some() && !self.git.stale || !self.spec.git.needs_base())
            && !self.lacks_baseline();
        if !fits || iteration != self.iteration + 1 || !self.is_driven() {
            return Err("iteration.begun");
        }
        self.iteration = iteration;
        self.progress.began = work.cloned();
        self.wait = None;
        let next = AttemptId { iteration, attempt: 1 };
        self.phase = Phase::Begun { next, hindered: None };
        Ok(())
    }

    pub(super) fn start_attempt(&mut self, id: AttemptId, at: Timestamp) -> Result<(), &'static str> {
        let fits = matches!(self.phase, Phase::Begun { next, .. } if next == id);
        if !fits || self.sweeping || !self.is_driven() {
            return Err("attempt.started");
        }
        self.wait = None;
        self.trouble.next = None;
        self.hurried = false;
        let shifted = matches!(self.verdict(), Verdict::Shift(_));
        self.phase = Phase::InFlight(InFlight {
            id,
            child: Child::new(at),
            spawned: None,
            told: self.steering.len(),
            shifted,
        });
        Ok(())
    }

    /// The agent could not be started: that is not charged.
    pub(super) fn fail_attempt(&mut self, error: &str, at: Timestamp) -> Result<(), &'static str> {
        let flight = self.flight_to("attempt.spawn-failed", |flight| flight.spawned.is_none())?;
        let InFlight { id, child: Child { started_at, .. }, .. } = *flight;
        self.refunds_in_a_row += 1;
        self.attempts.push(Attempt {
            id,
            started_at,
            ended_at: at,
            outcome: Outcome::NotStarted,
            charged: false,
            claim: None,
            finished: None,
            error: Some(error.to_owned()),
            usage: Usage::default(),
            proof: None,
            shifted: false,
        });
        self.phase = Phase::Begun { next: after(id), hindered: Some(BlockReason::AgentMissing) };
        Ok(())
    }

    /// An attempt is over: its outcome, whether it counts, what may come next.
    pub(super) fn settle(&mut self, flight: InFlight, at: Timestamp, finished: Option<Box<AttemptFinished>>) {
        let cause = Cause::of(finished.as_deref(), flight.child.stopping);
        let spoke = finished.as_deref().and_then(|finished| Some((finished, speaks(finished, cause)?)));
        let claim = spoke.and_then(|(finished, exit)| self.claim(finished, exit));
        let gave_up = spoke.and_then(|(finished, _)| finished.gave_up.clone()).filter(|_| claim.is_none());
        let outcome = Outcome::of(finished.as_deref(), cause, claim);
        let ran = flight.spawned.and_then(|(_, since)| Duration::try_from(at.duration_since(since)).ok());
        let charged = outcome.is_charged();
        let agent = self.spec.agent.clone();
        let report = finished.as_ref().and_then(|finished| finished.report.as_deref());
        let usage = self.account(&agent, report);
        let has_worked = usage.tokens.counted() > 0 || ran.is_some_and(|ran| ran >= CHURN_WITHIN);
        // How long one ran that was lost was not seen.
        let is_lost = outcome == Outcome::Lost && ran.is_some();
        let was_failed = usage.tokens.counted() == 0 && report.is_some_and(|report| report.fault.is_some());
        if (has_worked || is_lost) && !was_failed && self.session.is_none() {
            self.assume_cost(&agent, usage);
        }
        self.spent = self.spent + usage;
        self.costs.push(usage.cost);
        if usage.tokens.counted() > 0 {
            // The provider worked for a while: what comes now is another trouble.
            self.trouble = Trouble::default();
        }
        if charged {
            self.cost_unknown = withholds_cost(report, usage);
            self.untold = if usage.cost.is_none() && has_worked { self.untold + 1 } else { 0 };
            self.trouble = Trouble::default();
            self.charged += 1;
            self.refunds_in_a_row = 0;
            self.steering.drain(..flight.told);
            self.feedback.said = None;
            let idle = usage.tokens.counted() == 0;
            let instant = outcome == Outcome::Failed && idle && ran.is_some_and(|ran| ran < CHURN_WITHIN);
            self.churn = if instant { self.churn + 1 } else { 0 };
            let is_idle = finished.as_ref().is_some_and(|finished| finished.idle);
            self.idle_turns = if is_idle { self.idle_turns + 1 } else { 0 };
            self.rested_since = Some(at);
            self.given_up = gave_up;
            let is_blocked = claim.is_none() && says_blocked(finished.as_deref());
            self.blocked = if is_blocked { self.blocked + 1 } else { 0 };
            self.phase = self.behind(flight.id, claim);
        } else {
            let hindered = self.hindrance(outcome, flight.id, finished.as_deref(), at);
            self.phase = Phase::Begun { next: after(flight.id), hindered };
        }
        self.sweeping = finished.as_ref().is_some_and(|finished| finished.left);
        self.attempts.push(Attempt {
            id: flight.id,
            started_at: flight.child.started_at,
            ended_at: at,
            outcome,
            charged,
            claim: claim.filter(|_| charged),
            finished,
            error: None,
            usage,
            proof: None,
            shifted: flight.shifted,
        });
        self.record_iteration();
    }

    /// What a refunded attempt means for the next: counted, waited for, or left to a person.
    fn hindrance(
        &mut self,
        outcome: Outcome,
        id: AttemptId,
        finished: Option<&AttemptFinished>,
        at: Timestamp,
    ) -> Option<BlockReason> {
        let fault = finished.and_then(|finished| finished.report.as_ref()?.fault.as_ref());
        // The attempt itself has what its program said.
        self.trouble.said = None;
        match (outcome, fault.map(|fault| (answer(fault.kind), fault))) {
            (Outcome::Limit | Outcome::Outage, Some((Reaction::Wait(kind), fault))) => {
                self.meet((kind, fault.until), id, at)
            }
            // It was stopped as it slept until its provider works again, and said nothing more of that.
            (Outcome::Outage, _) => self.meet((WaitKind::Outage, None), id, at),
            (Outcome::Unable, Some((Reaction::Person(why), _))) => Some(why),
            (Outcome::OutputLost, _) => {
                self.refunds_in_a_row += 1;
                Some(BlockReason::OutputLost)
            }
            // An attempt that a person stopped says nothing about the next try.
            (Outcome::Interrupted, _) => None,
            (Outcome::Cancelled | Outcome::Lost | Outcome::NotStarted | Outcome::Unresponsive, _) => {
                self.refunds_in_a_row += 1;
                None
            }
            // Nothing else is refunded.
            (
                Outcome::Limit
                | Outcome::Unable
                | Outcome::Claimed
                | Outcome::Ended
                | Outcome::Failed
                | Outcome::TimeLimit
                | Outcome::Silence
                | Outcome::LoopDuration
                | Outcome::Budget,
                _,
            ) => None,
        }
    }

    /// The provider failed an agent: there is a wait now, or the loop is blocked because it would be too long.
    pub(super) fn meet(
        &mut self,
        fault: (WaitKind, Option<ProviderUntil>),
        id: AttemptId,
        at: Timestamp,
    ) -> Option<BlockReason> {
        self.trouble.meet(fault, at, (&self.spec.id, id), self.limits.retry_for)
    }

    fn claim(&self, finished: &AttemptFinished, exit: Exit) -> Option<ClaimSource> {
        // A good end does not say that there was nothing to do.
        let is_endless = self.spec.until == Until::Forever;
        match exit {
            _ if finished.promised => Some(ClaimSource::Promise),
            _ if finished.state == Some(WorkStatus::Done) => Some(ClaimSource::StateFile),
            // Its silence is no claim then.
            _ if says_blocked(Some(finished)) => None,
            Exit::Code(0) | Exit::Unseen if self.spec.promise.is_none() && !is_endless => {
                let by_gates = self.spec.has_hard_gates();
                Some(if by_gates { ClaimSource::Gates } else { ClaimSource::ExitCode })
            }
            Exit::Code(_) | Exit::Signal(_) | Exit::Lost | Exit::Unseen => None,
        }
    }
}

/// How an attempt ended whose last word counts: one that had to be stopped says nothing, regardless of what it printed
/// before.
fn speaks(finished: &AttemptFinished, cause: Cause) -> Option<Exit> {
    let Cause::Itself(exit) = cause else { return None };
    let is_whole = finished.report.as_ref().is_none_or(|report| report.is_final && report.fault.is_none());
    (exit != Exit::Lost && finished.output_error.is_none() && is_whole).then_some(exit)
}

/// Whether its agent says that a person is needed, however it ended: that is on disk, and the loop can be resumed from
/// there.
pub(super) fn says_blocked(finished: Option<&AttemptFinished>) -> bool {
    finished.is_some_and(|finished| finished.state == Some(WorkStatus::Blocked))
}

/// The attempt that comes next in the same iteration.
pub(super) fn after(id: AttemptId) -> AttemptId {
    AttemptId { attempt: id.attempt + 1, ..id }
}
