//! The tree of a candidate: the head's tree with the loop's own changes. Only objects are written.

use camino::Utf8Path;
use refrain_core::git::{Base, Oid, OmittedPath};

use crate::candidate::Bounds;
use crate::candidate::initial_changes::Before;
use crate::candidate::memory::{ReadStamps, StagedWork};
use crate::candidate::stage::stage;
use crate::candidate::submodules::look;
use crate::commit::choice::choose;
use crate::error::GitError;
use crate::plumbing::index::Index;
use crate::repository::Repository;

/// What [`Repository::tree`] builds a tree of, and the index to use.
#[derive(Clone, Copy, Debug)]
pub struct TreeRequest<'a> {
    /// The state before the loop.
    pub base: &'a Base,
    /// The path of a private index; that of a commit will do.
    pub index: &'a Utf8Path,
    pub bounds: Bounds<'a>,
}

impl Repository {
    /// The tree that a commit would have now, and whether changes of the loop are omitted from it.
    pub fn tree(&self, request: TreeRequest<'_>) -> Result<(Oid, bool), GitError> {
        self.tree_and_rest(request).map(|(tree, left_out)| (tree, !left_out.is_empty()))
    }

    pub fn tree_and_rest(&self, request: TreeRequest<'_>) -> Result<(Oid, Vec<OmittedPath>), GitError> {
        let TreeRequest { base, index, bounds } = request;
        let git = self.git().until(bounds.cancel);
        let before = Before::of(base);
        let (is_still, clean) = self.last_look();
        if let Some(head) = clean.filter(|_| is_still && before.is_empty()) {
            return Ok((self.tree_by(git, &head)?, Vec::new()));
        }
        let person = Index::of(self).entries_to(git, index)?;
        let git = git.with_index(index);
        let status = look(self, git)?;
        if before.is_empty()
            && status.entries.is_empty()
            && let Some(head) = &status.head
        {
            let tree = self.tree_by(git, head)?;
            self.verify_index(git, &tree)?;
            return Ok((tree, Vec::new()));
        }
        let looks = ReadStamps::of(self, &status, index).filter(|_| before.is_empty());
        let rules = bounds.rules(base.head.as_ref());
        let mut candidate = choose(self, git, &status, &before, rules)?;
        stage(self, git, status.head.as_ref(), &mut candidate, rules)?;
        let answer = git.text(["write-tree"], &[])?;
        let tree = answer.parse().map_err(|_| GitError::Answer { command: "write-tree", answer })?;
        self.verify_index(git, &tree)?;
        let left_out = candidate.left_out.clone();
        StagedWork::keep(self, (index, person), (status, looks), (candidate, &tree), bounds.largest_file);
        Ok((tree, left_out))
    }
}
