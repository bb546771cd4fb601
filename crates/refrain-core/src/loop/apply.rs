//! How one event changes the state. The only place that writes it, and the only place that says which event can follow
//! which: any other order in a journal is damage, reported as such and never guessed around.

mod attempt;
mod base;
mod default_gates;
mod gates;
mod money;

use std::collections::HashSet;
use std::ops::Deref;
use std::time::Duration;

use jiff::Timestamp;

use attempt::after;

use super::provider_faults::Trouble;
use super::state::{
    Attempt, Candidate, Child, Feedback, InFlight, LoopState, Outcome, Phase, RunningCritique, RunningGate,
    Saved, Steering,
};
use crate::agent::Usage;
use crate::event::{Ask, BlockReason, End, Event, Exit, Record};
use crate::git::{CommitReport, CommitResult, OmittedPath, SkipReason};
use crate::ids::{AttemptId, LoopId};
use crate::machine::{Damage, Ended, Lifecycle, Machine, Refusal, SharedEvent};
use crate::sandbox::Host;
use crate::signature::{Signatures, SignedKind, SignedRecord};
use crate::stuck::Verdict;

impl LoopState {
    pub fn begin(record: &Record) -> Result<Self, Damage> {
        let Record { seq: 1, at, event: Event::LoopStarted(started) } = record else {
            return Err(Damage::NoStart(record.seq));
        };
        Ok(Self {
            lifecycle: Lifecycle::begin(*at, started.format)?,
            format: started.format,
            spec: started.spec.clone(),
            limits: started.spec.limits.clone(),
            phase: Phase::Idle { claim: None, uncommitted: false },
            unneeded: 0,
            git: Default::default(),
            baseline: None,
            dropped: Vec::new(),
            proof: None,
            attempts: Vec::new(),
            iteration: started.spec.carried(),
            charged: started.spec.carried(),
            wait: None,
            steering: Vec::new(),
            session: None,
            spent: Usage::default(),
            costs: Vec::new(),
            judged: Vec::new(),
            sweeping: false,
            progress: Default::default(),
            feedback: Feedback { asked: started.spec.carried(), ..Feedback::default() },
            given_up: None,
            blocked: 0,
            approved: None,
            tenure: Default::default(),
            signatures: Signatures::Unchecked,
            refunds_in_a_row: 0,
            sessions: Default::default(),
            trouble: Trouble::default(),
            hurried: false,
            cost_unknown: false,
            untold: 0,
            untold_judges: 0,
            churn: 0,
            idle_turns: 0,
            rounds: 0,
            rested_since: None,
        })
    }

