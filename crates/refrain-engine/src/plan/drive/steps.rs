//! The steps that take time: loops are started, driven and asked to rest, git and the gates are begun, the task file is
//! written.

use std::rc::Rc;
use std::sync::Arc;

use refrain_core::event::Urgency;
use refrain_core::plan::{PlanEvent, PlanState, TaskId, TaskStarted};
use refrain_git::{Cancel, GitError};
use refrain_store::LoopDir;
use refrain_store::journal::has_left;
use refrain_store::project::pool::Slot;

use super::PlanDrive;
use crate::blocking::blocking;
use crate::plan::landing::Landing;
use crate::plan::requests::tell;
use crate::plan::round::{self, Round, fleet};
use crate::plan::verify::{Of, Verification};
use crate::plan::work::Work;
use crate::service::import_export::mirror_plan;
use crate::{EngineError, chain, now};

impl PlanDrive<'_> {
    /// The record first; the loop once that is synced. The worktree's number is part of the record, and the slot is
    /// held before it.
    pub(super) async fn start(
        &mut self,
        task: usize,
        granted: u32,
        money: Option<refrain_core::agent::Usd>,
    ) -> Result<(), EngineError> {
        let (project, state_home) = (self.service.project().clone(), self.driver.host.state_home.clone());
        let is_sandboxed = self.driver.journal.state().spec.each.sandbox.is_some();
        let slot = match &self.fleet {
            Some(_) => None,
            None => match blocking(move || Slot::take(&project, &state_home, is_sandboxed)).await {
                Ok(slot) => Some(slot),
                Err(error) => return self.hinder(&error.into()),
            },
        };
        let state = self.driver.journal.state();
        let (of, onto) = (&state.tasks[task], state.tip.clone());
        let Some(onto) = onto else { return Ok(()) };
        let round = of.rounds + 1;
        let id = state.spec.loop_of(&of.card.id, round);
        let started = TaskStarted {
            task: of.card.id.clone(),
            round,
            id: id.clone(),
            slot: slot.as_ref().map_or(0, Slot::number),
            onto,
            granted,
            money,
        };
        self.record(PlanEvent::TaskStarted(Box::new(started)))?;
        self.begun.push((task, id, slot));
        Ok(())
    }

    /// Has the loops driven whose start was recorded.
    pub(super) async fn drive_begun(&mut self) -> Result<(), EngineError> {
        if self.begun.is_empty() {
            return Ok(());
        }
        self.commit().await?;
        for (task, _, slot) in std::mem::take(&mut self.begun) {
            self.host(task, slot);
        }
        Ok(())
    }

    /// Drives the loop of a task: the existing one, or a new one.
    pub(super) fn host(&mut self, task: usize, slot: Option<Slot>) {
        let state = self.driver.journal.state();
        let Some((_, running)) = state.running().find(|(place, _)| *place == task) else { return };
        let round = Round {
            service: self.service.clone(),
            host: self.driver.host.clone(),
            landing: self.landing.clone(),
            tasks: self.statuses.tasks(),
            spec: state.spec.clone(),
            started_at: state.started_at,
            telling: self.telling.clone(),
            plan_dir: self.driver.journal.dir().clone(),
            task: state.tasks[task].clone(),
            running: running.clone(),
        };
        let slot = slot.or_else(|| self.slots.remove(&running.id));
        self.driven.insert(running.id.clone());
        let (quiet, turns) = (Rc::clone(&self.quiet), Arc::clone(&self.turns));
        if let Some(fleet) = &self.fleet {
            let work = fleet::work(round, Arc::clone(fleet), quiet, turns);
            self.hosted.spawn_local(async { (work.await, None) });
            return;
        }
        self.hosted.spawn_local(round::work(round, slot, quiet, turns));
    }

    /// Asks the loops to rest, or to end.
    pub(super) async fn quieten(&mut self, urgency: Urgency, for_good: bool) -> Result<(), EngineError> {
        self.told = Some(urgency);
        let state = self.driver.journal.state();
        let by = if for_good { state.cancelled_by } else { state.paused_by }.unwrap_or_default();
        let how = (urgency, for_good, by);
        self.quiet.set(Some(how));
        let dirs: Vec<LoopDir> = self.driven.iter().map(|id| self.service.project().loop_dir(id)).collect();
        let host = self.driver.host.clone();
        // What left hears of it by its round.
        let told = blocking(move || {
            let tell = |dir: &LoopDir| tell(&host, dir, how);
            // One failed request does not keep the others from being sent.
            let told: Vec<_> = dirs.iter().filter(|dir| dir.exists() && !has_left(dir)).map(tell).collect();
            told.into_iter().collect::<Result<(), _>>()
        });
        told.await.or_else(|error| self.hinder(&error))
    }

    pub(super) fn ask_git(
        &mut self,
        job: impl FnOnce(&Landing, &PlanState, &Cancel) -> Result<PlanEvent, GitError> + Send + 'static,
    ) -> Result<(), EngineError> {
        let work = Work::of_git(&self.landing, self.driver.journal.state(), &self.driver.locks, job);
        self.begin_work(work)
    }

    pub(super) fn verify(&mut self, of: Of) -> Result<(), EngineError> {
        let work = Work::of_gates(Verification {
            landing: self.landing.clone(),
            state: self.driver.journal.state().clone(),
            dir: self.driver.journal.dir().clone(),
            host: self.driver.host.clone(),
            of,
            lock: Arc::clone(&self.driver.locks),
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

    /// Takes the branches of tasks away that have landed. Nothing waits for it, but the end.
    pub(super) fn tidy(&mut self, landed: &[TaskId]) {
        if landed.is_empty() {
            return;
        }
        let state = self.driver.journal.state();
        let tasks: Vec<_> =
            landed.iter().filter_map(|id| Some((id.clone(), state.task(id)?.rounds))).collect();
        let (landing, spec, lock) =
            (self.landing.clone(), state.spec.clone(), Arc::clone(&self.driver.locks));
        self.tidying.spawn_blocking(move || {
            landing.retire(&spec, &tasks);
            drop(lock);
        });
    }

    /// Brings the task file to the state of the plan. One that cannot be written now is written after the next change.
    pub(super) async fn write_statuses(&mut self) -> Result<(), EngineError> {
        if !std::mem::take(&mut self.is_news) || self.driver.journal.state().tasks.is_empty() {
            return Ok(());
        }
        if self.driver.journal.state().spec.mirror {
            let state = self.driver.journal.state().clone();
            blocking(move || mirror_plan(&state)).await;
        }
        let changes = self.statuses.changes(self.driver.journal.state());
        if changes.is_empty() {
            return Ok(());
        }
        // The journal is on disk before the file.
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
            if self.driver.journal.state().refused.as_ref() != Some(&error) {
                self.driver.journal.push(PlanEvent::TasksRefused { error }, now())?;
            }
        }
        Ok(())
    }
}
