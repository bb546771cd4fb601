//! One loop: its state, how events change it, what comes next, which requests it accepts. Plans are in [`crate::plan`].

mod apply;
mod approval;
mod ask;
mod child;
mod critique;
mod moving;
mod next_step;
mod progress;
mod proof;
mod provider_faults;
mod publish;
mod state;

#[cfg(test)]
mod simulation;
#[cfg(test)]
pub(crate) mod tests;

pub use ask::{Grant, QueuedEffect, QueuedRequest};
pub use moving::{LeaveReason, RemoteLoop, TakeOverRefusal, Takeover, Tenure, take_lease, take_over};
pub use next_step::{CHURN_WITHIN, MAX_CHURN, MAX_REFUNDS, Step, next_step};
pub use proof::{CHANGED, MAX_ROUNDS};
pub use provider_faults::{GateChange, ProviderRetry, SharedGateState};
pub use publish::MAX_CONFLICTS;
pub use state::{
    Approval, Attempt, Candidate, Child, ChildId, DroppedGate, Feedback, GateFailure, GateResult, GitState,
    InFlight, JudgeUsage, Live, LoopState, Objection, Outcome, Phase, Progress, Proof, Proving, PublishState,
    Publishing, RunningCritique, RunningGate, Saved, Steering,
};
