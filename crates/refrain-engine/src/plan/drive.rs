//! A plan's runner at work: as for a loop (`dispatcher`), every source of news becomes one [`Input`] in one select, one handler
//! turns it into events, and the core says what comes next. The loops of the tasks run beside it, in the same process.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rand::RngExt;
use refrain_agents::environment;
use refrain_core::LoopId;
use refrain_core::event::{Ask, Urgency};
use refrain_core::ids::RequestId;
use refrain_core::plan::{
    PlanEvent, PlanLive, PlanState, PlanStep, TaskEnded, TaskId, TaskStarted, next_step,
};
use refrain_git::{Cancel, GitError};
use refrain_store::journal::Durability;
use refrain_store::pool::Slot;
use refrain_store::{Journal, LoopDir, Request, RunnerLock, inbox};
use tokio::net::unix::pipe;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::landing::Landing;
use super::round::{self, Round};
use super::service::{PlanRunner, own};
use super::statuses::Statuses;
use super::verify::{self, Of, Verification};
use super::work::{Work, done, outcome};
use crate::dispatcher::{blocking, install_doorbell};
use crate::signals::{SignalSources, Signals, Wish};
use crate::{EngineError, Host, Service, chain, now};

/// How often the task file is looked at while nothing happens.
const LOOK: Duration = Duration::from_secs(2);

/// What can happen to a plan's runner.
enum Input {
    /// A loop of a task has stopped.
    Round(Box<TaskEnded>),
    /// Git, or the verification, is done; or it was ended before its time.
    Work(Option<Box<PlanEvent>>),
    /// Somebody put a request into the inbox.
    Bell,
    /// A signal came.
    Signal(Wish),
    /// The time that was awaited has come, or the task file is to be looked at.
    Time,
}

/// What its loops are told when they start, if everything is to come to rest.
pub(super) type Quiet = Rc<Cell<Option<(Urgency, bool)>>>;

/// A plan's runner at work.
pub(super) struct PlanDrive {
    journal: Journal<PlanState>,
    /// Shared with whoever works for the plan: until that is over nobody else drives it.
    lock: Arc<RunnerLock>,
    service: Service,
    host: Host,
    landing: Landing,
    statuses: Statuses,
    /// The loops that it drives.
    driven: BTreeSet<LoopId>,
    /// What drives them. Dropped, they are ended.
    hosted: JoinSet<TaskEnded>,
    /// Tasks whose start is recorded, but not yet on disk: several that start together share one sync.
    begun: Vec<(usize, LoopId, Slot)>,
    /// Branches that are taken away beside everything else.
    tidying: JoinSet<()>,
    quiet: Quiet,
    told: Option<Urgency>,
    work: Option<Work>,
    doorbell: pipe::Receiver,
    signals: SignalSources,
    pulse: Arc<crate::pulse::Pulse>,
    look_again: bool,
    /// Something happened that may change what the task file is to say.
    is_news: bool,
}

impl PlanDrive {
    /// Takes the plan over, on disk; `ready` is called then.
    pub(super) async fn begin(
        runner: PlanRunner,
        host: &Host,
        signals: Signals,
        ready: impl FnOnce(),
    ) -> Result<Self, EngineError> {
        let PlanRunner { mut journal, lock, service, pulse } = runner;
        let signals = SignalSources::new(signals)?;
        let env = environment::of_git(&journal.state().spec.each, host.env.iter().cloned());
        let (dir, each) = (journal.dir().clone(), journal.state().spec.each.clone());
        let doorbell = blocking(move || {
            verify::sweep_leftovers(&each);
            install_doorbell(&dir)
        });
        let doorbell = doorbell.await?;
        journal.push(own(), now())?;
        let batch = journal.batch(Durability::Synced);
        let committed = blocking(move || batch.write()).await?;
        pulse.update(|beat| beat.journal = committed.length);
        ready();
        let statuses = Statuses::new(&service, journal.state());
        let mut drive = Self {
            landing: Landing::new(&service, host, env),
            statuses,
            journal,
            lock: Arc::new(lock),
            service,
            host: host.clone(),
            driven: BTreeSet::new(),
            hosted: JoinSet::new(),
            begun: Vec::new(),
            tidying: JoinSet::new(),
            quiet: Quiet::default(),
            told: None,
            work: None,
            doorbell,
            signals,
            pulse,
            look_again: true,
            is_news: true,
        };
        // What a runner that was killed had no time for.
        let line: Vec<_> = drive.journal.state().line.iter().map(|(id, _)| id.clone()).collect();
        drive.tidy(&line);
        Ok(drive)
    }

