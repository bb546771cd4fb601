//! The loop of a plan's task that other machines drive, as the plan follows it: what a git remote has of it is copied, and its
//! journal counts if a trusted key signed it.

use std::collections::BTreeMap;

use camino::Utf8Path;
use refrain_core::git::Oid;
use refrain_core::{LoopId, LoopState};
use refrain_files::read_regular;
use refrain_store::LoopDir;
use refrain_store::journal::{self, ForeignJournal};
use refrain_store::project::{mirrors, moving};

use super::disk;
use super::remote_copy::LOOKING;
use crate::move_error::MoveError;
use crate::{EngineError, Service};

/// A loop that left, as the remote has it.
#[derive(Debug)]
pub(crate) struct RemoteTask {
    pub(crate) state: LoopState,
    /// The commit of the loop's reference that this was read from.
    pub(crate) commit: Oid,
    /// The head of the loop's branch.
    pub(crate) head: Option<Oid>,
}

impl Service {
    /// The loops that a remote has, each with the commit of its reference.
    pub(crate) fn heads_at(
        &self,
        (remote, dir): (&str, &Utf8Path),
    ) -> Result<BTreeMap<LoopId, Oid>, EngineError> {
        let (url, listed) = self.repository_of_person()?.loops_at(remote, dir, LOOKING)?;
        let heads = listed.map_err(|refusal| EngineError::Remote { url, refusal })?;
        Ok(heads.into_iter().collect())
    }

    /// Looks at a loop that left. `commit` is where its reference was just seen.
    /// Errors: [`EngineError`]; [`MoveError::Signer`] if a key that the user does not trust signed it.
    pub(crate) fn look_at_remote(&self, id: &LoopId, commit: Option<Oid>) -> Result<RemoteTask, EngineError> {
        let own = self.project.loop_dir(id);
        let state = journal::read_believed::<LoopState>(&own, &self.host.signing())?;
        self.remote_task(&own, &state, commit)
    }

    /// The same of a loop in this folder, whose journal says this.
    pub(super) fn remote_task(
        &self,
        own: &LoopDir,
        state: &LoopState,
        commit: Option<Oid>,
    ) -> Result<RemoteTask, EngineError> {
        let id = &state.spec.id;
        let failed = |why| EngineError::Copy { id: id.clone(), why };
        let missing = || EngineError::NotStopped(id.clone());
        let departure = state.tenure.departure.as_ref().ok_or_else(missing)?;
        let here = read_journal(own)?;
        let repository = self.repository_of(&state.spec)?;
        let at = repository.journal_ref(&departure.to, &self.project.root, id)?;
        self.renew(&at, commit, Some(&here))?;
        let copy = mirrors::project(&self.project).loop_dir(id);
        let raced = || failed(MoveError::Raced(departure.to.clone()));
        let note = mirrors::note(&copy).ok_or_else(raced)?;
        // A loop with which nothing has happened since it left has no journal in its copy.
        let journal = if copy.journal().exists() { read_journal(&copy)? } else { here.clone() };
        // A later loop of this name may be there.
        if !journal.starts_with(&here) {
            return Err(raced());
        }
        let from = LoopDir(departure.to.as_str().into());
        let held = journal::held(&journal, &from, &self.host.signing());
        let ForeignJournal { state, key, is_trusted } =
            held.map_err(|error| failed(MoveError::Journal(error)))?;
        if !is_trusted {
            return Err(failed(MoveError::Signer { url: departure.to.clone(), key }));
        }
        let head = at.held_head(&note.commit)?.or_else(|| Some(departure.head.clone()));
        Ok(RemoteTask { state, commit: note.commit, head })
    }

    /// The service that has the most of a loop without asking a remote: of the last copy, if the loop left.
    pub(crate) fn last_known(&self, id: &LoopId) -> Self {
        let own = self.project.loop_dir(id);
        let copied = || {
            let state = journal::read_as::<LoopState>(&own).ok()?.state;
            self.copied(id, &state.tenure.departure?.to, Some(&read_journal(&own).ok()?))
        };
        let copied = if journal::has_left(&own) { copied() } else { None };
        copied.unwrap_or_else(|| self.clone())
    }

    /// The folder with what is known of a loop.
    pub(crate) fn known_dir(&self, id: &LoopId) -> LoopDir {
        self.last_known(id).project.loop_dir(id)
    }
}

fn read_journal(dir: &LoopDir) -> Result<Vec<u8>, EngineError> {
    let path = dir.journal();
    read_regular(&path, moving::LARGEST).map_err(|source| disk("read", &path, source))
}
