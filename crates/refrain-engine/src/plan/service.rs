//! The service for plans: start, resume, take over, look at.

use std::sync::Arc;

use refrain_agents::{environment, generic};
use refrain_core::event::FORMAT;
use refrain_core::plan::file::{Change, NewTask};
use refrain_core::plan::{PlanEvent, PlanGrant, PlanSpec, PlanStarted, PlanState, TaskId};
use refrain_core::text::nearest;
use refrain_core::{LoopId, Spec};
use refrain_git::{GitError, Repository};
use refrain_proc::detach::DetachedRunner;
use refrain_store::project::archive;
use refrain_store::tasks::TaskFile;
use refrain_store::{Journal, LoopDir, PlansLock, RunnerLock, journal};

use super::runner::PlanRunner;
use super::statuses::Statuses;
use crate::driver::lifecycle::pin_programs;
use crate::git_steps::repository;
use crate::service::lock_at_rest;
use crate::{ByKind, EngineError, LoopRequest, Service, now};

impl Service {
    /// Starts a plan: from here on it exists, and the value returned has the right to drive it. Where the name was made
    /// up, another is made up until one is free.
    /// Errors: [`EngineError`]; nothing was begun then.
    pub fn start_plan(&self, mut spec: PlanSpec, named: Option<&LoopId>) -> Result<PlanRunner, EngineError> {
        spec.each.trace = self.host.trace();
        spec.each.gate_env.mark = format!("{:016x}", rand::random::<u64>());
        let opened = self.admit_beginning(&mut spec)?;
        let _alone = PlansLock::take(&self.project)?;
        self.check_free(&spec, named)?;
        let tag = spec.tag.clone();
        spec.waves_before = self.waves_of(&tag)?;
        let (journal, lock) = self.with_free_name(named, &tag, |id| {
            spec.id = id.clone();
            spec.each.id = id.clone();
            let started =
                PlanStarted { format: FORMAT, refrain: self.host.version.clone(), spec: spec.clone() };
            self.create(self.project.plan_dir(id), PlanEvent::Started(Box::new(started)))
        })?;
        let opened = Some(opened).filter(|opened| opened.root() == self.project.root);
        Ok(PlanRunner { opened, ..self.runner_of(journal, lock) })
    }

    /// How many waves the plans of a tag completed.
    fn waves_of(&self, tag: &str) -> Result<u32, EngineError> {
        let plans = self.plans()?;
        let plans = plans.iter().filter_map(|id| self.plan(id).ok()).filter(|plan| plan.spec.tag == tag);
        Ok(plans.map(|plan| plan.waves_completed()).max().unwrap_or_default())
    }

    /// The checks of [`Self::start_plan`] before it begins anything; they settle the agent's program in `spec`.
    pub fn admit_plan(&self, spec: &mut PlanSpec, named: Option<&LoopId>) -> Result<(), EngineError> {
        self.admit_beginning(spec)?;
        self.check_free(spec, named)
    }

    fn admit_beginning(&self, spec: &mut PlanSpec) -> Result<Repository, EngineError> {
        if spec.each.depth >= Spec::MAX_DEPTH {
            return Err(EngineError::TooDeep);
        }
        let env = environment::base(&spec.each, self.host.env.iter().cloned());
        generic::locate(&spec.each, &env)?;
        self.check_gates(&spec.each, &spec.each.gates)?;
        pin_programs(&mut spec.each);
        let repository = self.fit_repository(spec)?;
        repository::pin(&mut spec.each, &repository)?;
        Ok(repository.with_pins(spec.each.git.pins.as_deref()))
    }

    /// Refuses tasks and names that another plan has.
    fn check_free(&self, spec: &PlanSpec, named: Option<&LoopId>) -> Result<(), EngineError> {
        self.check_alone(spec, None)?;
        match named.filter(|id| self.is_name_taken(id)) {
            Some(id) => Err(self.name_taken(id.clone())),
            None => Ok(()),
        }
    }

    /// Whether the tasks of a plan can begin in the repository as it is.
    pub fn admit_repository(&self, spec: &PlanSpec) -> Result<(), EngineError> {
        self.fit_repository(spec).map(drop)
    }

    fn fit_repository(&self, spec: &PlanSpec) -> Result<Repository, EngineError> {
        let git_env = environment::of_git(&spec.each, self.host.env.iter().cloned());
        let repository = Repository::open(&self.project.worktree, &git_env)?;
        repository.check_version()?;
        let base = repository.survey()?;
        if base.head.is_none() {
            return Err(GitError::Unborn(self.project.worktree.clone()).into());
        }
        if let Some(operation) = base.operation {
            return Err(EngineError::InProgress { operation, worktree: self.project.worktree.clone() });
        }
        Ok(repository)
    }

    fn runner_of(&self, journal: Journal<PlanState>, lock: RunnerLock) -> PlanRunner {
        PlanRunner {
            journal,
            lock,
            service: self.clone(),
            live_progress: Arc::default(),
            opened: None,
            telling: None,
            scheduler: None,
        }
    }

    /// No other plan may have the same tasks: one that runs, or that crashed and would resume with them.
    fn check_alone(&self, spec: &PlanSpec, own: Option<&LoopId>) -> Result<(), EngineError> {
        for id in self.plans()? {
            let Ok(other) = self.plan(&id) else { continue };
            let is_same = other.spec.tasks == spec.tasks && other.spec.tag == spec.tag;
            if is_same && other.ended.is_none() && Some(&id) != own {
                let is_driven = !RunnerLock::is_free(&self.project.plan_dir(&id));
                return Err(EngineError::TasksTaken { tag: spec.tag.clone(), by: id, is_driven });
            }
        }
        Ok(())
    }

