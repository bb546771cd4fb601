//! What a loop or plan needs before it can continue, in one word for scripts and surfaces.

use schemars::JsonSchema;
use serde::Serialize;

use super::StatusWord;
use crate::event::{BlockReason, End, WaitKind};
use crate::r#loop::LoopState;

/// What a loop or plan waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema, strum::IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum WaitsFor {
    /// A person approves its result.
    Approval,
    /// A person answers, or says what to do next.
    Answer,
    /// A person logs the agent in.
    Login,
    /// A person corrects a program, an option or the configuration.
    Setup,
    /// The provider works again, or gets money.
    Provider,
    /// A person repairs the repository, its remote or its pull request.
    Repository,
    /// Tasks of a plan that nothing in it can complete.
    Tasks,
}

impl WaitsFor {
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// What the loop waits for; none if it is at work, or ended.
pub(super) fn waits_for(state: &LoopState, word: StatusWord) -> Option<WaitsFor> {
    match word {
        StatusWord::Blocked => {
            let End::Blocked { why } = state.ended?.end else { return None };
            Some(of_blocked(why))
        }
        StatusWord::Waiting => match state.wait?.kind {
            WaitKind::Pace => None,
            WaitKind::Limit | WaitKind::Outage => Some(WaitsFor::Provider),
            WaitKind::Checks | WaitKind::Remote => Some(WaitsFor::Repository),
        },
        StatusWord::Running => (state.blocked > 0).then_some(WaitsFor::Answer),
        StatusWord::Paused
        | StatusWord::Moved
        | StatusWord::Crashed
        | StatusWord::Completed
        | StatusWord::Cancelled
        | StatusWord::IterationCap
        | StatusWord::BudgetExceeded
        | StatusWord::TimedOut
        | StatusWord::Stuck
        | StatusWord::Failed => None,
    }
}

fn of_blocked(why: BlockReason) -> WaitsFor {
    match why {
        BlockReason::Approval => WaitsFor::Approval,
        BlockReason::StateFile | BlockReason::Stuck | BlockReason::GaveUp | BlockReason::Idle => {
            WaitsFor::Answer
        }
        BlockReason::Login => WaitsFor::Login,
        BlockReason::Forbidden | BlockReason::Credit | BlockReason::Limit | BlockReason::Outage => {
            WaitsFor::Provider
        }
        BlockReason::Repository | BlockReason::Publish => WaitsFor::Repository,
        BlockReason::Refunds
        | BlockReason::Churn
        | BlockReason::AgentMissing
        | BlockReason::OutputLost
        | BlockReason::GateMissing
        | BlockReason::Model
        | BlockReason::Setup
        | BlockReason::Session
        | BlockReason::CostUnknown => WaitsFor::Setup,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_to_be_blocked_has_a_need() {
        for (why, needed) in [
            (BlockReason::Approval, "approval"),
            (BlockReason::StateFile, "answer"),
            (BlockReason::Stuck, "answer"),
            (BlockReason::Login, "login"),
            (BlockReason::GateMissing, "setup"),
            (BlockReason::Credit, "provider"),
            (BlockReason::Publish, "repository"),
        ] {
            let waits_for = of_blocked(why);
            assert_eq!(serde_json::to_value(waits_for).unwrap(), needed, "{why:?}");
            assert_eq!(waits_for.as_str(), needed);
        }
    }
}
