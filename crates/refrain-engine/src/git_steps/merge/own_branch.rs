//! What has become of the branch of a loop that has one of its own: asked of git, as only git knows it.

use std::collections::BTreeMap;
use std::thread;

use refrain_core::LoopId;
use refrain_core::view::{Kind, StatusWord};
use refrain_git::{MergeRequest, MergeResult};
use refrain_store::catalog::Brief;
use refrain_store::journal;
use serde::Deserialize;

use crate::git_steps::differences::Index;
use crate::git_steps::repository::{self, marked};
use crate::{EngineError, ListEntry, Service};

/// How many completed loops of a list are looked at, the latest first: each costs some runs of git.
const MOST_LOOKED_AT: usize = 200;
/// How many are looked at together.
const AT_ONCE: usize = 8;

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

/// The part of a status object that says whether its work can be merged.
#[derive(Deserialize)]
struct Commits {
    branch: Option<String>,
    commits: Vec<String>,
}

impl Service {
    /// The branch that is checked out here, or HEAD, if it has all work of the own branch of a loop that has stopped.
    pub fn merged_into(&self, id: &LoopId) -> Option<String> {
        match self.branch_state(id).ok().flatten()? {
            OwnBranch::Merged { into, .. } => Some(into.unwrap_or_else(|| "HEAD".to_owned())),
            OwnBranch::Empty | OwnBranch::Open | OwnBranch::Discarded(_) | OwnBranch::Gone => None,
        }
    }

    /// Marks the completed loops of a list whose work is merged.
    pub fn mark_merged(&self, rows: &mut [ListEntry]) {
        let mut completed: Vec<&mut Brief> = rows.iter_mut().filter_map(completed_loop).collect();
        completed.sort_by_key(|brief| std::cmp::Reverse(brief.updated_at));
        completed.truncate(MOST_LOOKED_AT);
        let mut services = BTreeMap::new();
        for brief in &completed {
            let open = || match *brief.project == *self.project.root.as_str() {
                true => Some(self.clone()),
                false => Self::open(brief.project.as_ref().into(), self.host.clone()).ok(),
            };
            services.entry(brief.project.clone()).or_insert_with(open);
        }
        let mut pairs: Vec<(&Self, &mut Brief)> = completed
            .into_iter()
            .filter_map(|brief| Some((services.get(&brief.project)?.as_ref()?, brief)))
            .collect();
        for of_project in pairs.chunk_by_mut(|(one, _), (other, _)| one.project.root == other.project.root) {
            let mut lines: Vec<(&Self, &mut Brief)> =
                of_project.iter_mut().map(|(service, brief)| (*service, &mut **brief)).collect();
            // Without an object a loop is not marked.
            let _ = Self::add_objects(&mut lines);
        }
        pairs.retain(|(_, brief)| has_commits_on_a_branch(brief));
        let chunk = pairs.len().div_ceil(AT_ONCE).max(1);
        thread::scope(|scope| {
            for part in pairs.chunks_mut(chunk) {
                scope.spawn(|| {
                    for (service, brief) in part {
                        brief.mark_merged(service.merged_into(&brief.id));
                    }
                });
            }
        });
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

fn completed_loop(row: &mut ListEntry) -> Option<&mut Brief> {
    match row {
        ListEntry::Loop(brief)
            if brief.status == StatusWord::Completed && brief.copy.is_none() && brief.kind != Kind::Plan =>
        {
            Some(brief)
        }
        ListEntry::Loop(_) | ListEntry::Damaged(_) => None,
    }
}

fn has_commits_on_a_branch(brief: &Brief) -> bool {
    let object = brief.object.as_deref().and_then(|object| serde_json::from_str::<Commits>(object).ok());
    object.is_some_and(|found| found.branch.is_some() && !found.commits.is_empty())
}
