//! The references that keep discarded work: no list of branches shows them, and they are removed after 30 days. A note in the
//! project's data says what each one keeps.

use std::cmp::Reverse;
use std::fs;

use camino::Utf8PathBuf;
use jiff::Timestamp;
use refrain_core::LoopId;
use refrain_core::git::Oid;
use refrain_core::plan::PlanState;
use refrain_files::{Folder, read_regular};
use refrain_git::{GitError, Repository};
use refrain_store::journal;

use crate::{ByKind, EngineError, Service, now};

/// What the names of their references begin with.
const PREFIX: &str = "refs/refrain/discarded/";
/// The folder of the notes, in the project's data.
const NOTES: &str = "discarded";
/// The longest note, in bytes.
const LONGEST: u64 = 400;
/// How long discarded work is kept, in seconds.
pub(crate) const KEPT: i64 = 30 * 24 * 60 * 60;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DiscardedRef {
    pub(crate) reference: String,
    pub(crate) head: Oid,
    /// The loop or plan; none in a note of 0.1.0.
    pub(crate) id: Option<LoopId>,
    /// When that was started, as several have one name; none in a note of an earlier version.
    started: Option<Timestamp>,
    /// When it was discarded, in seconds.
    pub(crate) since: i64,
    note: Utf8PathBuf,
}

impl DiscardedRef {
    pub(crate) fn is_old(&self, now: i64) -> bool {
        now.saturating_sub(self.since) >= KEPT
    }
}

impl Service {
    /// Makes the reference, and notes when. Returns its name.
    pub(crate) fn keep_discarded(
        &self,
        repository: &Repository,
        id: &LoopId,
        head: &Oid,
    ) -> Result<String, EngineError> {
        let is_taken = |name: &String| -> Result<bool, GitError> {
            let at = repository.reference(&format!("{PREFIX}{name}"))?;
            Ok(at.is_some_and(|at| at != *head))
        };
        let mut name = id.to_string();
        let mut number = 2;
        // A loop of this name may have been discarded before.
        while is_taken(&name)? {
            name = format!("{id}-{number}");
            number += 1;
        }
        let started = self.started(id).map(|at| format!(" {at}")).unwrap_or_default();
        let note = format!("{} {head} {id}{started}\n", now().as_second());
        let written = Folder::open(&self.project.data).and_then(|data| {
            data.reclaim_or_make(NOTES)?.replace(&name, note.as_bytes())?;
            data.sync()
        });
        written.map_err(|error| {
            EngineError::Process("the note on a discarded branch cannot be written", error)
        })?;
        let reference = format!("{PREFIX}{name}");
        if !repository.move_reference(&reference, None, head, "refrain discard")? {
            return Err(GitError::ReferenceMoved(reference).into());
        }
        Ok(reference)
    }

    pub(crate) fn discarded_refs(&self) -> Vec<DiscardedRef> {
        let Ok(notes) = self.project.data.join(NOTES).read_dir_utf8() else { return Vec::new() };
        let read = |note: Utf8PathBuf| {
            // An agent can write there: nothing is waited for.
            let text = String::from_utf8(read_regular(&note, LONGEST).ok()?).ok()?;
            let mut words = text.split_whitespace();
            let (since, head) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
            let id = words.next().and_then(|id| id.parse().ok());
            let started = words.next().and_then(|at| at.parse().ok());
            let name: LoopId = note.file_name()?.parse().ok()?;
            Some(DiscardedRef { reference: format!("{PREFIX}{name}"), head, id, started, since, note })
        };
        let mut all: Vec<_> = notes.flatten().filter_map(|note| read(note.path().to_owned())).collect();
        all.sort_by_key(|it| Reverse(it.since));
        all
    }

    /// The reference that keeps the work of a discarded loop or plan, while there is one.
    pub fn discarded(&self, id: &LoopId) -> Option<String> {
        let mut all = self.discarded_refs();
        all.retain(|it| match &it.id {
            Some(of) => of == id,
            None => it.reference.strip_prefix(PREFIX) == Some(id.as_str()),
        });
        let started = if all.is_empty() { None } else { self.started(id) };
        let is_its = |it: &DiscardedRef| match (it.started, started) {
            (Some(of), Some(started)) => of == started,
            (None, Some(started)) => it.since >= started.as_second(),
            (_, None) => true,
        };
        let found = all.into_iter().find(is_its)?;
        let repository = Repository::open(&self.project.root, &self.host.env).ok()?;
        repository.reference(&found.reference).ok()??;
        Some(found.reference)
    }

    fn started(&self, id: &LoopId) -> Option<Timestamp> {
        match self.find(id).ok()? {
            ByKind::Loop(found) => Some(journal::read(&found.dir).ok()?.state.started_at),
            ByKind::Plan(dir) => Some(journal::read_as::<PlanState>(&dir).ok()?.state.started_at),
        }
    }

    /// Removes a reference with its note; whether it was still where the note says.
    pub(crate) fn drop_discarded(
        &self,
        repository: &Repository,
        discarded: &DiscardedRef,
    ) -> Result<bool, GitError> {
        let is_gone = repository.drop_reference(&discarded.reference, &discarded.head)?;
        if is_gone {
            let _ = fs::remove_file(&discarded.note);
        }
        Ok(is_gone)
    }

    /// Removes what was discarded more than 30 days ago.
    pub(crate) fn prune_discarded(&self, repository: &Repository) -> Result<(), GitError> {
        let now = now().as_second();
        for old in self.discarded_refs().iter().filter(|it| it.is_old(now)) {
            self.drop_discarded(repository, old)?;
        }
        Ok(())
    }
}
