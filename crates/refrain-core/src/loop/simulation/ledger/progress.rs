//! What must hold of progress, from the table of the issue: an idle agent is noticed, and no agent is stopped that
//! neither made no progress, nor claimed in vain, nor failed for long.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;

use crate::gate::GateName;
use crate::spec::{Spec, Until};
use crate::work::WorkDigest;

#[derive(Debug)]
pub(super) struct Failures {
    /// The required gates whose last word is no.
    pub(super) gates: BTreeSet<GateName>,
    /// By protections, an unstable tree, a returned merge or a refusal outside.
    pub(super) others: bool,
}

#[derive(Debug, Default)]
pub(super) struct Progress {
    began: Option<WorkDigest>,
    states: Vec<WorkDigest>,
    /// Iterations in a row that left the work as it was, or as it had been.
    same_work: u32,
    /// Iterations in a row whose agent said that it is done.
    claims: u32,
    turns: u32,
    /// The required gates that failed before the first iteration.
    red: Option<BTreeSet<GateName>>,
    /// Iterations in a row that each other required gate failed.
    new_failures: BTreeMap<GateName, u32>,
    other_failures: u32,
    /// The last iteration is in neither of them yet.
    is_pending: bool,
    /// The gates are asked about it, or their earlier results hold for it.
    is_judged: bool,
    /// Its agent failed, or its publication was refused.
    fails: bool,
}

impl Progress {
    pub(super) fn begins(&mut self, work: Option<&WorkDigest>, spec: &Spec, failures: &Failures) {
        if mem::take(&mut self.is_pending) {
            (self.new_failures, self.other_failures) = self.failures_in_a_row(failures);
        }
        self.red.get_or_insert_with(|| failures.gates.clone());
        let stands_still = self.same_work >= spec.stuck.threshold.max(1) + 2;
        assert!(!stands_still || spec.until != Until::Complete, "it continues though nothing changes");
        self.began = work.cloned();
    }

    pub(super) fn ends(&mut self, work: Option<&WorkDigest>, claims: bool, fails: bool) {
        self.turns += 1;
        (self.is_pending, self.is_judged, self.fails) = (true, false, fails);
        self.claims = if claims { self.claims + 1 } else { 0 };
        let Some((before, after)) = self.began.take().zip(work) else { return self.same_work = 0 };
        let is_same = before == *after || self.states.contains(after);
        self.same_work = if is_same { self.same_work + 1 } else { 0 };
        self.states.extend([before, after.clone()]);
    }

    pub(super) fn judge(&mut self) {
        self.is_judged = true;
    }

    pub(super) fn refuse(&mut self) {
        self.fails = true;
    }

    /// The new failures, with the last iteration. Which of several is the first does not matter: each is counted.
    fn failures_in_a_row(&self, last: &Failures) -> (BTreeMap<GateName, u32>, u32) {
        let is_red = |gate: &GateName| self.red.as_ref().is_some_and(|red| red.contains(gate));
        let gates = last.gates.iter().filter(|gate| self.is_judged && !is_red(gate));
        let count = |gate: &GateName| self.new_failures.get(gate).map_or(1, |count| count + 1);
        let others = if last.others || self.fails { self.other_failures + 1 } else { 0 };
        (gates.map(|gate| (gate.clone(), count(gate))).collect(), others)
    }

    /// Progress is judged anew: another agent works, or a person resumes it.
    pub(super) fn forget(&mut self) {
        *self = Self { red: self.red.take(), ..Self::default() };
    }

    pub(super) fn assert_stuck(&self, spec: &Spec, failures: &Failures) {
        let threshold = spec.stuck.threshold.max(1);
        assert!(spec.until != Until::Count, "it was asked for so many");
        let (gates, others) = self.failures_in_a_row(failures);
        let new_failures = gates.into_values().max().unwrap_or_default().max(others);
        let by_failure = match spec.stuck.by_failure {
            true => self.turns >= threshold + 2,
            false => new_failures >= 2 * threshold + 4,
        };
        assert!(
            self.same_work.max(self.claims) >= threshold + 2 || by_failure,
            "the loop is not stuck by any row"
        );
    }
}
