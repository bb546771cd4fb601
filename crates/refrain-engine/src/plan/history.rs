//! A look back at a plan: its events, the loops of its tasks, and whether its journal is as it was written.

use std::collections::HashSet;

use refrain_agents::environment;
use refrain_core::git::Oid;
use refrain_core::plan::{PlanEnd, PlanEvent, PlanState, Stage, TaskStarted, TaskState};
use refrain_core::view::report::{Check, Subject, Verdict};
use refrain_core::{LoopId, Record};
use refrain_git::Repository;
use refrain_store::{JournalError, journal};

use super::landing::Landing;
use crate::git_steps::repository;
use crate::{EngineError, Service, chain};

impl Service {
    pub(crate) fn plan_events(&self, id: &LoopId) -> Result<Vec<Record<PlanEvent>>, EngineError> {
        Ok(journal::records_as::<PlanState>(&self.locate_plan(id)?)?)
    }

    /// The rounds of a plan's tasks, the first first: each has a loop, unless it was never begun or is gone since.
    pub fn plan_rounds(&self, id: &LoopId) -> Result<Vec<TaskStarted>, EngineError> {
        let events = self.plan_events(id)?.into_iter().map(|record| record.event);
        let started = events.filter_map(|event| {
            let PlanEvent::TaskStarted(started) = event else { return None };
            self.locate(&started.id).is_ok().then_some(*started)
        });
        Ok(started.collect())
    }

    /// The branches with leftover work of a plan's tasks: those that they work on, and those on which failed work, and
    /// content of a pool's worktree, was saved. A repository that cannot be asked has none.
    pub(super) fn plan_branches(&self, state: &PlanState) -> Vec<String> {
        let id = &state.spec.id;
        let own = format!("refrain/{id}");
        let (failed, saved) = (format!("wip/ralph-fail-{id}-*"), format!("wip/slot-{id}-*"));
        let env = environment::of_git(&state.spec.each, self.host().env.iter().cloned());
        let Some(tip) = &state.tip else { return Vec::new() };
        let found = repository::open(&self.project().root, &env, &state.spec.each)
            .and_then(|repository| repository.branches(&[&own, &failed, &saved], tip));
        // Landed work is in other commits, and a branch that is still at its task's start holds nothing.
        let is_empty = |task: &TaskState| match &task.stage {
            Stage::Landed { .. } => true,
            Stage::Stopped(_) | Stage::Out | Stage::Waiting(_) => {
                task.head.is_none() || task.head == task.onto
            }
            Stage::Running(_) | Stage::Proven { .. } => false,
        };
        let empty: HashSet<String> = state
            .tasks
            .iter()
            .filter(|task| is_empty(task))
            .flat_map(|task| state.spec.branches(&task.card.id, task.rounds))
            .collect();
        found.unwrap_or_default().into_iter().filter(|branch| !empty.contains(branch)).collect()
    }

    /// The plans that are over and still have branches of tasks that landed, with these branches: their runner was killed
    /// before it removed them.
    pub(crate) fn uncleared_plans(
        &self,
        repository: &Repository,
    ) -> Result<Vec<(PlanState, Vec<String>)>, EngineError> {
        let mut all = Vec::new();
        for dir in self.project().plan_dirs()? {
            let Ok(state) = journal::read_as::<PlanState>(&dir).map(|read| read.state) else { continue };
            if !state.is_final() {
                continue;
            }
            let landed = state.tasks.iter().filter(|task| matches!(task.stage, Stage::Landed { .. }));
            let names = landed.flat_map(|task| state.spec.branches(&task.card.id, task.rounds));
            let found: Vec<_> = repository.branch_heads(names)?.into_keys().collect();
            if !found.is_empty() {
                all.push((state, found));
            }
        }
        Ok(all)
    }

    pub(crate) fn clear_plan(&self, state: &PlanState) {
        let env = environment::of_git(&state.spec.each, self.host().env.iter().cloned());
        Landing::new(self, state, self.host(), env).clear(state);
    }

    /// Whether the commits of a completed plan are on a branch.
    fn check_commits(&self, state: &PlanState) -> Vec<Check> {
        if state.ended.is_none_or(|ended| ended.end != PlanEnd::Completed) {
            return Vec::new();
        }
        let of_tasks = state.tasks.iter().filter_map(|task| match &task.stage {
            Stage::Landed { commit } => commit.clone(),
            Stage::Out | Stage::Waiting(_) | Stage::Running(_) | Stage::Proven { .. } | Stage::Stopped(_) => {
                None
            }
        });
        let of_waves = state.waves.iter().filter_map(|wave| wave.completed.clone().flatten());
        let commits: Vec<Oid> = of_tasks.chain(of_waves).collect();
        let env = environment::of_git(&state.spec.each, self.host().env.iter().cloned());
        let lost = repository::open(&self.project().root, &env, &state.spec.each)
            .and_then(|repository| repository.unreachable(&commits));
        let check = |commit: &Oid| match &lost {
            Ok(lost) if lost.contains(commit) => {
                Check::differs(Subject::Commit, commit, "it is on no branch")
            }
            Ok(_) => Check::agrees(Subject::Commit, commit),
            Err(error) => Check::unchecked(Subject::Commit, commit, chain(error)),
        };
        commits.iter().map(check).collect()
    }

    /// Checks every byte of a plan's journal, whether its commits are on a branch, and each loop of its tasks: the plan's verdict first.
    /// Errors: [`EngineError`] if there is no such plan, or a journal cannot be read; one that is damaged is a verdict.
    pub(crate) fn verify_plan(&self, id: &LoopId) -> Result<Vec<Verdict>, EngineError> {
        let dir = self.locate_plan(id)?;
        let own = match journal::records_as::<PlanState>(&dir) {
            Ok(records) => {
                let snapshot = journal::read_as::<PlanState>(&dir)?;
                let checks = self.check_commits(&snapshot.state);
                Verdict::new(id.clone(), records.len() as u64, snapshot.torn, checks)
            }
            Err(error @ JournalError::Damaged { line, .. }) => {
                return Ok(vec![Verdict::damaged(id.clone(), line.saturating_sub(1), error.to_string())]);
            }
            Err(error) => return Err(error.into()),
        };
        let rounds = self.plan_rounds(id)?;
        let loops = rounds.iter().map(|round| self.last_known(&round.id).verify_loop(&round.id, None));
        std::iter::once(Ok(own)).chain(loops).collect()
    }
}
