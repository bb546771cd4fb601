//! The result of a round, from the state of its loop.

use super::TaskRef;
use super::event::{AgentFault, Stop, TaskEnd};
use crate::event::{BlockReason, End, Exit};
use crate::git::{CommitResult, SkipReason};
use crate::r#loop::{LoopState, Outcome, Proof};
use crate::text::{clip, printable};

/// How much of an agent's last line is shown, in bytes.
const LAST_LINE: usize = 200;

impl TaskEnd {
    /// The result of a loop that has no runner any more. `reason` is what its view says about that, `needs` what it
    /// asks a person to do.
    pub fn of(state: &LoopState, reason: &str, needs: Option<&str>) -> Self {
        let hindered = || Self::Hindered {
            error: needs.map_or_else(|| reason.to_owned(), |needs| format!("{reason}; {needs}")),
        };
        let Some(ended) = state.ended else { return Self::Rests };
        match ended.end {
            // Uncommitted work cannot land. Work on another branch is taken from there by its tree.
            End::Completed { .. } if let Some(why) = uncommitted(state) => {
                let reason = format!("it is done, but its work could not be committed: {why}");
                Self::Stopped(Stop::Other { reason })
            }
            End::Completed { .. } => {
                let is_beyond = |proof: &&Proof| proof.candidate.partial && !state.spec.clean_checkout;
                let proof = state.proof.as_ref().filter(|_| state.spec.has_hard_gates());
                let proof = proof.filter(|proof| !is_beyond(proof));
                Self::Proven { tree: proof.and_then(|proof| proof.candidate.tree.clone()) }
            }
            End::Cancelled => Self::Stopped(Stop::Cancelled),
            End::IterationCap => Self::Stopped(Stop::UsedUp),
            End::Stuck | End::Blocked { why: BlockReason::Stuck } => Self::Stopped(Stop::Stuck),
            End::TimedOut => Self::Stopped(Stop::TimedOut),
            End::BudgetExceeded { by: None } => Self::OutOfMoney,
            End::Paused => Self::Rests,
            End::Blocked { why: BlockReason::GaveUp | BlockReason::StateFile | BlockReason::Idle } => {
                let said = state.given_up.clone();
                Self::Stopped(Stop::GaveUp { reason: said.unwrap_or_else(|| reason.to_owned()) })
            }
            End::Blocked { why: BlockReason::Session | BlockReason::Approval } => {
                Self::Stopped(Stop::Other { reason: reason.to_owned() })
            }
            End::Blocked { why: BlockReason::Repository } if state.git.bad_work => {
                Self::Stopped(Stop::Other { reason: reason.to_owned() })
            }
            End::BudgetExceeded { by: Some(by) } => Self::CapReached { by },
            // The next task would meet the same.
            End::Blocked {
                why:
                    BlockReason::Refunds
                    | BlockReason::Churn
                    | BlockReason::AgentMissing
                    | BlockReason::GateMissing
                    | BlockReason::OutputLost
                    | BlockReason::Login
                    | BlockReason::Forbidden
                    | BlockReason::Credit
                    | BlockReason::Model
                    | BlockReason::Setup
                    | BlockReason::Limit
                    | BlockReason::Outage
                    | BlockReason::CostUnknown
                    | BlockReason::Repository
                    | BlockReason::Publish,
            } => hindered(),
        }
    }
}

impl LoopState {
    /// The task of a loop whose result its plan has: the plan retries the task in a new loop, and ignores this one.
    pub fn over_for_plan(&self) -> Option<&TaskRef> {
        self.spec.task.as_ref().filter(|_| matches!(TaskEnd::of(self, "", None), TaskEnd::Stopped(_)))
    }
}

/// The first required gate of a loop that fails, with the last line that it printed; none where all pass.
pub fn failed_gate(state: &LoopState) -> Option<String> {
    let failed = state.gate_results().find_map(|result| {
        let gate = state.spec.gates.get(result.gate).filter(|gate| gate.hard && !result.passed())?;
        Some((gate, result.preview.trim()))
    });
    failed.map(|(gate, preview)| match clip(&printable(preview).replace('\n', " "), LAST_LINE) {
        line if line.is_empty() => format!("gate {} failed", gate.name),
        line => format!("gate {} failed: {line}", gate.name),
    })
}

impl AgentFault {
    /// How the last agent of a loop failed, of those whose iterations count; none if it did not fail.
    pub fn of(state: &LoopState) -> Option<Self> {
        let last = state.attempts.iter().rev().find(|attempt| attempt.charged)?;
        let finished = last.finished.as_ref().filter(|_| last.outcome == Outcome::Failed)?;
        let ended = match finished.exit {
            Exit::Code(code) => format!("ended with exit code {code}"),
            Exit::Signal(signal) => format!("was ended by signal {signal}"),
            Exit::Lost | Exit::Unseen => "came to nothing".to_owned(),
        };
        let said = match clip(finished.preview.trim(), LAST_LINE) {
            line if line.is_empty() => ended,
            line => format!("{ended}: {line}"),
        };
        Some(Self { said, fingerprint: finished.fingerprint.clone() })
    }

    /// Whether both are the same failure.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        match (&self.fingerprint, &other.fingerprint) {
            (Some(one), Some(other)) => one == other,
            (None, _) | (_, None) => self.said == other.said,
        }
    }
}

/// Why the work of a loop is on no branch.
fn uncommitted(state: &LoopState) -> Option<&SkipReason> {
    match &state.git.last.as_ref()?.result {
        CommitResult::Made { .. }
        | CommitResult::Skipped(SkipReason::Nothing | SkipReason::OtherBranch { .. }) => None,
        CommitResult::Skipped(why) => Some(why),
    }
}