    /// Drives the plan until it stops.
    pub(super) async fn run(mut self) -> Result<PlanState, EngineError> {
        loop {
            if std::mem::take(&mut self.look_again) {
                self.answer().await?;
            }
            let step = next_step(self.journal.state(), &self.live(), now());
            // What can be begun is begun first: agents and git work while the rest is written.
            if !matches!(step, PlanStep::Start { .. }) {
                self.drive_begun().await?;
            }
            if self.is_news && !is_beginning(&step) {
                self.write_statuses().await?;
                continue;
            }
            match step {
                PlanStep::TakeTasks => {
                    let mut statuses = self.statuses.clone();
                    let (statuses, event) = blocking(move || {
                        let event = statuses.read();
                        (statuses, event)
                    })
                    .await;
                    self.statuses = statuses;
                    self.record(event)?;
                }
                PlanStep::TakeBase => {
                    let landing = self.landing.clone();
                    let state = self.journal.state().clone();
                    let event = blocking(move || landing.take_base(&state)).await;
                    self.record(event)?;
                }
                PlanStep::Start { task, granted, money } => self.start(task, granted, money).await?,
                PlanStep::Drive { task } => self.host(task, None),
                PlanStep::Quiet { urgency, for_good } => self.quieten(urgency, for_good).await?,
                PlanStep::Merge { tasks } => {
                    self.ask_git(move |landing, state, cancel| landing.merge(state, &tasks, cancel))?;
                }
                PlanStep::Land { upto } => {
                    self.commit().await?;
                    self.ask_git(move |landing, state, cancel| landing.land(state, upto, cancel))?;
                }
                PlanStep::CompleteWave { wave } => {
                    self.commit().await?;
                    self.ask_git(move |landing, state, cancel| landing.complete_wave(state, wave, cancel))?;
                }
                PlanStep::HandOver => {
                    self.commit().await?;
                    self.verify(Of::HandOver)?;
                }
                PlanStep::Verify { upto } => self.verify(Of::Batch(upto))?,
                PlanStep::Abandon => {
                    // It takes a moment, and who asked for it may ask for more.
                    self.work.iter().for_each(Work::abandon);
                    self.take(None).await?;
                }
                PlanStep::Await { until } => self.take(until).await?,
                PlanStep::Finish(end) => self.record(PlanEvent::Ended(end))?,
                PlanStep::Rest => return self.let_go().await,
            }
        }
    }

    fn live(&self) -> PlanLive {
        PlanLive {
            driven: self.driven.iter().chain(self.begun.iter().map(|(_, id, _)| id)).cloned().collect(),
            told: self.told,
            working: self.work.is_some(),
            tasks_changed: self.statuses.is_changed(),
        }
    }

    fn record(&mut self, event: PlanEvent) -> Result<(), EngineError> {
        self.is_news = true;
        Ok(self.journal.push(event, now())?)
    }

    /// Everything so far is on disk.
    async fn commit(&mut self) -> Result<(), EngineError> {
        if !self.journal.has_pending() {
            return Ok(());
        }
        let batch = self.journal.batch(Durability::Synced);
        let mut committed = blocking(move || batch.write()).await?;
        while let Some(bytes) = committed.restored {
            self.journal.push(PlanEvent::JournalRestored { bytes }, now())?;
            let batch = self.journal.batch(Durability::Synced);
            committed = blocking(move || batch.write()).await?;
            if let Ok(doorbell) = install_doorbell(self.journal.dir()) {
                self.doorbell = doorbell;
                self.look_again = true;
            }
        }
        self.pulse.update(|beat| beat.journal = committed.length);
        Ok(())
    }

    /// The record first; the loop once that is synced. The worktree's number is part of the record, and nobody else's before it.
    async fn start(
        &mut self,
        task: usize,
        granted: u32,
        money: Option<refrain_core::agent::Usd>,
    ) -> Result<(), EngineError> {
        let (project, state_home) = (self.service.project().clone(), self.host.state_home.clone());
        let slot = match blocking(move || Slot::take(&project, &state_home)).await {
            Ok(slot) => slot,
            Err(error) => return self.hinder(&error.into()),
        };
        let state = self.journal.state();
        let (of, onto) = (&state.tasks[task], state.tip.clone());
        let Some(onto) = onto else { return Ok(()) };
        let round = of.rounds + 1;
        let id = state.spec.loop_of(&of.card.id, round);
        let started = TaskStarted {
            task: of.card.id.clone(),
            round,
            id: id.clone(),
            slot: slot.number(),
            onto,
            granted,
            money,
        };
        self.record(PlanEvent::TaskStarted(Box::new(started)))?;
        self.begun.push((task, id, slot));
        Ok(())
    }

