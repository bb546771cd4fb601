//! A plan's runner at work: as for a loop (`dispatcher`), one handler (`inputs`) turns every input into events, the
//! core decides the next step, and `doing` does it. The loops of the tasks run beside it, in the same process.

mod inputs;
mod steps;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use refrain_agents::environment;
use refrain_core::LoopId;
use refrain_core::event::Urgency;
use refrain_core::plan::{PlanEvent, PlanLive, PlanState, PlanStep, TaskEnded, next_step};
use refrain_store::RunnerLock;
use refrain_store::journal::Durability;
use refrain_store::project::pool::Slot;
use tokio::task::{JoinSet, LocalSet};

use super::landing::Landing;
use super::round::fleet::PlanFleet;
use super::round::{Quiet, Turns, reserve, turns};
use super::runner::{PlanRunner, own};
use super::statuses::Statuses;
use super::verify::{self, Of};
use super::work::Work;
use crate::blocking::blocking;
use crate::driver::input::Driver;
use crate::driver::signals::Signals;
use crate::observe::telemetry::TaskExport;
use crate::{EngineError, Host, Service, chain, now};
use refrain_proc::limits::raise_open_files;

pub(super) struct PlanDrive<'a> {
    driver: Driver<'a, PlanState, RunnerLock>,
    service: Service,
    landing: Landing,
    statuses: Statuses,
    driven: BTreeSet<LoopId>,
    hosted: JoinSet<(TaskEnded, Option<Slot>)>,
    /// The worktrees of tasks that are under way, but have no runner now.
    slots: BTreeMap<LoopId, Slot>,
    /// Tasks whose start is recorded, but not yet on disk: several that start together share one sync.
    begun: Vec<(usize, LoopId, Option<Slot>)>,
    /// Work beside everything else: branches are removed, loops that ended are noted in the catalog.
    tidying: JoinSet<()>,
    quiet: Quiet,
    turns: Turns,
    fleet: Option<Arc<PlanFleet>>,
    told: Option<Urgency>,
    work: Option<Work>,
    telling: Option<TaskExport>,
    /// Something happened that may change the task file.
    is_news: bool,
}

impl PlanRunner {
    /// Drives the plan, and the loops of its tasks, until it stops, and returns its state. `ready` is called once the
    /// takeover is on disk.
    /// Errors: [`EngineError`] if it cannot continue: what is on disk is what happened, and `plan resume` continues
    /// from there.
    pub async fn drive(
        self,
        host: &Host,
        signals: Signals,
        ready: impl FnOnce(),
    ) -> Result<PlanState, EngineError> {
        // Each loop needs a handful.
        raise_open_files();
        let live_progress = Arc::clone(&self.live_progress);
        let set = LocalSet::new();
        let driven = set.run_until(async {
            let drive = PlanDrive::begin(self, host, signals, ready).await?;
            Box::pin(drive.run()).await
        });
        let state = driven.await;
        live_progress.update(|snapshot| snapshot.over = true);
        state
    }
}

