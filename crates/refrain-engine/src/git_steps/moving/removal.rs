//! The references at git remotes of loops that left this machine and are over, and their removal. It waits until the end of the
//! loop is known here, from a journal that a trusted key signed, and its work is safe without them.

use std::collections::BTreeMap;

use refrain_core::git::Oid;
use refrain_core::plan::PlanState;
use refrain_core::{LoopId, LoopState};
use refrain_git::{JournalRef, Repository, Swap};
use refrain_store::LoopDir;
use refrain_store::journal;
use refrain_store::project::{archive, mirrors};

use super::remote_copy::LOOKING;
use super::remote_task::RemoteTask;
use crate::git_steps::discard_refs::KEPT;
use crate::move_error::MoveError;
use crate::{EngineError, Service, now};

/// A loop that is over, and whose references at the remote nothing needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OverAtRemote {
    id: LoopId,
    url: String,
    /// Where its reference is.
    commit: Oid,
    /// What `refrain gc` calls it.
    pub(crate) name: String,
}

impl Service {
    /// The loops that left this machine and are over, as far as their remotes answer; or the one with this name. Each remote is
    /// asked once, and what is new there is copied.
    pub(crate) fn over_at_remotes(
        &self,
        repository: &Repository,
        only: Option<&str>,
    ) -> Result<Vec<OverAtRemote>, EngineError> {
        let mut remotes: BTreeMap<String, Option<BTreeMap<LoopId, Oid>>> = BTreeMap::new();
        let mut all = Vec::new();
        let archived = archive::dirs_before(&self.project, i64::MAX);
        for own in self.project.loop_dirs()?.into_iter().chain(archived).filter(journal::has_left) {
            let Ok(state) = journal::read_believed::<LoopState>(&own, &self.host.signing()) else { continue };
            let Some(departure) = &state.tenure.departure else { continue };
            let (url, root) = (&departure.to, &self.project.root);
            let name = format!("refs/refrain/{} at {url}", state.spec.id);
            if only.is_some_and(|only| only != name) {
                continue;
            }
            let heads = remotes.entry(url.clone()).or_insert_with(|| self.heads_at((url, root)).ok());
            let Some(commit) = heads.as_ref().and_then(|heads| heads.get(&state.spec.id)) else { continue };
            // What cannot be read there is not removed.
            if let Ok(true) = self.is_over_at_remote(repository, (&own, &state), commit) {
                let (id, url, commit) = (state.spec.id.clone(), url.clone(), commit.clone());
                all.push(OverAtRemote { id, url, commit, name });
            }
        }
        Ok(all)
    }

    fn is_over_at_remote(
        &self,
        repository: &Repository,
        (own, here): (&LoopDir, &LoopState),
        commit: &Oid,
    ) -> Result<bool, EngineError> {
        let RemoteTask { state, head, .. } = self.remote_task(own, here, Some(commit.clone()))?;
        if !state.is_final() || self.has_open_plan_of(&state)? {
            return Ok(false);
        }
        let Some(head) = head else { return Ok(true) };
        if repository.keeps(&head)? {
            return Ok(true);
        }
        let since = state.ended.map_or(i64::MAX, |ended| ended.at.as_second());
        let (Some(departure), Some(branch)) = (&here.tenure.departure, state.spec.git.new_branch()) else {
            return Ok(false);
        };
        // A plan that is over has decided about the work of its tasks.
        if state.spec.task.is_none() && now().as_second().saturating_sub(since) < KEPT {
            return Ok(false);
        }
        // The branch there has the work.
        let at = self.at_remote(repository, &state.spec.id, &departure.to)?;
        Ok(at.places(branch)?.is_ok_and(|there| there.branch == Some(head)))
    }

    /// Whether a plan that could continue has the loop as one of its tasks: it asks the remote for the result.
    fn has_open_plan_of(&self, state: &LoopState) -> Result<bool, EngineError> {
        let Some(task) = &state.spec.task else { return Ok(false) };
        let dir = self.project.plan_dir(&task.plan);
        Ok(dir.exists() && !journal::read_as::<PlanState>(&dir)?.state.lifecycle.is_final())
    }

    /// Removes the references; returns why they are kept.
    pub(crate) fn remove_at_remote(
        &self,
        repository: &Repository,
        over: &OverAtRemote,
    ) -> Result<Option<String>, EngineError> {
        let at = self.at_remote(repository, &over.id, &over.url)?;
        match at.remove(&over.commit)? {
            Swap::Done => {}
            Swap::Stale => return Ok(Some(format!("{} has moved", over.name))),
            Swap::Refused(refusal) | Swap::Unknown(refusal) => {
                let why = MoveError::Remote { url: over.url.clone(), refusal };
                return Err(EngineError::Copy { id: over.id.clone(), why });
            }
        }
        let dir = mirrors::project(&self.project).loop_dir(&over.id);
        if let Some(note) = mirrors::note(&dir) {
            mirrors::write_note(&dir, &mirrors::CopyNote { is_last: true, ..note })?;
        }
        Ok(None)
    }

    fn at_remote<'a>(
        &self,
        repository: &'a Repository,
        id: &'a LoopId,
        url: &str,
    ) -> Result<JournalRef<'a>, EngineError> {
        Ok(repository.journal_ref(url, &self.project.root, id)?.within(LOOKING, super::remote_copy::BRINGING))
    }
}
