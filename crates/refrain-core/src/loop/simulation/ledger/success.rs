//! What must hold if a command completes the loop by itself, and if a gate cannot run before the first iteration.

use std::collections::BTreeSet;

use super::{Last, Ledger};
use crate::event::{Exit, GateFinished};
use crate::gate::GateName;
use crate::spec::Until;

/// Gates whose last word was that there is no such command, or that it may not be executed.
#[derive(Debug, Default)]
pub(super) struct MissingCommands(BTreeSet<GateName>);

impl MissingCommands {
    pub(super) fn hear(&mut self, finished: &GateFinished) {
        let is_missing = finished.review.is_none() && matches!(finished.exit, Exit::Code(126 | 127));
        match is_missing {
            true => self.0.insert(finished.gate.clone()),
            false => self.0.remove(&finished.gate),
        };
    }

    /// A gate ended in another way.
    pub(super) fn forget(&mut self, gate: &GateName) {
        self.0.remove(gate);
    }

    pub(super) fn is_none(&self) -> bool {
        self.0.is_empty()
    }
}

impl Ledger {
    /// Whether the success command, and every other gate that decides, accepted what is there now, regardless of the
    /// agent.
    pub(super) fn is_completed_by_gates(&self) -> bool {
        let is_good =
            |name: &GateName| self.words.get(name).is_some_and(|(good, tree)| *good && *tree == self.tree);
        let mut hard = self.spec.gates.iter().filter(|gate| gate.hard);
        self.spec.gates.iter().any(|gate| gate.completes)
            && matches!(self.last, Some(Last::Charged { .. }))
            && !self.touched
            && !self.gave_up
            && hard.all(|gate| is_good(&gate.name))
    }

    pub(super) fn assert_not_completed(&self) {
        let objected = self.approval.sent_back || self.outside.objected;
        let may_go_on = self.spec.until != Until::Complete || objected;
        assert!(may_go_on || !self.is_completed_by_gates(), "it continues though its success command passed");
        let first = self.iteration == 0 && self.spec.gates_must_run;
        assert!(!first || self.missing.is_none(), "it begins with a gate that cannot run");
    }
}
