//! How one event changes the state. The only place that writes it, and the only place that says which event can follow
//! which: any other order in a journal is damage, reported as such and never guessed around.

mod attempt;
mod base;
mod commit;
mod default_gates;
mod gates;
mod money;
mod runner;

use std::ops::Deref;
use std::time::Duration;

use jiff::Timestamp;

use super::provider_faults::Trouble;
use super::state::{Candidate, Feedback, InFlight, LoopState, Phase, RunningCritique, RunningGate, Saved};
use crate::agent::{Usage, Usd};
use crate::event::{Ask, End, Event, Exit, Record, Wait};
use crate::ids::LoopId;
use crate::machine::{Damage, Lifecycle, Machine, Refusal, SharedEvent};
use crate::signature::{Signatures, SignedKind, SignedRecord};

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
            wait_span: (None, *at),
            steering: Vec::new(),
            session: None,
            spent: Usage::default(),
            assumed: Usd::default(),
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
            Event::RunnerStarted { .. } => self.start_runner(event)?,
            Event::SessionBound(session) => self.bind_session(session)?,
            Event::SessionLeft if !self.is_busy() && self.session.is_some() => self.session = None,
            Event::SessionLeft => return Err("session.left"),
            Event::BaseTaken(base) if self.lacks_base() => self.take_base(base),
            Event::BaseTaken(_) => return Err("base.taken"),
            Event::BaseRefused { error } if self.lacks_base() => self.git.refused = Some(error.clone()),
            Event::BaseRefused { .. } => return Err("base.refused"),
            Event::CandidateTaken { tree, partial, touched, changed } => {
                let (tree, touched) = (tree.clone(), touched.clone());
                self.take_candidate(Candidate { tree, partial: *partial, touched }, changed, at)?;
            }
            Event::CandidateRefused { error, bad_work } => self.refuse_candidate(error, *bad_work)?,
            Event::GateStarted { gate, run } => self.start_gate(gate, *run, at)?,
            Event::GateSpawnFailed { error } => self.fail_gate(error, at)?,
            Event::GateStopRequested { because } => {
                let fits = |running: &RunningGate| running.child.stopping.is_none();
                self.gate_to("gate.stop-requested", fits)?.child.stopping = Some(*because);
            }
            Event::GateFinished(finished) => self.finish_gate(finished, at)?,
            Event::CommitSettled(report) => self.settle_commit(report)?,
            Event::WorktreeReleased { kept, branch_removed } => {
                self.release_worktree(kept.as_ref(), *branch_removed)?
            }
            Event::IterationBegun { iteration, work } => self.begin_iteration(*iteration, work.as_ref())?,
            Event::AttemptStarted(id) => self.start_attempt(*id, at)?,
            Event::AttemptSpawned { process } => {
                let flight = self.flight_to("attempt.spawned", |flight| flight.spawned.is_none())?;
                flight.spawned = Some((*process, at));
            }
            Event::AttemptSpawnFailed { error } => self.fail_attempt(error, at)?,
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
            Event::Asked { request, ask, by } => self.take_request(request.as_ref(), ask, *by)?,
            Event::WaitStarted(wait) => {
                let last = self.wait.filter(|last| last.until > at);
                let begins_again = |last: Wait| self.wait_span.0.is_some() && wait.until < last.until;
                if !last.is_none_or(begins_again) || !self.is_driven() || self.is_busy() {
                    return Err("wait.started");
                }
                self.wait = Some(*wait);
                self.wait_span = match last {
                    Some(_) => (None, self.wait_span.1),
                    None => (Some(at), wait.until),
                };
            }
            Event::LoopEnded(end) => self.end(*end, at)?,
            Event::LoopResumed { limits, approved, no_sandbox } => {
                self.resume_with(limits, approved.as_ref(), *no_sandbox, at)?;
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
        let Phase::InFlight(flight) = &mut self.phase else { return Err(what) };
        if fits(flight) { Ok(flight) } else { Err(what) }
    }

    /// Whether a runner or a session drives it, as far as the journal knows.
    pub(crate) fn is_driven(&self) -> bool {
        (self.runner.is_some() || self.session.is_some()) && self.ended.is_none()
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
