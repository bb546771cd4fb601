//! What the loop did to the history, and the end of its worktree.

use std::collections::HashSet;

use super::super::state::{LoopState, Phase};
use crate::git::{CommitReport, CommitResult, OmittedPath, SkipReason};

impl LoopState {
    /// The commit of an iteration was made, or was not to be made.
    pub(super) fn settle_commit(&mut self, report: &CommitReport) -> Result<(), &'static str> {
        let Phase::Idle { claim, uncommitted: uncommitted @ true } = &mut self.phase else {
            return Err("commit.settled");
        };
        if report.iteration != self.iteration || self.sweeping {
            return Err("commit.settled");
        }
        *uncommitted = false;
        let claim = *claim;
        self.count_commit(report);
        if !self.is_another(report) {
            self.phase = self.settled(claim);
        }
        self.record_iteration();
        Ok(())
    }

    fn count_commit(&mut self, report: &CommitReport) {
        self.git.commits.extend(report.by_agent.iter().cloned());
        if let CommitResult::Made { commit, .. } = &report.result {
            self.git.commits.push(commit.clone());
        }
        self.git.head.clone_from(&report.head);
        if matches!(report.result, CommitResult::Made { .. }) {
            self.git.published.rebased = None;
        }
        let known: HashSet<_> = self.git.last.iter().flat_map(|last| &last.left_out).collect();
        let is_new = |left: &&OmittedPath| !known.contains(left);
        self.git.newly_left_out = report.left_out.iter().filter(is_new).cloned().collect();
        self.git.exposed.extend(report.exposed.iter().filter(|exposed| !exposed.allowed).cloned());
        self.git.mixed = std::mem::take(&mut self.git.unwatched);
        self.git.last = Some(report.clone());
    }

    /// The loop's own worktree is given back, with the reason if it is kept.
    pub(super) fn release_worktree(
        &mut self,
        kept: Option<&String>,
        branch_removed: bool,
    ) -> Result<(), &'static str> {
        let is_over = match self.phase {
            Phase::Idle { .. } if self.completes_by().is_some() => true,
            Phase::Idle { .. } | Phase::Begun { .. } => self.cancel.is_some(),
            Phase::Proving(_) => self.cancel.is_some() && !self.is_busy(),
            Phase::Publishing(_) => self.cancel.is_some(),
            Phase::InFlight(_) | Phase::Critiquing(_) => false,
        };
        if !is_over
            || self.check_here().is_err()
            || self.is_final()
            || self.sweeping
            || !self.holds_worktree()
        {
            return Err("worktree.released");
        }
        self.git.released = true;
        self.git.branch_removed = branch_removed;
        self.git.kept = kept.cloned();
        Ok(())
    }

    /// Whether all that the loop did to the history is known: what is added while it is stopped is not the loop's.
    pub(super) fn has_told_all(&self) -> bool {
        let is_idle = matches!(self.phase, Phase::Idle { uncommitted: false, .. } | Phase::Publishing(_));
        let told = self.git.last.as_ref().map_or(self.spec.carried(), |last| last.iteration);
        self.git.base.is_some() && is_idle && told == self.iteration
    }

    /// Whether all changes of the loop are committed, except what is never committed.
    pub(super) fn has_committed_all(&self) -> bool {
        let last = self.git.last.as_ref().filter(|_| self.has_told_all());
        last.is_some_and(|last| {
            matches!(last.result, CommitResult::Made { .. } | CommitResult::Skipped(SkipReason::Nothing))
        })
    }
}