impl<'a> PlanDrive<'a> {
    /// Takes the plan over, on disk; `ready` is called then.
    pub(super) async fn begin(
        runner: PlanRunner,
        host: &'a Host,
        signals: Signals,
        ready: impl FnOnce(),
    ) -> Result<Self, EngineError> {
        let PlanRunner { journal, lock, service, live_progress, opened, telling, scheduler } = runner;
        let env = environment::of_git(&journal.state().spec.each, host.env.iter().cloned());
        let each = journal.state().spec.each.clone();
        let fleet = match (&journal.state().spec.fleet, scheduler) {
            (None, _) => None,
            (Some(remote), Some(scheduler)) => {
                Some(PlanFleet::new(scheduler, service.clone(), remote.clone()))
            }
            (Some(_), None) => return Err(EngineError::Fleet("this program has no fleet".to_owned())),
        };
        // Before the first runner there was none that could have leftover processes.
        let may_be_left = journal.state().runner.is_some();
        let sweep = move || {
            if may_be_left {
                verify::sweep_leftovers(&each);
            }
        };
        let parts = (Box::new(journal), Arc::new(lock), live_progress);
        let driver = Driver::begin(parts, (host, signals), Some(own()), sweep, ready).await?;
        let statuses = Statuses::new(&service, driver.journal.state());
        let mut drive = Self {
            landing: Landing::new(&service, driver.journal.state(), host, env).knowing(opened),
            statuses,
            driver,
            service,
            driven: BTreeSet::new(),
            hosted: JoinSet::new(),
            slots: BTreeMap::new(),
            begun: Vec::new(),
            tidying: JoinSet::new(),
            quiet: Quiet::default(),
            turns: turns(),
            fleet,
            told: None,
            work: None,
            telling,
            is_news: true,
        };
        let (of, host, state) =
            (drive.service.clone(), drive.driver.host.clone(), drive.driver.journal.state().clone());
        match blocking(move || reserve(&of, &host, &state)).await {
            Ok(slots) => drive.slots = slots,
            Err(error) => drive.hinder(&error)?,
        }
        // Tidying that a killed runner had no time for.
        let line: Vec<_> = drive.driver.journal.state().line.iter().map(|(id, _)| id.clone()).collect();
        drive.tidy(&line);
        Ok(drive)
    }

    /// Drives the plan until it stops.
    pub(super) async fn run(mut self) -> Result<PlanState, EngineError> {
        if let Err(error) = self.go_on().await {
            // The next runner of the plan finds its loops free.
            self.hosted.shutdown().await;
            return Err(error);
        }
        self.release().await
    }

    async fn go_on(&mut self) -> Result<(), EngineError> {
        loop {
            if std::mem::take(&mut self.driver.look_again) {
                self.answer().await?;
            }
            let step = next_step(self.driver.journal.state(), &self.live(), now());
            // Agents and git start first: they work while the rest is written.
            if !matches!(step, PlanStep::Start { .. }) {
                self.drive_begun().await?;
            }
            if self.is_news && !is_beginning(&step) {
                self.write_statuses().await?;
                continue;
            }
            match step {
                PlanStep::TakeTasks => self.take_tasks().await?,
                PlanStep::TakeBase => {
                    let landing = self.landing.clone();
                    let state = self.driver.journal.state().clone();
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
                    // It takes a moment, and the user may meanwhile ask for more.
                    self.work.iter().for_each(Work::abandon);
                    self.take(None).await?;
                }
                PlanStep::Await { until } => self.take(until).await?,
                PlanStep::Finish(end) => self.record(PlanEvent::Ended(end))?,
                PlanStep::Rest => return Ok(()),
            }
        }
    }

    async fn take_tasks(&mut self) -> Result<(), EngineError> {
        let mut statuses = self.statuses.clone();
        let (statuses, event) = blocking(move || {
            let event = statuses.read();
            (statuses, event)
        })
        .await;
        self.statuses = statuses;
        self.record(event)
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
        Ok(self.driver.journal.push(event, now())?)
    }

    /// Everything so far is on disk.
    async fn commit(&mut self) -> Result<(), EngineError> {
        if self.driver.journal.has_pending() {
            self.driver.commit(Durability::Synced).await?;
        }
        Ok(())
    }

    /// The plan cannot continue by itself; what its tasks do is brought to an end, and nothing is lost.
    fn hinder(&mut self, error: &EngineError) -> Result<(), EngineError> {
        self.record(PlanEvent::Hindered { error: chain(error) })
    }

    /// The plan has stopped: what the file says and the journal are on disk, then the lock is free.
    async fn release(mut self) -> Result<PlanState, EngineError> {
        self.write_statuses().await?;
        self.commit().await?;
        // A process that changes the file from now on finds the end on disk, and waits for the lock to have it read.
        if !self.driver.journal.state().is_final() && self.statuses.is_changed() {
            self.take_tasks().await?;
            self.commit().await?;
        }
        let Self { driver, service, landing, mut tidying, .. } = self;
        while tidying.join_next().await.is_some() {}
        let last = move |service: &Service, state: &PlanState| match state.is_final() {
            true => service.put_away(state, &landing),
            false => Ok(()),
        };
        driver.release(service, last).await
    }
}

/// Whether a step starts work that takes time.
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
