//! What the first run of default gates leads to: those that cannot run are dropped, slow ones wait for a claim.

use super::super::state::{DroppedGate, GateFailure, GateResult, LoopState, Proof};
use crate::event::Exit;
use crate::gate::{DefaultGates, GateWhen, cannot_run};

impl LoopState {
    /// Settles the gates by their results before the first iteration, and returns the results of those that remain.
    pub(super) fn settle_default_gates(&mut self, mut proof: Proof) -> Proof {
        let is_default = |result: &GateResult| result.spec(&self.spec).is_some_and(|gate| gate.by_default);
        let taken: u64 = proof.results.iter().filter(|it| is_default(it)).map(|it| it.duration.0).sum();
        let when = if taken > DefaultGates::SLOW.0 { GateWhen::Claim } else { GateWhen::Iteration };
        let cannot = |result: &GateResult| match result.failure {
            Some(GateFailure::Exit(Exit::Code(code))) => cannot_run(&result.preview, code).is_some(),
            Some(GateFailure::NotStarted(_)) => true,
            _ => false,
        };
        let is_dropped =
            |result: &GateResult| self.spec.gates_must_run && is_default(result) && cannot(result);
        let dropped: Vec<_> = proof.results.iter().filter(|it| is_dropped(it)).cloned().collect();
        for result in dropped.iter().rev() {
            let gate = self.spec.gates.remove(result.gate);
            let why = result.failure.as_ref().map(ToString::to_string).unwrap_or_default();
            self.dropped.insert(0, DroppedGate { name: gate.name, why, said: result.preview.clone() });
            proof.results.retain(|it| it.gate != result.gate);
            for later in proof.results.iter_mut().filter(|it| it.gate > result.gate) {
                later.gate -= 1;
            }
        }
        for gate in self.spec.gates.iter_mut().filter(|gate| gate.when == GateWhen::Auto) {
            gate.when = when;
        }
        proof
    }
}