    /// The state after a whole journal.
    pub fn fold<'a>(records: impl IntoIterator<Item = &'a Record>) -> Result<Self, Damage> {
        let mut records = records.into_iter();
        let mut state = Self::begin(records.next().ok_or(Damage::NoStart(0))?)?;
        records.try_for_each(|record| state.apply(record))?;
        Ok(state)
    }

    /// The state after one more record.
    /// Errors: [`Damage`] if the record cannot follow; the state is then unchanged.
    pub fn apply(&mut self, record: &Record) -> Result<(), Damage> {
        let Record { seq, at, event } = record;
        self.check_order(*seq, *at)?;
        // Between two runners the loop is not driven: that time does not count. The next writer finds a torn tail
        // first.
        let undriven = matches!(event, Event::RunnerStarted { .. } | Event::JournalTorn { .. });
        let stretch = if undriven { Duration::ZERO } else { self.running_stretch(*at) };
        self.change(event, *at).map_err(|what| Damage::Order { seq: *seq, what })?;
        self.lifecycle.advance(*seq, *at, stretch);
        Ok(())
    }

    /// Applies the event, or says which one is out of order and changes nothing.
    fn change(&mut self, event: &Event, at: Timestamp) -> Result<(), &'static str> {
        match event {
            Event::LoopStarted(_) => return Err("loop.started"),
            Event::RunnerStarted { .. } if self.ended.is_some() => return Err("runner.started"),
            Event::RunnerStarted { runner, interrupted, adopted, judged, fence } => {
                let is_stale = fence.is_some_and(|fence| fence < self.tenure.fence);
                if is_stale || judged.is_some() && (interrupted.is_some() || self.runs().is_none()) {
                    return Err("runner.started");
                }
                match (&self.phase, interrupted) {
                    (Phase::InFlight(flight), Some(id)) if flight.id == *id => {
                        let flight = flight.clone();
                        // When it ended was not seen: the last that is known of it is the last event.
                        self.settle(flight, self.updated_at, adopted.clone());
                    }
                    (Phase::Idle { .. } | Phase::Begun { .. } | Phase::Publishing(_), None)
                        if adopted.is_none() =>
                    {
                        if let Phase::Publishing(publishing) = &mut self.phase {
                            // The next runner checks whether it was done before it does it again.
                            publishing.running = None;
                        }
                    }
                    (Phase::Proving(_) | Phase::Critiquing(_), None) if adopted.is_none() => {
                        if let Some(judge) = self.runs().cloned() {
                            self.spend(&judge, judged.as_deref());
                        }
                        self.lose_gate();
                        self.lose_critique(None);
                    }
                    _ => return Err("runner.started"),
                }
                self.lifecycle.runner = Some(runner.clone());
                self.sweeping = false;
                self.git.unwatched |= self.git.base.is_some();
                if let Some(fence) = fence {
                    self.lease(*fence);
                }
            }
            Event::SessionBound(session) => {
                let may = match self.phase {
                    Phase::InFlight(_) => self.session.is_some(),
                    Phase::Idle { .. }
                    | Phase::Begun { .. }
                    | Phase::Proving(_)
                    | Phase::Publishing(_)
                    | Phase::Critiquing(_) => !self.is_busy(),
                };
                if !may || self.ended.is_some() {
                    return Err("session.bound");
                }
                self.session = Some(session.clone());
            }
            Event::SessionLeft => {
                if self.is_busy() || self.session.take().is_none() {
                    return Err("session.left");
                }
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
            Event::CandidateTaken { tree, partial, touched, changed } => {
                let (tree, touched) = (tree.clone(), touched.clone());
                self.take_candidate(Candidate { tree, partial: *partial, touched }, changed, at)?;
            }
            Event::CandidateRefused { error } => self.refuse_candidate(error)?,
            Event::GateStarted { gate, run } => self.start_gate(gate, *run, at)?,
            Event::GateSpawnFailed { error } => self.fail_gate(error, at)?,
            Event::GateStopRequested { because } => {
                let fits = |running: &RunningGate| running.child.stopping.is_none();
                self.gate_to("gate.stop-requested", fits)?.child.stopping = Some(*because);
            }
            Event::GateFinished(finished) => self.finish_gate(finished, at)?,
            Event::CommitSettled(report) => {
                let Phase::Idle { claim, uncommitted: uncommitted @ true } = &mut self.phase else {
                    return Err("commit.settled");
                };
                if report.iteration != self.iteration || self.sweeping {
                    return Err("commit.settled");
                }
                *uncommitted = false;
                let claim = *claim;
                self.settle_commit(report);
                if !self.is_another(report) {
                    self.phase = self.settled(claim);
                }
                self.record_iteration();
            }
            Event::WorktreeReleased { kept, branch_removed } => {
                let is_over = match self.phase {
                    Phase::Idle { .. } if self.completes_by().is_some() => true,
                    Phase::Idle { .. } | Phase::Begun { .. } => self.cancel.is_some(),
                    Phase::Proving(_) => self.cancel.is_some() && !self.is_busy(),
                    Phase::Publishing(_) => self.cancel.is_some(),
                    Phase::InFlight(_) | Phase::Critiquing(_) => false,
                };
                if !is_over
                    || self.check_here().is_err()
                    || self.is_final()
                    || self.sweeping
                    || !self.holds_worktree()
                {
                    return Err("worktree.released");
                }
                self.git.released = true;
                self.git.branch_removed = *branch_removed;
                self.git.kept.clone_from(kept);
            }
            Event::IterationBegun { iteration, work } => {
                let fits = matches!(self.phase, Phase::Idle { claim: None, uncommitted: false })
                    && (self.git.base.is_some() && !self.git.stale || !self.spec.git.needs_base())
                    && !self.lacks_baseline();
                if !fits || *iteration != self.iteration + 1 || !self.is_driven() {
                    return Err("iteration.begun");
                }
                self.iteration = *iteration;
                self.progress.began.clone_from(work);
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
                let shifted = matches!(self.verdict(), Verdict::Shift(_));
                self.phase = Phase::InFlight(InFlight {
                    id: *id,
                    child: Child::new(at),
                    spawned: None,
                    told: self.steering.len(),
                    shifted,
                });
            }
            Event::AttemptSpawned { process } => {
                let flight = self.flight_to("attempt.spawned", |flight| flight.spawned.is_none())?;
                flight.spawned = Some((*process, at));
            }
            Event::AttemptSpawnFailed { error } => {
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
                    error: Some(error.clone()),
                    usage: Usage::default(),
                    proof: None,
                    shifted: false,
                });
                self.phase = Phase::Begun { next: after(id), hindered: Some(BlockReason::AgentMissing) };
            }
            Event::AttemptStopRequested { because } => {
                let fits = |flight: &InFlight| flight.spawned.is_some() && flight.child.stopping.is_none();
                self.flight_to("attempt.stop-requested", fits)?.child.stopping = Some(*because);
            }
            Event::AttemptFinished(finished) => {
                let is_turn = self.session.is_some() && finished.exit == Exit::Unseen;
                let fits =
                    |flight: &InFlight| flight.spawned.is_some() || finished.exit == Exit::Lost || is_turn;
                let flight = self.flight_to("attempt.finished", fits)?.clone();
                self.settle(flight, at, Some(finished.clone()));
            }
            Event::PublishStarted { effect } => self.start_publishing(*effect)?,
            Event::PublishSettled(report) => self.settle_publishing(report, at)?,
            Event::CritiqueStarted { iteration } => self.start_critique(*iteration, at)?,
            Event::CritiqueFailed { error } => {
                self.critique_to("critique.failed", |_| true)?;
                self.lose_critique(Some(error));
            }
            Event::CritiqueStopRequested { because } => {
                let fits = |critiquing: &RunningCritique| critiquing.child.stopping.is_none();
                self.critique_to("critique.stop-requested", fits)?.child.stopping = Some(*because);
            }
            Event::CritiqueFinished(finished) => self.finish_critique(finished)?,
            Event::AgentChanged(agent) => self.change_agent(agent)?,
            Event::WorkSaved { branch, commit, pushed, mixed } => {
                let (name, commit, pushed) = (branch.clone(), commit.clone(), pushed.clone());
                let mixed = mixed.clone();
                self.keep("work.saved", Saved::Branch { name, commit, pushed, mixed })?;
            }
            Event::WorkUnsaved { why } => self.keep("work.unsaved", Saved::Not { why: why.clone() })?,
            Event::AttemptSwept { .. } => self.sweeping = false,
            Event::JournalTorn { .. } | Event::JournalRestored { .. } => {}
            Event::LoopLeft(departure) => self.leave(departure)?,
            Event::LoopMoved(arrival) => self.arrive(arrival)?,
            Event::Asked { .. } if self.check_here().is_err() => return Err("asked"),
            Event::Asked { request, ask, by } => {
                let kills = self.kills_at_once(ask);
                self.lifecycle.ask(request.as_ref(), ask, *by)?;
                if kills {
                    self.kill_child();
                }
                match ask {
                    Ask::Cancel(_) | Ask::Pause(_) => {}
                    // Any other process of the user can write a request, and an agent is one.
                    Ask::AllowHost(host) if by.is_person() => self.allow_host(host),
                    Ask::AllowHost(_) => {}
                    Ask::Steer(text) => {
                        self.steering.push(Steering { text: text.clone(), by: *by, request: request.clone() })
                    }
                    Ask::Withdraw(request) => self.withdraw(request, *by),
                    Ask::Proceed => {
                        self.wait = None;
                        self.rested_since = None;
                        self.trouble.next = None;
                        if let Phase::Publishing(publishing) = &mut self.phase {
                            publishing.next = None;
                        }
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
                let fits = match end {
                    // A stopped loop can still be cancelled; nothing else can happen to it but `resume`.
                    End::Cancelled => self.cancel.is_some() && !self.is_final(),
                    End::Completed { claim } => self.completes_by() == Some(*claim) && self.cancel.is_none(),
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
                self.lifecycle.ended = Some(Ended { end: *end, at });
            }
            Event::LoopResumed { limits, approved, no_sandbox } => {
                let fits = approved.is_none() || *approved == self.awaits_approval();
                let is_here = self.check_here().is_ok();
                if !fits || !is_here || self.is_busy() || self.is_final() || self.cancel.is_some() {
                    return Err("loop.resumed");
                }
                self.hear_of_approval(approved.as_ref(), at);
                self.limits = limits.clone();
                if *no_sandbox {
                    self.spec.sandbox = None;
                }
                let was = self.lifecycle.resume();
                (self.wait, self.rested_since) = (None, None);
                (self.lifecycle.runner, self.session) = (None, None);
                self.refunds_in_a_row = 0;
                (self.churn, self.idle_turns, self.unneeded) = (0, 0, 0);
                // The last iteration may not be the last any more.
                self.weigh_claim();
                (self.cost_unknown, self.untold, self.untold_judges) = (false, 0, 0);
                (self.given_up, self.blocked) = (None, 0);
                if matches!(was, Some(End::Stuck | End::Blocked { why: BlockReason::Stuck })) {
                    self.reset_stuck();
                }
                if self.missing_gate().is_some() {
                    // By now it may be there.
                    (self.baseline, self.proof) = (None, None);
                }
                self.progress.saved = None;
                self.git.refused = None;
                self.publish_again();
                self.git.stale |= self.has_told_all() || self.may_be_renewed();
                self.git.unwatched |= self.git.base.is_some();
                if let Phase::Proving(proving) = &mut self.phase {
                    // A person who has not been asked yet has said nothing.
                    proving.hindered = proving.hindered.filter(|why| *why == BlockReason::Approval);
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

    fn allow_host(&mut self, host: &Host) {
        if let Some(sandbox) = self.spec.sandbox.as_mut().filter(|sandbox| !sandbox.hosts.contains(host)) {
            sandbox.hosts.push(host.clone());
        }
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
            | Phase::Publishing(_)
            | Phase::Critiquing(_) => Err(what),
        }
    }

    /// Whether a runner or a session drives it, as far as the journal knows.
    pub(crate) fn is_driven(&self) -> bool {
        (self.runner.is_some() || self.session.is_some()) && self.ended.is_none()
    }

    /// Whether all that the loop did to the history is known: what is added while it is stopped is not the loop's.
    fn has_told_all(&self) -> bool {
        let is_idle = matches!(self.phase, Phase::Idle { uncommitted: false, .. } | Phase::Publishing(_));
        let told = self.git.last.as_ref().map_or(self.spec.carried(), |last| last.iteration);
        self.git.base.is_some() && is_idle && told == self.iteration
    }

    /// Whether all changes of the loop are committed, except what is never committed.
    fn has_committed_all(&self) -> bool {
        let last = self.git.last.as_ref().filter(|_| self.has_told_all());
        last.is_some_and(|last| {
            matches!(last.result, CommitResult::Made { .. } | CommitResult::Skipped(SkipReason::Nothing))
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
        if matches!(report.result, CommitResult::Made { .. }) {
            self.git.published.rebased = None;
        }
        let known: HashSet<_> = self.git.last.iter().flat_map(|last| &last.left_out).collect();
        let is_new = |left: &&OmittedPath| !known.contains(left);
        self.git.newly_left_out = report.left_out.iter().filter(is_new).cloned().collect();
        self.git.exposed.extend(report.exposed.iter().filter(|exposed| !exposed.allowed).cloned());
        self.git.mixed = std::mem::take(&mut self.git.unwatched);
        self.git.last = Some(report.clone());
    }
}

impl Machine for LoopState {
    type Event = Event;
    type End = End;

    fn begin(record: &Record) -> Result<Self, Damage> {
        Self::begin(record)
    }

    fn apply(&mut self, record: &Record) -> Result<(), Damage> {
        self.apply(record)
    }

    fn id(&self) -> &LoopId {
        &self.spec.id
    }

    fn admits(&self, ask: &Ask) -> Result<(), Refusal> {
        self.admits(ask)
    }

    fn signed(event: &Event) -> Option<SignedKind> {
        event.signed()
    }

    fn is_result(event: &Event) -> bool {
        matches!(event, Event::AttemptFinished(_))
    }

    fn judge(&self, records: &[SignedRecord]) -> Signatures {
        Signatures::of(records, self.ended.is_some(), self.format)
    }

    fn event(shared: SharedEvent) -> Event {
        match shared {
            SharedEvent::Asked(request, ask, by) => Event::Asked { request, ask, by },
            SharedEvent::JournalTorn(bytes, kept_as) => Event::JournalTorn { bytes, kept_as },
            SharedEvent::JournalRestored(bytes, kept_as) => Event::JournalRestored { bytes, kept_as },
        }
    }
}

impl Deref for LoopState {
    type Target = Lifecycle<End>;

    fn deref(&self) -> &Self::Target {
        &self.lifecycle
    }
}
