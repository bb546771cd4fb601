//! What must hold of progress, from the table of the issue: an agent that does nothing is noticed, and none is stopped that
//! neither stood still, nor claimed in vain, nor failed for long.

use crate::spec::{Spec, Until};
use crate::work::WorkDigest;

/// What the records say of it.
#[derive(Debug, Default)]
pub(super) struct Progress {
    began: Option<WorkDigest>,
    states: Vec<WorkDigest>,
    /// Iterations in a row that left the work as it was, or as it had been.
    same_work: u32,
    /// Iterations in a row whose agent said that it is done.
    claims: u32,
    /// Iterations since it was looked at anew.
    turns: u32,
}

impl Progress {
    pub(super) fn begins(&mut self, work: Option<&WorkDigest>, spec: &Spec) {
        let stands_still = self.same_work >= spec.stuck.threshold.max(1) + 2;
        assert!(!stands_still || spec.until != Until::Complete, "it goes on though nothing changes");
        self.began = work.cloned();
    }

    pub(super) fn ends(&mut self, work: Option<&WorkDigest>, claims: bool) {
        self.turns += 1;
        self.claims = if claims { self.claims + 1 } else { 0 };
        let Some((before, after)) = self.began.take().zip(work) else { return self.same_work = 0 };
        let is_same = before == *after || self.states.contains(after);
        self.same_work = if is_same { self.same_work + 1 } else { 0 };
        self.states.extend([before, after.clone()]);
    }

    /// It is looked at anew: another agent works, or a person lets it go on.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    pub(super) fn assert_stuck(&self, spec: &Spec) {
        let threshold = spec.stuck.threshold.max(1);
        assert!(spec.until != Until::Count, "it was asked for so many");
        let failures = if spec.stuck.by_failure { threshold + 2 } else { 2 * threshold + 4 };
        assert!(
            self.same_work.max(self.claims) >= threshold + 2 || self.turns >= failures,
            "it had no time to be stuck"
        );
    }
}
