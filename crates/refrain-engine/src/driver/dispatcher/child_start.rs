//! The start of a child: the record first, synced; then the process. Its input is made by `attempt`, `judge` and
//! `child`.

use std::sync::Arc;

use camino::Utf8Path;
use refrain_agents::output_parser;
use refrain_core::agent::Usage;
use refrain_core::event::StopReason;
use refrain_core::gate::{Check, GateSpec, ReviewSpec};
use refrain_core::r#loop::{Candidate, Proving};
use refrain_core::prompt::{self, QuotedLogs};
use refrain_core::review::Changes;
use refrain_core::sandbox::Role;
use refrain_core::{AttemptId, ChildId, LoopState, Step};
use refrain_proc::keeper::StopLadder;
use refrain_proc::{Job, Meter};
use refrain_store::journal::Durability;
use tokio::sync::mpsc;

use super::{Drive, Flight};
use crate::child::attempt::AttemptStart;
use crate::child::judge::Brief;
use crate::child::{ChildEvent, ChildOutput, command_job, quotes};
use crate::driver::budget::BudgetReservation;
use crate::error::chain;
use crate::git_steps::repository::changes;
use crate::sandbox::ConfinedChild;
use crate::{EngineError, now};

/// The meter of a child's output, and the channel for its events.
type Watchers = (Arc<Meter>, mpsc::Sender<ChildEvent>);

/// Writes the input of a child, and makes its job; the error is for the user. Blocks.
type Preparation = Box<dyn FnOnce() -> Result<Job<ChildOutput>, String> + Send>;

