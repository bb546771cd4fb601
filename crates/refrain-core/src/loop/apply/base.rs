//! What was there before the loop: taken at its start, and once more where a person may have worked while it stood still.

use super::super::state::{LoopState, Phase};
use crate::git::{Base, Workflow};

impl LoopState {
    pub(super) fn take_base(&mut self, base: &Base) {
        self.git.head.clone_from(&base.head);
        let mut taken = base.clone();
        if let Some(before) = self.git.base.take() {
            if !self.is_untouched() {
                // It may be the agent's doing: what was there at the start stays what counts.
                taken.protected.clone_from(&before.protected);
                taken.programs.clone_from(&before.programs);
            }
            taken = match self.spec.git.workflow {
                // What the loop changed stands uncommitted in the worktree: it is not the person's for that.
                Workflow::None => Base { protected: taken.protected, programs: taken.programs, ..before },
                // The branch that it began on stays the one that it commits to.
                Workflow::Commit => Base { branch: before.branch, ..taken },
            };
        }
        self.git.base = Some(taken);
        self.git.stale = false;
    }

    /// Whether what is protected may be another by now, and only by a person's doing.
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
