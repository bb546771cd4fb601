//! What a loop is about to commit on, written down before it does: whoever comes after a crash knows its own commit by that.

use std::fs::File;
use std::io::Write;

use refrain_core::git::Oid;

use crate::commit::CommitRequest;
use crate::commit::reconcile_history::Intent;
use crate::error::{GitError, OnPath};
use crate::plumbing::disk::text;

impl CommitRequest<'_> {
    /// Says what this commit will be made on. It is not synced: what is lost with the power was not committed either, or is
    /// told as the agent's.
    pub(crate) fn intend(&self, parent: Option<&Oid>) -> Result<(), GitError> {
        let path = self.index.with_extension("intended");
        let text = format!("{} {}\n", self.iteration, parent.map(Oid::as_str).unwrap_or_default());
        File::create(&path).and_then(|mut file| file.write_all(text.as_bytes())).on("write", &path)
    }

    /// What the commit of this iteration was to be made on; none where nobody came so far.
    pub(crate) fn intended(&self) -> Option<Intent> {
        let text = text(&self.index.with_extension("intended")).ok()?;
        // Half a line is of one who was killed before it committed.
        let (iteration, parent) = text.strip_suffix('\n')?.split_once(' ')?;
        let is_this = iteration.parse() == Ok(self.iteration);
        let parent = if parent.is_empty() { None } else { Some(parent.parse().ok()?) };
        is_this.then_some(Intent { parent })
    }
}
