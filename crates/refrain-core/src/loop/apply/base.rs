//! The state of the repository before the loop: taken at its start, and again if a person may have worked while it was
//! stopped.

use std::collections::HashSet;

use super::super::state::{LoopState, Phase};
use crate::git::{Base, Dirty, RepoPath};

impl LoopState {
    pub(super) fn lacks_base(&self) -> bool {
        self.is_driven()
            && self.spec.git.needs_base()
            && (self.git.base.is_none() || self.git.stale)
            && self.git.refused.is_none()
    }

    pub(super) fn take_base(&mut self, base: &Base) {
        let moved = self.git.head != base.head;
        self.git.head.clone_from(&base.head);
        let new = base.clone();
        let commits = self.spec.git.workflow.commits();
        let is_all_new = commits && (self.attempts.is_empty() || self.has_committed_all());
        self.git.base = Some(match self.git.base.take() {
            None => {
                self.git.began.clone_from(&new.head);
                if self.spec.git.checkout.is_own_worktree() {
                    self.git.prepared.clone_from(&new.dirty);
                }
                new
            }
            Some(before) => {
                // Else it may be the agent's doing: what was there at the start stays what counts.
                let (protected, programs, hidden) = match self.is_untouched() {
                    true => (new.protected, new.programs, new.hidden),
                    false => (before.protected, before.programs, before.hidden),
                };
                // What it could not commit is still its own; a person's part cannot be told from it.
                let dirty =
                    if is_all_new { self.dirty_again(new.dirty, &before.dirty) } else { before.dirty };
                // The branch that it began on stays the one that it commits to.
                let Base { head, operation, .. } = new;
                Base { head, operation, branch: before.branch, dirty, protected, programs, hidden }
            }
        });
        (self.git.stale, self.git.unwatched) = (false, false);
        self.publish_from_here(moved);
    }

    /// The user's changes now. A file with changes of both was omitted from the commit and keeps its stamp of the
    /// start, which shows that the loop changed it.
    fn dirty_again(&self, now: Vec<Dirty>, before: &[Dirty]) -> Vec<Dirty> {
        let left_out = self.git.last.iter().flat_map(|last| &last.left_out);
        let left_out: HashSet<_> = left_out.map(|left| &left.path).collect();
        let older = |path: &RepoPath| {
            before.iter().find(|dirty| dirty.path == *path && left_out.contains(path)).cloned()
        };
        now.into_iter().map(|dirty| older(&dirty.path).unwrap_or(dirty)).collect()
    }

    /// Whether the protected files may have changed by now, and only by a person.
    pub(super) fn may_be_renewed(&self) -> bool {
        let base = self.git.base.as_ref();
        let is_any = base.is_some_and(|base| base.protected.is_some() || !base.programs.is_empty());
        is_any && self.is_untouched() && matches!(self.phase, Phase::Idle { uncommitted: false, .. })
    }

    /// Whether all that agents did so far was looked at, and nothing protected was touched.
    fn is_untouched(&self) -> bool {
        let last = self.last_charged().map(|last| last.proof.as_ref());
        last.is_none_or(|proof| proof.is_some_and(|proof| proof.candidate.touched.is_empty()))
    }
}
