//! An iteration of a loop, and what its gates said.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::overrun::Overrun;
use super::usage::Usage;
use crate::event::{ClaimSource, Exit};
use crate::ids::AttemptId;
use crate::r#loop::{Attempt, GateResult, LoopState, Outcome};

/// A gate's result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Gate {
    /// Its name.
    pub name: String,
    /// Whether it decides.
    pub hard: bool,
    /// Whether it passed.
    pub passed: bool,
    /// Its exit code; null where a signal ended it, or nothing could be started.
    pub exit_code: Option<i32>,
    /// How long it took.
    pub duration_ms: u64,
    /// What it runs.
    pub command: String,
    /// Why it did not pass; null where it did.
    pub why: Option<String>,
    /// It failed on the same candidate before it passed.
    pub flaky: bool,
    /// Whether it failed before the first iteration already; null where it was not asked then.
    pub failed_before: Option<bool>,
    /// Whether it ran tests that the loop itself made; left out of a gate for tests that were there before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own_tests: Option<bool>,
    /// The last line that it printed.
    pub preview: String,
    /// Behind which attempt it ran, and which of its runs there: where its log is.
    #[serde(skip)]
    pub ran: (AttemptId, u32),
}

/// A failure that may come back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Failure {
    /// The gate that failed; null where it was the agent itself, or something protected that it touched.
    pub gate: Option<String>,
    /// What is the same in failures that are the same.
    pub fingerprint: String,
    /// How often in a row.
    pub count: u32,
}

/// One attempt, as shown.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Iteration {
    /// Its iteration.
    pub n: u32,
    /// Which attempt of it.
    pub attempt: u32,
    /// Whether it counts against the cap.
    pub charged: bool,
    /// When it started.
    pub started_at: Timestamp,
    /// When it was over; null while it runs.
    pub ended_at: Option<Timestamp>,
    /// The agent's exit code; null if a signal ended it or its end was not seen.
    pub exit_code: Option<i32>,
    /// The signal that ended the agent.
    pub signal: Option<i32>,
    /// What it amounts to; null while it runs.
    pub outcome: Option<Outcome>,
    /// How far it went where it took too long; left out of all others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overran: Option<Overrun>,
    /// What it claimed.
    pub claim: Option<ClaimSource>,
    /// What it used.
    pub usage: Usage,
    /// Its gates.
    pub gates: Vec<Gate>,
    /// The last line that the agent said.
    pub preview: Option<String>,
    /// What the agent said of it in one line, where it did.
    pub summary: Option<String>,
}

impl Gate {
    pub(crate) fn of(state: &LoopState, result: &GateResult) -> Option<Self> {
        let gate = result.spec(&state.spec)?;
        Some(Self {
            name: gate.name.to_string(),
            hard: gate.hard,
            passed: result.passed(),
            exit_code: match result.exit {
                Some(Exit::Code(code)) => Some(code),
                Some(Exit::Signal(_) | Exit::Lost | Exit::Unseen) | None => None,
            },
            duration_ms: result.duration.0,
            command: gate.check.to_string(),
            why: result.failure.as_ref().map(|failure| failure.to_string()),
            flaky: result.flaky,
            failed_before: state.failed_before(result.gate),
            own_tests: gate.own_tests.then_some(result.summaries > 0),
            preview: result.preview.clone(),
            ran: (result.of, result.run),
        })
    }
}

impl Iteration {
    pub(crate) fn of(state: &LoopState, attempt: &Attempt) -> Self {
        let (exit_code, signal) = match attempt.finished.as_ref().map(|finished| finished.exit) {
            Some(Exit::Code(code)) => (Some(code), None),
            Some(Exit::Signal(signal)) => (None, Some(signal)),
            Some(Exit::Lost | Exit::Unseen) | None => (None, None),
        };
        Self {
            n: attempt.id.iteration,
            attempt: attempt.id.attempt,
            charged: attempt.charged,
            started_at: attempt.started_at,
            ended_at: Some(attempt.ended_at),
            exit_code,
            signal,
            outcome: Some(attempt.outcome),
            overran: Overrun::of(state, attempt),
            claim: attempt.claim,
            usage: attempt.usage.into(),
            gates: attempt
                .proof
                .iter()
                .flat_map(|proof| &proof.results)
                .filter_map(|result| Gate::of(state, result))
                .collect(),
            preview: attempt.finished.as_ref().map(|finished| finished.preview.clone()),
            summary: attempt.finished.as_ref().and_then(|finished| finished.summary.clone()),
        }
    }

    /// The agent's words on it, as short as they were; none while it runs.
    pub fn said(&self) -> Option<&str> {
        self.summary.as_deref().or(self.preview.as_deref())
    }
}
