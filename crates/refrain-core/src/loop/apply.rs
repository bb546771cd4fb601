//! How one event changes the state. The only place that writes it, and the only place that says which event can follow
//! which: whatever else a journal holds is damage, told as such and never guessed around.

mod base;
mod gates;

use std::collections::HashSet;
use std::time::Duration;

use jiff::Timestamp;

use super::next_step::CHURN_WITHIN;
use super::progress::Saved;
use super::proof::{Candidate, Running};
use super::state::{Attempt, Cause, Ended, InFlight, Judged, LoopState, Outcome, Phase};
use super::trouble::{Answer, Trouble, answer};
use crate::agent::{AgentReport, Scope, Tokens, Usage, Usd};
use crate::event::{Ask, AttemptFinished, Blocked, ClaimSource, End, Event, Exit, FORMAT, Record};
use crate::git::{CommitReport, CommitResult, LeftOut, Skipped};
use crate::ids::AttemptId;
use crate::spec::AgentSpec;

/// A record that cannot follow those before it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// The journal does not begin with `loop.started`.
    #[error("record {0} should be the loop's start")]
    NoStart(u64),
    /// Records are missing, or stand twice.
    #[error("record {found} stands where {expected} should")]
    Sequence {
        /// The number that should be there.
        expected: u64,
        /// The number that is.
        found: u64,
    },
    /// Time went backwards.
    #[error("record {0} is older than the one before it")]
    Time(u64),
    /// A loop cannot do this from where it is.
    #[error("record {seq} ({what}) cannot follow the one before it")]
    Order {
        /// The record's number.
        seq: u64,
        /// What it says.
        what: &'static str,
    },
    /// Another version's format.
    #[error(
        "the journal has format {found}, this version of Refrain reads {FORMAT}; use the version that wrote it"
    )]
    Format {
        /// The journal's format.
        found: u32,
    },
}

impl LoopState {
    /// The state after a journal's first record.
    ///
    /// # Errors
    /// [`Damage`] where it is no start that this version can read.
    pub fn begin(record: &Record) -> Result<Self, Damage> {
        let Record { seq: 1, at, event: Event::LoopStarted(started) } = record else {
            return Err(Damage::NoStart(record.seq));
        };
        if started.format != FORMAT {
            return Err(Damage::Format { found: started.format });
        }
        Ok(Self {
            spec: started.spec.clone(),
            limits: started.spec.limits.clone(),
            seq: 1,
            started_at: *at,
            updated_at: *at,
            phase: Phase::Idle { claim: None, uncommitted: false },
            git: Default::default(),
            baseline: None,
            proof: None,
            attempts: Vec::new(),
            iteration: 0,
            charged: 0,
            wait: None,
            ended: None,
            cancel: None,
            pause: None,
            steering: Vec::new(),
            runner: None,
            spent: Usage::default(),
            costs: Vec::new(),
            judged: Vec::new(),
            sweeping: false,
            progress: Default::default(),
            feedback: Default::default(),
            given_up: None,
            answered: Default::default(),
            refunds_in_a_row: 0,
            sessions: Default::default(),
            trouble: Trouble::default(),
            hurried: false,
            cost_unknown: false,
            untold: 0,
            untold_judges: 0,
            churn: 0,
            rounds: 0,
            active: Duration::ZERO,
            rested_since: None,
        })
    }

