//! How an attempt, a gate or a critic is started: the record first, synced; then the process. What they are told is made by
//! `executor`, `gate` and `judge`.

use std::sync::Arc;

use refrain_agents::ear;
use refrain_core::agent::Usage;
use refrain_core::event::Event;
use refrain_core::gate::Check;
use refrain_core::r#loop::{Candidate, Proving};
use refrain_core::prompt::{self, Quoted};
use refrain_core::review::Changes;
use refrain_core::{AttemptId, LoopState, Step};
use refrain_proc::keeper::StopLadder;
use refrain_proc::{Job, Meter};
use refrain_store::journal::Durability;
use tokio::sync::mpsc;

use super::{Drive, Flight};
use crate::agent_news::AgentNews;
use crate::budget::Purse;
use crate::error::chain;
use crate::executor::{self, Plan};
use crate::gate;
use crate::hearing::Hearing;
use crate::judge::Brief;
use crate::repository::changes;
use crate::{EngineError, now, quotes};

impl Drive<'_> {
    /// The record first, synced; then the agent.
    pub(super) async fn start_attempt(&mut self, id: AttemptId) -> Result<(), EngineError> {
        let dir = self.journal.dir().attempt(id);
        let (state, loop_dir) = (self.journal.state(), self.journal.dir().clone());
        let (spec, wanted) = (state.spec.clone(), prompt::quotes(state));
        let quoted = self.blocking(move || quotes::read(&spec, &loop_dir, &wanted)).await;
        let heard = (self.take_off(), self.ready_crew()?);
        let allowance = self.purse.as_ref().and_then(Purse::allowance);
        let plan = Plan::new(self.journal.state(), id, dir, Quoted(&quoted), &self.env(), heard, allowance);
        let (spec, files) = (self.journal.state().spec.clone(), Arc::clone(&self.files));
        self.journal.push(Event::AttemptStarted(id), now())?;
        let batch = self.journal.batch(Durability::Synced);
        let (committed, job) = self
            .blocking(move || {
                let committed = batch.write()?;
                Ok::<_, EngineError>((committed, executor::prepare(&spec, plan, &files)))
            })
            .await?;
        self.committed(committed).await?;
        match job {
            Ok(job) => self.crew.run(job),
            Err(error) => self.journal.push(Event::AttemptSpawnFailed { error: chain(&error) }, now())?,
        }
        Ok(())
    }

    /// Whether the gate of this step is to run elsewhere, and that is not ready for it.
    pub(super) fn lacks_ground(&self, step: Step) -> bool {
        let Step::RunGate { gate, .. } = step else { return false };
        let spec = &self.journal.state().spec;
        // An agent that reviews runs nothing, and is told what the candidate changes.
        let runs = spec.gates.get(gate).is_some_and(|gate| matches!(gate.check, Check::Command(_)));
        spec.clean_checkout && runs && self.ready.as_ref().is_none_or(|(of, _)| *of != step)
    }

    /// The record first, synced with all that led here; then the gate.
    pub(super) async fn start_gate(&mut self, place: usize, run: u32) -> Result<(), EngineError> {
        let ground = self.ready.take().map(|(_, ready)| ready);
        let news = self.ready_crew()?;
        let meter = self.take_off();
        let state = self.journal.state();
        let proving = state.proving();
        let of = proving.map(Proving::folder);
        let (Some(of), Some(gate)) = (of, state.spec.gates.get(place).cloned()) else { return Ok(()) };
        let started = Event::GateStarted { gate: gate.name.clone(), run };
        let job = match &gate.check {
            Check::Command(command) => {
                let mut job = gate::job(state, (&gate, command), (of, run), self.journal.dir(), meter);
                self.journal.push(started, now())?;
                self.commit(Durability::Synced).await?;
                ground.transpose().map(|ground| {
                    job.dir = ground.unwrap_or(job.dir);
                    job
                })
            }
            Check::Review(review) => {
                let candidate = proving.and_then(|proving| proving.candidate.clone());
                let (review, dir) = (review.clone(), self.journal.dir().clone());
                self.journal.push(started, now())?;
                self.commit(Durability::Synced).await?;
                self.prepare((meter, news), candidate, move |state, changes| {
                    Brief::review(state, (&gate, &review), (of, run), &dir, changes)
                })
                .await
                .map_err(|error| chain(&error))
            }
        };
        match job {
            Ok(job) => self.crew.run(job),
            Err(error) => {
                self.flight = None;
                self.journal.push(Event::GateSpawnFailed { error }, now())?;
            }
        }
        Ok(())
    }

    /// The record first, synced with all that led here; then the critic.
    pub(super) async fn start_critique(&mut self, iteration: u32) -> Result<(), EngineError> {
        let state = self.journal.state();
        let critic = state.spec.critique.as_ref().map(|critique| critique.critic.clone());
        let (Some(critic), Some(last)) = (critic, state.last_charged()) else { return Ok(()) };
        let (of, dir) = (last.id, self.journal.dir().clone());
        let candidate = state.proof.as_ref().map(|proof| proof.candidate.clone());
        let heard = (self.take_off(), self.ready_crew()?);
        self.journal.push(Event::CritiqueStarted { iteration }, now())?;
        self.commit(Durability::Synced).await?;
        let brief = move |state: &LoopState, changes: Option<&Changes>| {
            Brief::critique(state, &critic, of, &dir, changes)
        };
        match self.prepare(heard, candidate, brief).await {
            Ok(job) => self.crew.run(job),
            Err(error) => {
                self.flight = None;
                self.journal.push(Event::CritiqueFailed { error: chain(&error) }, now())?;
            }
        }
        Ok(())
    }

    /// Everything that must be there before an agent judges: what was changed, and what it is told of that.
    async fn prepare(
        &self,
        heard: (Arc<Meter>, mpsc::Sender<AgentNews>),
        candidate: Option<Candidate>,
        brief: impl FnOnce(&LoopState, Option<&Changes>) -> Brief + Send + 'static,
    ) -> Result<Job<Hearing>, EngineError> {
        let (state, env) = (self.journal.state().clone(), self.env());
        let allowance = self.purse.as_ref().and_then(Purse::allowance);
        self.blocking(move || {
            let changes = changes(&state.spec, state.git.began.as_ref(), candidate.as_ref(), &env)?;
            brief(&state, changes.as_ref()).prepare(&state, &env, heard, allowance)
        })
        .await
    }

    /// How the gate in flight is ended.
    pub(super) fn gate_ladder(&self) -> StopLadder {
        let state = self.journal.state();
        let gate = state.running_gate().and_then(|running| state.spec.gates.get(running.gate));
        match gate.map(|gate| &gate.check) {
            Some(Check::Review(review)) => ear::ladder(review.agent.kind),
            Some(Check::Command(_)) | None => StopLadder::default(),
        }
    }

    /// From here on a process of the loop's is watched.
    fn take_off(&mut self) -> Arc<Meter> {
        let pulse = Arc::clone(&self.pulse);
        let meter = Arc::new(Meter::new(move || pulse.update(|beat| beat.prints += 1)));
        let (used, retrying) = (Usage::default(), None);
        self.flight = Some(Flight { meter: Arc::clone(&meter), used, retrying, output_lost: false });
        meter
    }
}
