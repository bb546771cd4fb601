//! What a loop or plan needs before it can continue, in one word for scripts and surfaces.

use schemars::JsonSchema;
use serde::Serialize;

use super::StatusWord;
use crate::event::{Blocked, End, WaitKind};
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
        StatusWord::Blocked => match state.ended?.end {
            End::Blocked { why } => Some(of_blocked(why)),
            End::Completed { .. }
            | End::Cancelled
            | End::IterationCap
            | End::Stuck
            | End::TimedOut
            | End::BudgetExceeded { .. }
            | End::Paused => None,
        },
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

fn of_blocked(why: Blocked) -> WaitsFor {
    match why {
        Blocked::Approval => WaitsFor::Approval,
        Blocked::StateFile | Blocked::Stuck | Blocked::GaveUp | Blocked::Idle => WaitsFor::Answer,
        Blocked::Login => WaitsFor::Login,
        Blocked::Forbidden | Blocked::Credit | Blocked::Limit | Blocked::Outage => WaitsFor::Provider,
        Blocked::Repository | Blocked::Publish => WaitsFor::Repository,
        Blocked::Refunds
        | Blocked::Churn
        | Blocked::AgentMissing
        | Blocked::OutputLost
        | Blocked::GateMissing
        | Blocked::Model
        | Blocked::Setup
        | Blocked::Session
        | Blocked::CostUnknown => WaitsFor::Setup,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_to_be_blocked_says_what_is_needed() {
        for (why, needed) in [
            (Blocked::Approval, "approval"),
            (Blocked::StateFile, "answer"),
            (Blocked::Stuck, "answer"),
            (Blocked::Login, "login"),
            (Blocked::GateMissing, "setup"),
            (Blocked::Credit, "provider"),
            (Blocked::Publish, "repository"),
        ] {
            let waits_for = of_blocked(why);
            assert_eq!(serde_json::to_value(waits_for).unwrap(), needed, "{why:?}");
            assert_eq!(waits_for.as_str(), needed);
        }
    }
}
