//! What has become of the branch of a loop that has one of its own: asked of git, as only git knows it.

use refrain_core::LoopId;
use refrain_git::{MergeRequest, MergeResult};
use refrain_store::journal;

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
            OwnBranch::Empty | OwnBranch::Open | OwnBranch::Discarded(_) | OwnBranch::Gone => None,
        }
    }

    /// None if the loop has no branch of its own here, or that is checked out here.
    pub fn branch_state(&self, id: &LoopId) -> Result<Option<OwnBranch>, EngineError> {
        let dir = self.locate(id)?.dir;
        let state = journal::read_signed(&dir, &self.host().signing())?.state;
        let (spec, git) = (&state.spec, &state.git);
        let Some(branch) = spec.git.new_branch().filter(|_| self.copy.is_none()) else { return Ok(None) };
        let repository = repository::open(&self.project.worktree, &marked(&self.host.env, spec), spec)?;
        let at = repository.branch_head(branch)?;
        if at.is_none() {
            if let Some(reference) = self.discarded(id) {
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
