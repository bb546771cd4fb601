//! Discarding a loop: its branch becomes a reference that no list of branches shows, and is removed after 30 days.

use std::fs;

use camino::Utf8PathBuf;
use refrain_core::LoopId;
use refrain_core::git::Oid;
use refrain_files::{Folder, read_regular};
use refrain_git::{GitError, Repository};
use refrain_store::journal;

use crate::git_steps::repository::{marked, pinned};
use crate::{EngineError, Located, Service, now};

/// The folder with a file for each discarded branch, in the project's data.
const NOTES: &str = "discarded";
/// The longest of them, in bytes.
const LONGEST: u64 = 200;
/// How long a discarded branch is kept, in seconds.
const KEPT: i64 = 30 * 24 * 60 * 60;

/// A loop that was discarded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Discarded {
    /// Where the loop is archived.
    pub archived: Utf8PathBuf,
    /// Its branch, and the reference that keeps its commits.
    pub branch: Option<(String, String)>,
}

/// Why a loop was not discarded. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotDiscarded {
    /// A worktree has its branch checked out.
    CheckedOut { branch: String, worktree: Utf8PathBuf },
}

impl Service {
    /// Archives a loop that has stopped, and keeps its own branch as `refs/refrain/discarded/ID` for 30 days. It may be repeated.
    ///
    /// # Errors
    /// [`EngineError`] if there is no such loop, it has not stopped, or git fails.
    pub fn discard(&self, id: &LoopId) -> Result<Result<Discarded, NotDiscarded>, EngineError> {
        let Located { dir, archived: false } = self.locate(id)? else { return Err(self.no_loop(id)) };
        let lock = self.lock_of_ended(id, &dir)?;
        if !self.status(id)?.has_stopped() {
            return Err(EngineError::NotStopped(id.clone()));
        }
        let state = journal::read_signed(&dir, &self.host().signing())?.state;
        let env = marked(&self.host.env, &state.spec);
        let mut kept = None;
        if let Some(branch) = state.spec.git.new_branch() {
            let repository = pinned(Repository::open(&self.project.root, &env)?, &state.spec);
            if let Some(head) = repository.branch_head(branch)? {
                // No folder is excepted: the branch must be checked out nowhere.
                if let Some(worktree) = repository.checked_out(branch, &dir.0)? {
                    return Ok(Err(NotDiscarded::CheckedOut { branch: branch.to_owned(), worktree }));
                }
                let reference = self.keep_discarded(&repository, id, &head)?;
                repository.drop_reference(&format!("refs/heads/{branch}"), &head)?;
                kept = Some((branch.to_owned(), reference));
            }
            self.prune_discarded(&repository)?;
        }
        Ok(Ok(Discarded { archived: self.archive_locked(id, &dir, &lock)?, branch: kept }))
    }

    /// Makes the reference, and notes when.
    fn keep_discarded(
        &self,
        repository: &Repository,
        id: &LoopId,
        head: &Oid,
    ) -> Result<String, EngineError> {
        let taken = |name: &String| -> Result<bool, GitError> {
            let at = repository.reference(&format!("refs/refrain/discarded/{name}"))?;
            Ok(at.is_some_and(|at| at != *head))
        };
        let mut name = id.to_string();
        let mut number = 2;
        // A loop of this name may have been discarded before.
        while taken(&name)? {
            name = format!("{id}-{number}");
            number += 1;
        }
        let notes = Folder::open(&self.project.data).and_then(|data| data.reclaim_or_make(NOTES));
        let note = format!("{} {head}\n", now().as_second());
        notes.and_then(|notes| notes.replace(&name, note.as_bytes())).map_err(|error| {
            EngineError::Process("the note on a discarded branch cannot be written", error)
        })?;
        let reference = format!("refs/refrain/discarded/{name}");
        if !repository.move_reference(&reference, None, head, "refrain discard")? {
            return Err(GitError::ReferenceMoved(reference).into());
        }
        Ok(reference)
    }

    /// Removes what was discarded more than 30 days ago.
    fn prune_discarded(&self, repository: &Repository) -> Result<(), EngineError> {
        let Ok(notes) = self.discarded_notes().read_dir_utf8() else { return Ok(()) };
        for note in notes.flatten() {
            // An agent can write there: nothing is waited for.
            let text = read_regular(note.path(), LONGEST).unwrap_or_default();
            let text = String::from_utf8_lossy(&text);
            let Some((since, head)) = text.trim_end().split_once(' ') else { continue };
            let (Ok(since), Ok(head)) = (since.parse::<i64>(), head.parse::<Oid>()) else { continue };
            if now().as_second().saturating_sub(since) < KEPT {
                continue;
            }
            let reference = format!("refs/refrain/discarded/{}", note.file_name());
            if repository.drop_reference(&reference, &head)? {
                let _ = fs::remove_file(note.path());
            }
        }
        Ok(())
    }

    /// Each says when the branch was discarded, and where it was.
    fn discarded_notes(&self) -> Utf8PathBuf {
        self.project.data.join(NOTES)
    }
}