    /// Has the loops driven whose start was recorded.
    async fn drive_begun(&mut self) -> Result<(), EngineError> {
        if self.begun.is_empty() {
            return Ok(());
        }
        self.commit().await?;
        for (task, _, slot) in std::mem::take(&mut self.begun) {
            self.host(task, Some(slot));
        }
        Ok(())
    }

    /// Has the loop of a task driven: the one that there is already, or a new one.
    fn host(&mut self, task: usize, slot: Option<Slot>) {
        let state = self.journal.state();
        let Some((_, running)) = state.running().find(|(place, _)| *place == task) else { return };
        let round = Round {
            service: self.service.clone(),
            host: self.host.clone(),
            landing: self.landing.clone(),
            tasks: self.statuses.tasks(),
            spec: state.spec.clone(),
            plan_dir: self.journal.dir().clone(),
            task: state.tasks[task].clone(),
            running: running.clone(),
        };
        self.driven.insert(running.id.clone());
        self.hosted.spawn_local(round::work(round, slot, Rc::clone(&self.quiet)));
    }

    /// Tells the loops to rest, or to end.
    async fn quieten(&mut self, urgency: Urgency, for_good: bool) -> Result<(), EngineError> {
        self.told = Some(urgency);
        self.quiet.set(Some((urgency, for_good)));
        let dirs: Vec<LoopDir> = self.driven.iter().map(|id| self.service.project().loop_dir(id)).collect();
        let told = blocking(move || {
            let tell = |dir: &LoopDir| tell(dir, urgency, for_good);
            // Whoever can be told is told.
            let told: Vec<_> = dirs.iter().filter(|dir| dir.exists()).map(tell).collect();
            told.into_iter().collect::<Result<(), _>>()
        });
        told.await.or_else(|error| self.hinder(&error))
    }

    fn ask_git(
        &mut self,
        job: impl FnOnce(&Landing, &PlanState, &Cancel) -> Result<PlanEvent, GitError> + Send + 'static,
    ) -> Result<(), EngineError> {
        let work = Work::of_git(&self.landing, self.journal.state(), &self.lock, job);
        self.begin_work(work)
    }

    fn verify(&mut self, of: Of) -> Result<(), EngineError> {
        let work = Work::of_gates(Verification {
            landing: self.landing.clone(),
            state: self.journal.state().clone(),
            dir: self.journal.dir().clone(),
            host: self.host.clone(),
            of,
            lock: Arc::clone(&self.lock),
        });
        self.begin_work(work)
    }

    fn begin_work(&mut self, begun: Result<Work, EngineError>) -> Result<(), EngineError> {
        match begun {
            Ok(work) => {
                self.work = Some(work);
                Ok(())
            }
            Err(error) => self.hinder(&error),
        }
    }

    /// The plan cannot go on by itself; what its tasks do is brought to an end, and nothing is lost.
    fn hinder(&mut self, error: &EngineError) -> Result<(), EngineError> {
        self.record(PlanEvent::Hindered { error: chain(error) })
    }

    /// Makes everything so far durable, waits for one input, and handles it.
    async fn take(&mut self, until: Option<Timestamp>) -> Result<(), EngineError> {
        self.commit().await?;
        let left = until.map(|until| Duration::try_from(until.duration_since(now())).unwrap_or_default());
        let timer = Instant::now() + left.unwrap_or(LOOK).min(LOOK);
        let mut rung = [0; 64];
        let input = tokio::select! {
            Some(over) = self.hosted.join_next() => Input::Round(Box::new(outcome(over))),
            _ = self.doorbell.readable() => {
                let _ = self.doorbell.try_read(&mut rung);
                Input::Bell
            }
            wish = self.signals.next() => Input::Signal(wish),
            event = done(&mut self.work) => Input::Work(event.map(Box::new)),
            () = sleep_until(timer) => Input::Time,
        };
        match input {
            Input::Time => Ok(()),
            Input::Bell => self.answer().await,
            Input::Work(event) => {
                self.work = None;
                let Some(event) = event else { return Ok(()) };
                let landed =
                    if let PlanEvent::BatchLanded { commits, .. } = &*event { commits.len() } else { 0 };
                let batch = self.journal.state().batch.iter().flat_map(|batch| &batch.merged);
                let landed: Vec<_> = batch.take(landed).map(|one| one.task.clone()).collect();
                self.tidy(&landed);
                self.record(*event)
            }
            Input::Round(ended) => {
                let state = self.journal.state();
                let of = state.running().find(|(place, _)| state.tasks[*place].card.id == ended.task);
                if let Some(id) = of.map(|(_, running)| running.id.clone()) {
                    self.driven.remove(&id);
                }
                self.record(PlanEvent::TaskEnded(ended))
            }
            Input::Signal(wish) => {
                let again = self.journal.state().pause.is_some();
                let urgency = match wish {
                    Wish::Interrupt if !again => Urgency::AfterIteration,
                    Wish::Interrupt => Urgency::Now,
                    Wish::Pause(urgency) => urgency,
                };
                self.record(PlanEvent::Asked { request: None, ask: Ask::Pause(urgency) })
            }
        }
    }

