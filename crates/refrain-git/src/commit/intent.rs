//! Records the parent of a planned commit before it is made: after a crash, the loop recognizes its own commit by
//! that.

use std::fs::File;
use std::io::Write;

use refrain_core::git::Oid;

use crate::commit::CommitRequest;
use crate::commit::reconcile_history::Intent;
use crate::error::{GitError, OnPath};
use crate::plumbing::disk::text;

impl CommitRequest<'_> {
    /// Records what this commit will be made on. It is not synced: after a power failure the commit is lost too, or
    /// it is reported as the agent's.
    pub(crate) fn intend(&self, parent: Option<&Oid>) -> Result<(), GitError> {
        let path = self.index.with_extension("intended");
        let text = format!("{} {}\n", self.iteration, parent.map(Oid::as_str).unwrap_or_default());
        File::create(&path).and_then(|mut file| file.write_all(text.as_bytes())).on("write", &path)
    }

    /// The intended parent of this iteration's commit; none if no commit was started.
    pub(crate) fn intended(&self) -> Option<Intent> {
        let text = text(&self.index.with_extension("intended")).ok()?;
        // An incomplete line means that the writer was killed before it committed.
        let (iteration, parent) = text.strip_suffix('\n')?.split_once(' ')?;
        let is_this = iteration.parse() == Ok(self.iteration);
        let parent = if parent.is_empty() { None } else { Some(parent.parse().ok()?) };
        is_this.then_some(Intent { parent })
    }
}