impl Drive<'_> {
    /// The record first, synced with all that led here; then the child.
    pub(super) async fn start_child(&mut self, child: ChildId) -> Result<(), EngineError> {
        let watchers = (self.begin_flight(), self.ready_crew()?);
        let started = self.driver.journal.state().started(child);
        let (Some(started), Some(prepare)) = (started, self.preparation(child, watchers).await) else {
            self.flight = None;
            return Ok(());
        };
        let costs = self.driver.journal.state().costs_of(&Step::Start(child)).is_some();
        self.driver.journal.push(started, now())?;
        self.commit(if costs { Durability::Replicated } else { Durability::Synced }).await?;
        let (dir, of) = (self.driver.journal.dir().clone(), self.attempt_of(child));
        let confine = self.confine(child);
        let prepare = move || {
            dir.remove_links(of).map_err(|error| chain(&error))?;
            confine(prepare()?, &dir.0)
        };
        match self.driver.blocking(prepare).await {
            Ok(job) => self.supervisor.run(job),
            Err(error) => self.spawn_failed(error)?,
        }
        Ok(())
    }

    /// Puts the job of a child into the sandbox of the loop, if it has one.
    fn confine(
        &self,
        child: ChildId,
    ) -> impl FnOnce(Job<ChildOutput>, &Utf8Path) -> Result<Job<ChildOutput>, String> + use<> {
        let state = self.driver.journal.state();
        let (spec, host) = (state.spec.clone(), self.driver.host.clone());
        let role = match child {
            ChildId::Attempt(_) => Role::Agent(spec.agent.kind),
            ChildId::Gate { gate, .. } => {
                let reviewer = spec.gates.get(gate).and_then(GateSpec::reviewer);
                reviewer.map_or(Role::Gate, |agent| Role::Agent(agent.kind))
            }
            ChildId::Critic { .. } => {
                let critic = spec.critique.as_ref().map(|critique| critique.critic.kind);
                Role::Agent(critic.unwrap_or(spec.agent.kind))
            }
        };
        let verification = state.verification_of(child);
        move |job, loop_dir| {
            let confined = ConfinedChild { spec: &spec, role, host: &host, loop_dir, verification };
            let refused = job.listener.refused.clone();
            confined.job(job, &refused).map_err(|error| format!("the sandbox cannot be started: {error}"))
        }
    }

    fn attempt_of(&self, child: ChildId) -> Option<AttemptId> {
        let state = self.driver.journal.state();
        match child {
            ChildId::Attempt(id) => Some(id),
            ChildId::Gate { .. } => state.proving().map(Proving::folder),
            ChildId::Critic { .. } => state.last_charged().map(|last| last.id),
        }
    }

    /// The child in flight could not be started.
    pub(super) fn spawn_failed(&mut self, error: String) -> Result<(), EngineError> {
        self.flight = None;
        match self.driver.journal.state().spawn_failed(error) {
            Some(event) => Ok(self.driver.journal.push(event, now())?),
            None => Ok(()),
        }
    }

    async fn preparation(&mut self, child: ChildId, watchers: Watchers) -> Option<Preparation> {
        match child {
            ChildId::Attempt(id) => Some(self.prepare_attempt(id, watchers).await),
            ChildId::Gate { gate, run } => self.prepare_gate(gate, run, watchers),
            ChildId::Critic { .. } => {
                let state = self.driver.journal.state();
                let critic = state.spec.critique.as_ref()?.critic.clone();
                let (of, dir) = (state.last_charged()?.id, self.driver.journal.dir().clone());
                let candidate = state.proof.as_ref().map(|proof| proof.candidate.clone());
                Some(self.prepare_judge(watchers, candidate, move |state, changes| {
                    Brief::critique(state, &critic, of, &dir, changes)
                }))
            }
        }
    }

    async fn prepare_attempt(&mut self, id: AttemptId, watchers: Watchers) -> Preparation {
        let (state, dir) = (self.driver.journal.state(), self.driver.journal.dir().clone());
        let (spec, wanted) = (state.spec.clone(), prompt::quotes(state));
        let quoted = self.driver.blocking(move || quotes::read(&spec, &dir, &wanted)).await;
        let (state, dir) = (self.driver.journal.state(), self.driver.journal.dir().attempt(id));
        let allowance = self.reservation.as_ref().and_then(BudgetReservation::allowance);
        let start = AttemptStart::new(state, id, dir, QuotedLogs(&quoted), self.env(), allowance);
        let files = Arc::clone(&self.files);
        Box::new(move || start.prepare(&files, watchers).map_err(|error| chain(&error)))
    }

    fn prepare_gate(&mut self, place: usize, run: u32, watchers: Watchers) -> Option<Preparation> {
        let ground = self.ready.take().map(|(_, ready)| ready);
        let (state, dir) = (self.driver.journal.state(), self.driver.journal.dir().clone());
        let proving = state.proving()?;
        let (of, gate) = (proving.folder(), state.spec.gates.get(place)?.clone());
        match &gate.check {
            Check::Command(command) => {
                let mut job = command_job(
                    (state, &self.driver.host.env),
                    (&gate, command),
                    (of, run),
                    &dir,
                    watchers.0,
                );
                Some(Box::new(move || {
                    job.dir = ground.transpose()?.unwrap_or(job.dir);
                    Ok(job)
                }))
            }
            Check::Review(review) => {
                let (review, candidate): (Box<ReviewSpec>, _) = (review.clone(), proving.candidate.clone());
                Some(self.prepare_judge(watchers, candidate, move |state, changes| {
                    Brief::review(state, (&gate, &review), (of, run), &dir, changes)
                }))
            }
        }
    }

    /// A reviewer or a critic reads the changes of the candidate.
    fn prepare_judge(
        &self,
        watchers: Watchers,
        candidate: Option<Candidate>,
        brief: impl FnOnce(&LoopState, Option<&Changes>) -> Brief + Send + 'static,
    ) -> Preparation {
        let (state, env) = (self.driver.journal.state().clone(), self.env());
        let allowance = self.reservation.as_ref().and_then(BudgetReservation::allowance);
        Box::new(move || {
            let changes = changes(&state.spec, state.git.began.as_ref(), candidate.as_ref(), &env);
            let job = changes.and_then(|changes| {
                brief(&state, changes.as_ref()).prepare(&state, env, watchers, allowance)
            });
            job.map_err(|error| chain(&error))
        })
    }

    /// Whether the gate of this step is to run elsewhere, and that is not ready for it.
    pub(super) fn lacks_ground(&self, step: Step) -> bool {
        let Step::Start(ChildId::Gate { gate, .. }) = step else { return false };
        let spec = &self.driver.journal.state().spec;
        // An agent that reviews runs nothing, and gets the candidate's changes in its prompt.
        let runs = spec.gates.get(gate).is_some_and(|gate| matches!(gate.check, Check::Command(_)));
        spec.clean_checkout && runs && self.ready.as_ref().is_none_or(|(of, _)| *of != step)
    }

    /// The record first; then the child in flight is ended.
    pub(super) async fn stop_child(&mut self, because: StopReason) -> Result<(), EngineError> {
        let state = self.driver.journal.state();
        let ladder = state.runs().map_or_else(StopLadder::default, |agent| output_parser::ladder(agent.kind));
        let grace = state.in_flight().and_then(|_| state.limits.grace(because));
        if let Some(requested) = state.stop_requested(because) {
            self.driver.journal.push(requested, now())?;
        }
        self.commit(Durability::Written).await?;
        self.supervisor.stop(ladder.patient(grace.map(Into::into)));
        Ok(())
    }

    fn begin_flight(&mut self) -> Arc<Meter> {
        let live_progress = Arc::clone(&self.driver.live_progress);
        let meter = Arc::new(Meter::new(move || live_progress.update(|snapshot| snapshot.prints += 1)));
        let (used, retrying) = (Usage::default(), None);
        self.flight = Some(Flight { meter: Arc::clone(&meter), used, retrying, output_lost: false });
        meter
    }
}
