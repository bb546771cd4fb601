//! What has become of the branch of a loop that has one of its own: asked of git, as only git knows it.

use refrain_core::git::Oid;
use refrain_core::plan::{Stage, TaskId, TaskRef};
use refrain_core::{LoopId, LoopState};
use refrain_git::{MergeRequest, MergeResult};
use refrain_store::{LoopDir, journal};

use crate::git_steps::differences::Index;
use crate::git_steps::repository::{self, marked};
use crate::{EngineError, Service};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnBranch {
    /// It has no commit of its own, or had none when it was removed.
    Empty,
    /// It has work that what is checked out here does not have.
    Open,
    /// What is checked out here has all its work.
    Merged { into: Option<String>, is_removed: bool },
    /// It is of a task that has landed with this plan, which removed it.
    Landed(LoopId),
    /// It was discarded; this reference keeps its work.
    Discarded(String),
    /// It was removed, and nothing that is checked out here has its work.
    Gone,
}

impl Service {
    /// The branch that is checked out here, or HEAD, if it has all work of the own branch of a loop that has stopped.
    pub fn merged_into(&self, id: &LoopId) -> Option<String> {
        match self.branch_state(id).ok().flatten()? {
            OwnBranch::Merged { into, .. } => Some(into.unwrap_or_else(|| "HEAD".to_owned())),
            OwnBranch::Empty
            | OwnBranch::Open
            | OwnBranch::Landed(_)
            | OwnBranch::Discarded(_)
            | OwnBranch::Gone => None,
        }
    }

    /// What has become of the own branch of this loop, as [`Service::branch_state_of`] finds it.
    pub fn branch_state(&self, id: &LoopId) -> Result<Option<OwnBranch>, EngineError> {
        let dir = self.locate(id)?.dir;
        let state = journal::read_signed(&dir, &self.host().signing())?.state;
        self.branch_state_of(&dir, &state)
    }

    /// None if the loop has no branch of its own here, or that is checked out here. That of a task is its plan's.
    pub fn branch_state_of(
        &self,
        dir: &LoopDir,
        state: &LoopState,
    ) -> Result<Option<OwnBranch>, EngineError> {
        let (spec, git) = (&state.spec, &state.git);
        if let Some(task) = self.task_branch(state).filter(|_| self.copy.is_none()) {
            let repository = repository::open(&self.project.worktree, &marked(&self.host.env, spec), spec)?;
            return Ok(match repository.branch_head(&task.branch)? {
                None if task.landed.is_some() => Some(OwnBranch::Landed(task.plan)),
                Some(_) | None => None,
            });
        }
        let Some(branch) = spec.git.new_branch().filter(|_| self.copy.is_none()) else { return Ok(None) };
        let repository = repository::open(&self.project.worktree, &marked(&self.host.env, spec), spec)?;
        let at = repository.branch_head(branch)?;
        if at.is_none() {
            if let Some(reference) = self.discarded(&spec.id) {
                return Ok(Some(OwnBranch::Discarded(reference)));
            }
            if state.has_lost_branch() {
                return Ok(Some(OwnBranch::Empty));
            }
        }
        let is_removed = at.is_none();
        let last = || git.head.clone().filter(|head| repository.tree_of(head).is_ok());
        let Some(work) = at.or_else(last) else { return Ok(Some(OwnBranch::Gone)) };
        if git.began.as_ref().is_none_or(|began| *began == work) {
            return Ok(Some(OwnBranch::Empty));
        }
        let (ours, into) = repository.begin_of_plan()?;
        if into.as_deref() == Some(branch) {
            return Ok(None);
        }
        let base = repository.stands_on(&ours, &work, None)?;
        let is_merged = base == work || {
            // A squashed merge has the work without its commits.
            let index = Index::beside(&dir.index());
            let request = MergeRequest {
                base: &base,
                tip: &ours,
                work: &work,
                except: &[],
                index: &index.0,
                cancel: None,
            };
            let ours = repository.tree_of(&ours)?;
            matches!(repository.merge(request)?, MergeResult::Clean { tree } if tree == ours)
        };
        Ok(Some(match (is_merged, is_removed) {
            (true, _) => OwnBranch::Merged { into, is_removed },
            (false, true) => OwnBranch::Gone,
            (false, false) => OwnBranch::Open,
        }))
    }
}

/// The branch that a plan made for a round of a task.
pub(crate) struct TaskBranch {
    pub(crate) plan: LoopId,
    pub(crate) task: TaskId,
    pub(crate) branch: String,
    /// The commit of the task, if it has landed; the inner one is none if nothing was changed.
    pub(crate) landed: Option<Option<Oid>>,
}

impl Service {
    /// None if it is not the loop of a task, or its plan cannot be read.
    pub(crate) fn task_branch(&self, state: &LoopState) -> Option<TaskBranch> {
        let TaskRef { plan, id, round, .. } = state.spec.task.as_ref()?;
        let of = self.plan(plan).ok()?;
        let landed = match &of.task(id)?.stage {
            Stage::Landed { commit } => Some(commit.clone()),
            Stage::Out | Stage::Waiting(_) | Stage::Running(_) | Stage::Proven { .. } | Stage::Stopped(_) => {
                None
            }
        };
        Some(TaskBranch { plan: plan.clone(), task: id.clone(), branch: of.spec.branch(id, *round), landed })
    }
}