    /// Takes a plan over to resume it, under new totals if they are given.
    /// Errors: [`EngineError`]; the plan is unchanged then.
    pub fn resume_plan(&self, id: &LoopId, grant: &PlanGrant) -> Result<PlanRunner, EngineError> {
        let dir = self.locate_plan(id)?;
        let refused = |why| EngineError::Refused { id: id.clone(), what: LoopRequest::Resume, why };
        let lock = self.runner_lock::<PlanState>(id, &dir)?;
        let state: PlanState = journal::read_as(&dir)?.state;
        state.resume(grant).map_err(refused)?;
        let _alone = PlansLock::take(&self.project)?;
        self.check_alone(&state.spec, Some(id))?;
        let mut journal: Journal<PlanState> = Journal::open(dir, now())?;
        if let Some(event) = journal.state().resume(grant).map_err(refused)? {
            Statuses::around(self, &mut journal, |journal| Ok(journal.push(event, now())?))?;
        }
        Ok(self.runner_of(journal, lock))
    }

    pub(crate) fn take_plan(&self, id: &LoopId, dir: LoopDir) -> Result<PlanRunner, EngineError> {
        let lock = self.runner_lock::<PlanState>(id, &dir)?;
        Ok(self.runner_of(Journal::open(dir, now())?, lock))
    }

    /// Hands a plan to a process of its own that outlives this one; returns once that has taken over.
    /// Errors: [`EngineError`] if it did not; the plan exists and can be resumed.
    pub fn detach_plan(
        &self,
        runner: PlanRunner,
        args: &[String],
    ) -> Result<(PlanState, DetachedRunner), EngineError> {
        let PlanRunner { journal, lock, .. } = runner;
        self.hand_over(&journal, lock, args)
    }

    pub fn plan(&self, id: &LoopId) -> Result<PlanState, EngineError> {
        Ok(journal::read_as(&self.locate_plan(id)?)?.state)
    }

    pub fn is_plan_driven(&self, id: &LoopId) -> Result<bool, EngineError> {
        Ok(!RunnerLock::is_free(&self.locate_plan(id)?))
    }

    pub fn plans(&self) -> Result<Vec<LoopId>, EngineError> {
        let dirs = self.project.plan_dirs()?;
        Ok(dirs.iter().filter_map(|dir| dir.0.file_name()?.parse().ok()).collect())
    }

    /// Says how a task that was used up continues, when the plan is resumed.
    pub fn tune(&self, id: &LoopId, task: &TaskId, words: String) -> Result<PlanState, EngineError> {
        let dir = self.locate_plan(id)?;
        let _lock = self.runner_lock::<PlanState>(id, &dir)?;
        let mut journal: Journal<PlanState> = Journal::open(dir, now())?;
        let tuned = PlanEvent::TaskTuned { task: task.clone(), words };
        Statuses::around(self, &mut journal, |journal| Ok(journal.push(tuned, now())?))?;
        Ok(journal.state().clone())
    }

    /// Sets the status of a task in the plan's file; returns whether the file still had the expected one.
    pub fn set_task(&self, id: &LoopId, change: Change) -> Result<bool, EngineError> {
        let (dir, file) = self.task_file(id)?;
        let written = file.set(&[change])?;
        self.take_tasks(dir)?;
        Ok(written.left.is_empty() && written.missing.is_empty())
    }

    /// Adds a task to the plan's file.
    pub fn add_task(&self, id: &LoopId, task: &NewTask) -> Result<TaskId, EngineError> {
        let (dir, file) = self.task_file(id)?;
        let added = file.add(task)?;
        self.take_tasks(dir)?;
        Ok(added)
    }

    fn task_file(&self, id: &LoopId) -> Result<(LoopDir, TaskFile), EngineError> {
        let dir = self.locate_plan(id)?;
        let state: PlanState = journal::read_as(&dir)?.state;
        let file = TaskFile::at(&self.project, state.spec.tasks.clone(), state.spec.tag)?;
        Ok((dir, file))
    }

    /// Reads the task file into a plan without a runner; a runner sees by itself that the file has changed. One that
    /// has recorded the end does not look again: it is waited for.
    fn take_tasks(&self, dir: LoopDir) -> Result<(), EngineError> {
        let Some(_lock) = lock_at_rest::<PlanState>(&dir)? else { return Ok(()) };
        let mut journal: Journal<PlanState> = Journal::open(dir, now())?;
        Statuses::around(self, &mut journal, |_| Ok(()))
    }

    /// The folder of a plan, in the archive too.
    pub fn locate_plan(&self, id: &LoopId) -> Result<LoopDir, EngineError> {
        if let Some(ByKind::Plan(dir)) = self.archived.get(id) {
            return Ok(dir.clone());
        }
        let dir = self.project.plan_dir(id);
        if dir.exists() {
            return Ok(dir);
        }
        if let Some(archived) = archive::find_plan(&self.project, id) {
            return Ok(archived);
        }
        if self.locate(id).is_ok() {
            return Err(EngineError::IsLoop(id.clone()));
        }
        let plans = self.plans()?;
        let nearest = nearest(id.as_str(), plans.iter().map(LoopId::as_str));
        let nearest = nearest.and_then(|name| name.parse().ok());
        Err(EngineError::NoPlan { id: id.clone(), project: self.project.root.clone(), nearest })
    }
}
