//! What the gates of a loop are asked about. Their results are in the state, how events change that is in `apply`, what
//! comes next in `next_step`.

use super::state::{GateFailure, GateResult, LoopState};
use crate::event::Exit;
use crate::gate::{Check, GateSpec, NOT_EXECUTABLE, NOT_FOUND, shows_output};

/// How often the gates are asked after one attempt because they, or a commit hook, changed what they had proven. A
/// candidate that keeps changing is not proven.
pub const MAX_ROUNDS: u32 = 3;

/// How many paths are named that gates changed.
pub const CHANGED: usize = 8;

impl LoopState {
    /// The gate that cannot run, as was found before the first iteration: it blocks the loop. Neither an agent nor a
    /// change of the work is likely to mend a command that a shell does not find.
    pub fn missing_gate(&self) -> Option<&GateResult> {
        let begins = self.spec.gates_must_run && self.iteration == self.spec.carried();
        let baseline = self.baseline.as_ref().filter(|_| begins)?;
        baseline.results.iter().find(|result| {
            matches!(result.failure, Some(GateFailure::Exit(Exit::Code(NOT_EXECUTABLE | NOT_FOUND))))
        })
    }
}

impl LoopState {
    /// How many test runners printed their summary when this gate ran before the first iteration. If fewer do, a good
    /// end proves nothing.
    pub fn expected_summaries(&self, gate: &GateSpec) -> u32 {
        let Check::Command(command) = &gate.check else { return 0 };
        let place = self.spec.gates.iter().position(|it| it.name == gate.name);
        let before = place.and_then(|place| self.baseline.as_ref()?.of_gate(place));
        before.filter(|_| shows_output(command)).map_or(0, |result| result.summaries)
    }
}
