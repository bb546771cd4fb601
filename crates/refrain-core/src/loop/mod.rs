//! One loop: its state, how events change it, what comes next, what may be asked of it.

mod apply;
mod approval;
mod ask;
mod child;
mod critique;
mod next_step;
mod progress;
mod proof;
mod publish;
mod state;
mod trouble;

#[cfg(test)]
mod simulation;
#[cfg(test)]
pub(crate) mod tests;

pub use ask::Grant;
pub use child::{Child, ChildId};
pub use critique::{Critiquing, Feedback};
pub use next_step::{CHURN_WITHIN, MAX_CHURN, MAX_REFUNDS, Step, next_step};
pub use progress::{Progress, Saved};
pub use proof::{Approval, CHANGED, Candidate, GateFailure, GateResult, MAX_ROUNDS, Proof, Proving, Running};
pub use publish::{MAX_CONFLICTS, Objection, Published, Publishing};
pub use state::{Attempt, GitState, InFlight, Judged, Live, LoopState, Outcome, Phase, Retrying, Steering};