    /// Takes the branches of tasks away that have landed. Nothing waits for it, but the end.
    fn tidy(&mut self, landed: &[TaskId]) {
        if landed.is_empty() {
            return;
        }
        let state = self.journal.state();
        let tasks: Vec<_> =
            landed.iter().filter_map(|id| Some((id.clone(), state.task(id)?.rounds))).collect();
        let (landing, spec, lock) = (self.landing.clone(), state.spec.clone(), Arc::clone(&self.lock));
        self.tidying.spawn_blocking(move || {
            landing.retire(&spec, &tasks);
            drop(lock);
        });
    }

    /// Turns what waits in the inbox into events, each once; only then the requests are gone.
    async fn answer(&mut self) -> Result<(), EngineError> {
        let dir = self.journal.dir().clone();
        let waiting = blocking(move || inbox::waiting(&dir)).await?;
        for (request, _) in &waiting {
            let state = self.journal.state();
            if !state.has_answered(&request.id) && state.admits(&request.ask).is_ok() {
                self.record(PlanEvent::Asked {
                    request: Some(request.id.clone()),
                    ask: request.ask.clone(),
                })?;
            }
        }
        self.commit().await?;
        blocking(move || waiting.iter().for_each(|(_, path)| inbox::remove(path))).await;
        Ok(())
    }

    /// Brings the task file to where the plan stands. One that cannot be written now is written when it was changed again.
    async fn write_statuses(&mut self) -> Result<(), EngineError> {
        if !std::mem::take(&mut self.is_news) || self.journal.state().tasks.is_empty() {
            return Ok(());
        }
        let changes = self.statuses.changes(self.journal.state());
        if changes.is_empty() {
            return Ok(());
        }
        // What the file says is on disk in the journal first.
        self.commit().await?;
        let mut statuses = self.statuses.clone();
        let (statuses, written) = blocking(move || {
            let written = statuses.write(&changes);
            (statuses, written)
        })
        .await;
        self.statuses = statuses;
        if let Err(error) = written {
            let error = chain(&error);
            if self.journal.state().refused.as_ref() != Some(&error) {
                self.journal.push(PlanEvent::TasksRefused { error }, now())?;
            }
        }
        Ok(())
    }

    /// The plan has stopped: what the file says and the journal are on disk, then the lock is free.
    async fn let_go(mut self) -> Result<PlanState, EngineError> {
        self.write_statuses().await?;
        self.commit().await?;
        let Self { journal, lock, service, mut tidying, .. } = self;
        while tidying.join_next().await.is_some() {}
        let (dir, state) = (journal.dir().clone(), journal.state().clone());
        blocking(move || {
            if state.is_final() {
                service.put_away(&state)?;
            }
            drop((journal, lock));
            // Whoever asked while the lock was still held was told to wait for it: look once more.
            service.answer_plan_without_runner(&dir)?;
            Ok(service.plan(&state.spec.id).unwrap_or(state))
        })
        .await
    }
}

/// Whether a step has something begin that takes its time.
fn is_beginning(step: &PlanStep) -> bool {
    match step {
        PlanStep::Start { .. }
        | PlanStep::Drive { .. }
        | PlanStep::Merge { .. }
        | PlanStep::Verify { .. }
        | PlanStep::Land { .. }
        | PlanStep::CompleteWave { .. }
        | PlanStep::HandOver => true,
        PlanStep::TakeTasks
        | PlanStep::TakeBase
        | PlanStep::Quiet { .. }
        | PlanStep::Abandon
        | PlanStep::Await { .. }
        | PlanStep::Finish(_)
        | PlanStep::Rest => false,
    }
}

/// Asks a loop to rest, or to end, without waiting for its answer.
pub(super) fn tell(dir: &LoopDir, urgency: Urgency, for_good: bool) -> Result<(), EngineError> {
    let ask = if for_good { Ask::Cancel(urgency) } else { Ask::Pause(urgency) };
    let request = Request { id: RequestId::made(now(), rand::rng().random()), ask };
    Ok(request.post(dir)?)
}
