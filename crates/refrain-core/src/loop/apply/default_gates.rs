//! What the first run of default gates leads to: those that cannot run are dropped, slow ones wait for a claim.

use std::mem;

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
        // In the order of their gates: each is as many places further ahead as gates before it are dropped.
        for mut result in mem::take(&mut proof.results) {
            result.gate -= self.dropped.len();
            let is_default = result.spec(&self.spec).is_some_and(|gate| gate.by_default);
            if self.spec.gates_must_run && is_default && cannot(&result) {
                let gate = self.spec.gates.remove(result.gate);
                let why = result.failure.as_ref().map(ToString::to_string).unwrap_or_default();
                self.dropped.push(DroppedGate { name: gate.name, why, said: result.preview });
            } else {
                proof.results.push(result);
            }
        }
        for gate in self.spec.gates.iter_mut().filter(|gate| gate.when == GateWhen::Auto) {
            gate.when = when;
        }
        proof
    }
}