    /// The state after a whole journal.
    ///
    /// # Errors
    /// [`Damage`] at the first record that cannot follow those before it.
    pub fn fold<'a>(records: impl IntoIterator<Item = &'a Record>) -> Result<Self, Damage> {
        let mut records = records.into_iter();
        let mut state = Self::begin(records.next().ok_or(Damage::NoStart(0))?)?;
        records.try_for_each(|record| state.apply(record))?;
        Ok(state)
    }

    /// The state after one more record.
    ///
    /// # Errors
    /// [`Damage`] where the record cannot follow; the state is then unchanged.
    pub fn apply(&mut self, record: &Record) -> Result<(), Damage> {
        let Record { seq, at, event } = record;
        if *seq != self.seq + 1 {
            return Err(Damage::Sequence { expected: self.seq + 1, found: *seq });
        }
        if *at < self.updated_at {
            return Err(Damage::Time(*seq));
        }
        // Between two runners nobody drives the loop: that time is not its own. A torn tail is the first thing that the
        // next writer finds.
        let undriven = matches!(event, Event::RunnerStarted { .. } | Event::JournalTorn { .. });
        let stretch = if undriven { Duration::ZERO } else { self.running_stretch(*at) };
        self.change(event, *at).map_err(|what| Damage::Order { seq: *seq, what })?;
        self.active += stretch;
        self.seq = *seq;
        self.updated_at = *at;
        Ok(())
    }

    /// Applies the event, or says which one is out of order and changes nothing.
    fn change(&mut self, event: &Event, at: Timestamp) -> Result<(), &'static str> {
        match event {
            Event::LoopStarted(_) => return Err("loop.started"),
            Event::RunnerStarted { .. } if self.ended.is_some() => return Err("runner.started"),
            Event::RunnerStarted { runner, interrupted, adopted, judged } => {
                if judged.is_some() && (interrupted.is_some() || self.runs().is_none()) {
                    return Err("runner.started");
                }
                match (&self.phase, interrupted) {
                    (Phase::InFlight(flight), Some(id)) if flight.id == *id => {
                        let flight = flight.clone();
                        // When it ended nobody saw: the last that is known of it is the last event.
                        self.settle(flight, self.updated_at, adopted.clone());
                    }
                    (Phase::Idle { .. } | Phase::Begun { .. }, None) if adopted.is_none() => {}
                    (Phase::Proving(_) | Phase::Critiquing(_), None) if adopted.is_none() => {
                        if let Some(judge) = self.runs().cloned() {
                            self.spend(&judge, judged.as_deref());
                        }
                        self.lose_gate();
                        self.lose_critique(None);
                    }
                    _ => return Err("runner.started"),
                }
                self.runner = Some(runner.clone());
                self.sweeping = false;
                self.git.unwatched |= self.git.base.is_some();
            }
            Event::BaseTaken(base) => {
                if !self.lacks_base() {
                    return Err("base.taken");
                }
                self.take_base(base);
            }
            Event::BaseRefused { error } => {
                if !self.lacks_base() {
                    return Err("base.refused");
                }
                self.git.refused = Some(error.clone());
            }
            Event::CandidateTaken { tree, partial, touched } => {
                let (tree, touched) = (tree.clone(), touched.clone());
                self.take_candidate(Candidate { tree, partial: *partial, touched }, at)?;
            }
            Event::CandidateRefused { error } => self.refuse_candidate(error)?,
            Event::GateStarted { gate, run } => self.start_gate(gate, *run, at)?,
            Event::GateSpawnFailed { error } => self.fail_gate(error, at)?,
            Event::GateStopRequested { because } => {
                let fits = |running: &Running| running.stopping.is_none();
                self.gate_to("gate.stop-requested", fits)?.stopping = Some(*because);
            }
            Event::GateFinished(finished) => self.finish_gate(finished, at)?,
            Event::CommitSettled(report) => {
                let Phase::Idle { uncommitted: uncommitted @ true, .. } = &mut self.phase else {
                    return Err("commit.settled");
                };
                if report.iteration != self.iteration || self.sweeping {
                    return Err("commit.settled");
                }
                *uncommitted = false;
                self.settle_commit(report);
                self.compare_commit(report);
                self.turn();
            }
            Event::WorktreeReleased { kept } => {
                let is_over = match self.phase {
                    Phase::Idle { claim: Some(_), uncommitted: false } => true,
                    Phase::Idle { .. } | Phase::Begun { .. } => self.cancel.is_some(),
                    Phase::Proving(_) => self.cancel.is_some() && !self.is_busy(),
                    Phase::InFlight(_) | Phase::Critiquing(_) => false,
                };
                if !is_over || self.is_final() || self.sweeping || !self.holds_worktree() {
                    return Err("worktree.released");
                }
                self.git.released = true;
                self.git.kept.clone_from(kept);
            }
            Event::IterationBegun { iteration } => {
                let fits = matches!(self.phase, Phase::Idle { claim: None, uncommitted: false })
                    && (self.git.base.is_some() && !self.git.stale || !self.spec.git.needs_base())
                    && !self.lacks_baseline();
                if !fits || *iteration != self.iteration + 1 || !self.is_driven() {
                    return Err("iteration.begun");
                }
                self.iteration = *iteration;
                self.wait = None;
                let next = AttemptId { iteration: *iteration, attempt: 1 };
                self.phase = Phase::Begun { next, hindered: None };
            }
            Event::AttemptStarted(id) => {
                let fits = matches!(self.phase, Phase::Begun { next, .. } if next == *id);
                if !fits || self.sweeping || !self.is_driven() {
                    return Err("attempt.started");
                }
                self.wait = None;
                self.trouble.next = None;
                self.hurried = false;
                self.phase = Phase::InFlight(InFlight {
                    id: *id,
                    started_at: at,
                    spawned: None,
                    stopping: None,
                    told: self.steering.len(),
                });
            }
            Event::AttemptSpawned { process } => {
                let flight = self.flight_to("attempt.spawned", |flight| flight.spawned.is_none())?;
                flight.spawned = Some((*process, at));
            }
            Event::AttemptSpawnFailed { error } => {
                let flight = self.flight_to("attempt.spawn-failed", |flight| flight.spawned.is_none())?;
                let InFlight { id, started_at, .. } = *flight;
                self.refunds_in_a_row += 1;
                self.attempts.push(Attempt {
                    id,
                    started_at,
                    ended_at: at,
                    outcome: Outcome::NotStarted,
                    charged: false,
                    claim: None,
                    finished: None,
                    error: Some(error.clone()),
                    usage: Usage::default(),
                    proof: None,
                });
                self.phase = Phase::Begun { next: after(id), hindered: Some(Blocked::AgentMissing) };
            }
            Event::AttemptStopRequested { because } => {
                let fits = |flight: &InFlight| flight.spawned.is_some() && flight.stopping.is_none();
                self.flight_to("attempt.stop-requested", fits)?.stopping = Some(*because);
            }
            Event::AttemptFinished(finished) => {
                let fits = |flight: &InFlight| flight.spawned.is_some() || finished.exit == Exit::Lost;
                let flight = self.flight_to("attempt.finished", fits)?.clone();
                self.settle(flight, at, Some(finished.clone()));
            }
            Event::CritiqueStarted { iteration } => self.start_critique(*iteration, at)?,
            Event::CritiqueFailed { error } => {
                self.critique_to("critique.failed")?;
                self.lose_critique(Some(error));
            }
            Event::CritiqueStopRequested { because } => {
                let what = "critique.stop-requested";
                let critiquing = self.critique_to(what)?;
                if critiquing.stopping.replace(*because).is_some() {
                    return Err(what);
                }
            }
            Event::CritiqueFinished(finished) => self.finish_critique(finished)?,
            Event::AgentChanged(agent) => self.change_agent(agent)?,
            Event::WorkSaved { branch, commit, pushed } => {
                let (name, commit, pushed) = (branch.clone(), commit.clone(), pushed.clone());
                self.keep("work.saved", Saved::Branch { name, commit, pushed })?;
            }
            Event::WorkUnsaved { why } => self.keep("work.unsaved", Saved::Not { why: why.clone() })?,
            Event::AttemptSwept { .. } => self.sweeping = false,
            Event::JournalTorn { .. } | Event::JournalRestored { .. } => {}
            Event::Asked { request, ask } => {
                if request.as_ref().is_some_and(|request| !self.answered.insert(request.clone())) {
                    return Err("asked");
                }
                match ask {
                    Ask::Cancel(urgency) => self.cancel = self.cancel.max(Some(*urgency)),
                    Ask::Pause(urgency) => self.pause = self.pause.max(Some(*urgency)),
                    Ask::Steer(text) => self.steering.push(text.clone()),
                    Ask::Proceed => {
                        self.wait = None;
                        self.rested_since = None;
                        self.trouble.next = None;
                        self.hurried = true;
                    }
                }
            }
            Event::WaitStarted(wait)
                if self.is_driven() && self.wait.is_none_or(|last| last.until <= at) && !self.is_busy() =>
            {
                self.wait = Some(*wait);
            }
            Event::WaitStarted(_) => return Err("wait.started"),
            Event::LoopEnded(end) => {
                let claimed = match self.phase {
                    Phase::Idle { claim, uncommitted: false } => claim,
                    Phase::Idle { uncommitted: true, .. }
                    | Phase::Begun { .. }
                    | Phase::InFlight(_)
                    | Phase::Proving(_)
                    | Phase::Critiquing(_) => None,
                };
                let fits = match end {
                    // A stopped loop can still be cancelled; nothing else can happen to it but `resume`.
                    End::Cancelled => self.cancel.is_some() && !self.is_final(),
                    End::Completed { claim } => claimed == Some(*claim) && self.cancel.is_none(),
                    End::IterationCap
                    | End::Stuck
                    | End::TimedOut
                    | End::BudgetExceeded { .. }
                    | End::Blocked { .. }
                    | End::Paused => self.cancel.is_none(),
                };
                let again = self.ended.is_some() && *end != End::Cancelled;
                let for_good = matches!(end, End::Completed { .. } | End::Cancelled);
                if !fits || again || self.is_busy() || (for_good && self.holds_worktree()) {
                    return Err("loop.ended");
                }
                self.wait = None;
                self.ended = Some(Ended { end: *end, at });
            }
            Event::LoopResumed { limits } => {
                if self.is_busy() || self.is_final() || self.cancel.is_some() {
                    return Err("loop.resumed");
                }
                self.limits = limits.clone();
                let was = self.ended.take().map(|ended| ended.end);
                self.pause = None;
                self.wait = None;
                self.runner = None;
                self.refunds_in_a_row = 0;
                self.churn = 0;
                self.rested_since = None;
                self.cost_unknown = false;
                (self.untold, self.untold_judges) = (0, 0);
                self.given_up = None;
                if matches!(was, Some(End::Stuck | End::Blocked { why: Blocked::Stuck })) {
                    self.forget_turns();
                }
                self.progress.saved = None;
                self.git.refused = None;
                self.git.stale |= self.has_told_all() || self.may_be_renewed();
                self.git.unwatched |= self.git.base.is_some();
                if let Phase::Proving(proving) = &mut self.phase {
                    proving.hindered = None;
                }
                let mut next = self.trouble.next;
                if let Phase::Begun { hindered, .. } = &mut self.phase
                    && hindered.take().is_some()
                {
                    next = None;
                }
                self.trouble = Trouble::only(next);
            }
        }
        Ok(())
    }

    /// The attempt in flight, if the event `what` fits it.
    fn flight_to(
        &mut self,
        what: &'static str,
        fits: impl FnOnce(&InFlight) -> bool,
    ) -> Result<&mut InFlight, &'static str> {
        match &mut self.phase {
            Phase::InFlight(flight) if fits(flight) => Ok(flight),
            Phase::InFlight(_)
            | Phase::Idle { .. }
            | Phase::Begun { .. }
            | Phase::Proving(_)
            | Phase::Critiquing(_) => Err(what),
        }
    }

    pub(super) fn is_driven(&self) -> bool {
        self.runner.is_some() && self.ended.is_none()
    }

    /// Whether all is known that the loop did to the history: what is added while it stands still is somebody else's.
    fn has_told_all(&self) -> bool {
        let is_idle = matches!(self.phase, Phase::Idle { uncommitted: false, .. });
        let told = self.git.last.as_ref().map_or(0, |last| last.iteration);
        self.git.base.is_some() && is_idle && told == self.iteration
    }

    /// Whether nothing that the loop changed is left to be committed, but for what is never committed.
    fn has_committed_all(&self) -> bool {
        let last = self.git.last.as_ref().filter(|_| self.has_told_all());
        last.is_some_and(|last| {
            matches!(last.result, CommitResult::Made { .. } | CommitResult::Skipped(Skipped::Nothing))
        })
    }

    fn lacks_base(&self) -> bool {
        self.is_driven()
            && self.spec.git.needs_base()
            && (self.git.base.is_none() || self.git.stale)
            && self.git.refused.is_none()
    }

    fn settle_commit(&mut self, report: &CommitReport) {
        self.git.commits.extend(report.by_agent.iter().cloned());
        if let CommitResult::Made { commit, .. } = &report.result {
            self.git.commits.push(commit.clone());
        }
        self.git.head.clone_from(&report.head);
        let known: HashSet<_> = self.git.last.iter().flat_map(|last| &last.left_out).collect();
        let is_new = |left: &&LeftOut| !known.contains(left);
        self.git.newly_left_out = report.left_out.iter().filter(is_new).cloned().collect();
        self.git.exposed.extend(report.exposed.iter().filter(|exposed| !exposed.allowed).cloned());
        self.git.mixed = std::mem::take(&mut self.git.unwatched);
        self.git.last = Some(report.clone());
    }

    /// An attempt is over: what it amounts to, whether it counts, what may come next.
    fn settle(&mut self, flight: InFlight, at: Timestamp, finished: Option<Box<AttemptFinished>>) {
        let cause = Cause::of(finished.as_deref(), flight.stopping);
        let spoke = finished.as_deref().and_then(|finished| Some((finished, speaks(finished, cause)?)));
        let claim = spoke.and_then(|(finished, exit)| self.claim(finished, exit));
        let gave_up = spoke.and_then(|(finished, _)| finished.gave_up.clone()).filter(|_| claim.is_none());
        let outcome = Outcome::of(finished.as_deref(), cause, claim);
        let ran = flight.spawned.and_then(|(_, since)| Duration::try_from(at.duration_since(since)).ok());
        let charged = outcome.is_charged();
        let agent = self.spec.agent.clone();
        let usage = self.account(&agent, finished.as_ref().and_then(|finished| finished.report.as_deref()));
        self.spent = self.spent + usage;
        self.costs.push(usage.cost);
        if usage.tokens.counted() > 0 {
            // The provider worked for a while: what comes now is another trouble.
            self.trouble = Trouble::default();
        }
        if charged {
            let report = finished.as_ref().and_then(|finished| finished.report.as_deref());
            self.cost_unknown = withholds_cost(report, usage);
            let has_worked = usage.tokens.counted() > 0 || ran.is_some_and(|ran| ran >= CHURN_WITHIN);
            self.untold = if usage.cost.is_none() && has_worked { self.untold + 1 } else { 0 };
            self.trouble = Trouble::default();
            self.charged += 1;
            self.refunds_in_a_row = 0;
            self.steering.drain(..flight.told);
            self.feedback.said = None;
            let idle = usage.tokens.counted() == 0;
            let instant = outcome == Outcome::Failed && idle && ran.is_some_and(|ran| ran < CHURN_WITHIN);
            self.churn = if instant { self.churn + 1 } else { 0 };
            self.rested_since = Some(at);
            self.given_up = gave_up;
            self.phase = self.behind(flight.id, claim);
        } else {
            let hindered = self.hindrance(outcome, flight.id, finished.as_deref(), at);
            self.phase = Phase::Begun { next: after(flight.id), hindered };
        }
        self.sweeping = finished.as_ref().is_some_and(|finished| finished.left);
        self.attempts.push(Attempt {
            id: flight.id,
            started_at: flight.started_at,
            ended_at: at,
            outcome,
            charged,
            claim: claim.filter(|_| charged),
            finished,
            error: None,
            usage,
            proof: None,
        });
        self.turn();
    }

    /// What an attempt that is refunded means for the next: counted, waited for, or left to a person.
    fn hindrance(
        &mut self,
        outcome: Outcome,
        id: AttemptId,
        finished: Option<&AttemptFinished>,
        at: Timestamp,
    ) -> Option<Blocked> {
        let fault = finished.and_then(|finished| finished.report.as_ref()?.fault.as_ref());
        match (outcome, fault.map(|fault| (answer(fault.kind), fault))) {
            (Outcome::Limit | Outcome::Outage, Some((Answer::Wait(kind), fault))) => {
                let bound = self.limits.retry_for;
                self.trouble.meet((kind, fault), at, (&self.spec.id, id), bound)
            }
            (Outcome::Unable, Some((Answer::Person(why), _))) => Some(why),
            (Outcome::OutputLost, _) => {
                self.refunds_in_a_row += 1;
                Some(Blocked::OutputLost)
            }
            // What a person stopped says nothing about the next try.
            (Outcome::Interrupted, _) => None,
            (Outcome::Cancelled | Outcome::Lost | Outcome::NotStarted, _) => {
                self.refunds_in_a_row += 1;
                None
            }
            // Nothing else is refunded.
            (
                Outcome::Limit
                | Outcome::Outage
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

    /// What an attempt used, from totals that may be those of its whole session.
    pub(super) fn account(&mut self, agent: &AgentSpec, report: Option<&AgentReport>) -> Usage {
        let Some(report) = report else {
            return Usage { at_least: agent.streams(), ..Usage::default() };
        };
        // Of a session that began with this attempt nothing was used before; of another one only what was heard is known.
        let known = report.session.id.as_ref().and_then(|id| self.sessions.get(id)).copied();
        let fresh = !report.resumed && known.is_none();
        let tokens_before = known.and_then(|(tokens, _)| tokens).or(fresh.then(Tokens::default));
        let cost_before = known.and_then(|(_, cost)| cost).or(fresh.then(Usd::default));
        let tokens = match report.tokens {
            Some((Scope::Attempt, tokens)) => Some(tokens),
            Some((Scope::Session, all)) => tokens_before.map(|before| all.since(before)),
            None => None,
        };
        let cost = match report.cost {
            Some((Scope::Attempt, cost)) => Some(cost),
            Some((Scope::Session, Usd(all))) => {
                cost_before.map(|Usd(before)| Usd(all.saturating_sub(before)))
            }
            None => None,
        };
        if let Some(id) = &report.session.id {
            let of_session = |scope: Scope| scope == Scope::Session;
            let all_tokens = report.tokens.filter(|(of, _)| of_session(*of)).map(|(_, tokens)| tokens);
            let all_cost = report.cost.filter(|(of, _)| of_session(*of)).map(|(_, cost)| cost);
            let known = self.sessions.entry(id.clone()).or_default();
            *known = (all_tokens.or(known.0), all_cost.or(known.1));
        }
        let unknown = report.tokens.is_some() != tokens.is_some() || report.cost.is_some() != cost.is_some();
        let used = Usage { tokens: tokens.unwrap_or_default(), cost, at_least: !report.is_final || unknown };
        agent.priced(used)
    }

    /// What a reviewer or a critic used is the loop's, too.
    pub(super) fn spend(&mut self, agent: &AgentSpec, report: Option<&AgentReport>) -> Usage {
        let used = self.account(agent, report);
        self.spent = self.spent + used;
        self.costs.push(used.cost);
        let said = report.and_then(|report| report.session.model.clone());
        let model = said.or_else(|| agent.model.clone());
        self.judged.push(Judged { at: self.updated_at, model, usage: used });
        // One that its provider failed was cut off, too.
        let report = report.filter(|report| report.fault.is_none());
        self.cost_unknown |= withholds_cost(report, used);
        self.untold_judges = match used.cost {
            Some(_) => 0,
            None => self.untold_judges + u32::from(used.tokens.counted() > 0),
        };
        used
    }

    /// Any one source claims.
    fn claim(&self, finished: &AttemptFinished, exit: Exit) -> Option<ClaimSource> {
        match exit {
            _ if finished.promised => Some(ClaimSource::Promise),
            _ if finished.state_done => Some(ClaimSource::StateFile),
            Exit::Code(0) | Exit::Unseen if self.spec.promise.is_none() => {
                let by_gates = self.spec.has_hard_gates();
                Some(if by_gates { ClaimSource::Gates } else { ClaimSource::ExitCode })
            }
            Exit::Code(_) | Exit::Signal(_) | Exit::Lost | Exit::Unseen => None,
        }
    }
}

/// How an attempt ended whose last word counts: one that had to be stopped says nothing, whatever it printed on the way.
fn speaks(finished: &AttemptFinished, cause: Cause) -> Option<Exit> {
    let Cause::Itself(exit) = cause else { return None };
    let is_whole = finished.report.as_ref().is_none_or(|report| report.is_final && report.fault.is_none());
    (exit != Exit::Lost && finished.output_error.is_none() && is_whole).then_some(exit)
}

/// Whether an agent told all that it will, but not what it cost: a cap on money cannot be kept then. One that was cut off
/// might have.
fn withholds_cost(report: Option<&AgentReport>, used: Usage) -> bool {
    used.cost.is_none() && report.is_some_and(|report| report.is_final)
}

fn after(id: AttemptId) -> AttemptId {
    AttemptId { attempt: id.attempt + 1, ..id }
}
