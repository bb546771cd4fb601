//! The cause and the outcome of an attempt's end.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::provider_faults::{Reaction, answer};
use crate::agent::AgentReport;
use crate::event::{AttemptFinished, ClaimSource, Exit, StopReason, WaitKind};

/// What an attempt amounts to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It claims that the work is done.
    Claimed,
    /// The agent ended well, and claims nothing.
    Ended,
    /// The agent ended with a code that is not 0, or by a signal.
    Failed,
    /// It took longer than one attempt may.
    TimeLimit,
    /// It printed nothing for longer than one attempt may.
    Silence,
    /// The loop's own duration ended while it ran.
    LoopDuration,
    /// A person cancelled the loop while it ran.
    Cancelled,
    /// A person or a signal paused the loop while it ran. Refunded.
    Interrupted,
    /// Its runner or its supervisor died. Refunded.
    Lost,
    /// The agent could not be started. Refunded.
    NotStarted,
    /// What it printed could not be kept. Refunded.
    OutputLost,
    /// It used up the loop's money or tokens.
    Budget,
    /// The provider's limit was used up. Refunded.
    Limit,
    /// The provider, or the way there, did not work. Refunded.
    Outage,
    /// The agent cannot work before a person did something: a login, a model, a flag. Refunded.
    Unable,
    /// It was stopped by its time or silence limit before its program printed a single event. Refunded.
    Unresponsive,
}

impl Outcome {
    /// Whether the iteration counts: what the loop's surroundings did to an attempt is not the work's fault.
    pub fn is_charged(self) -> bool {
        match self {
            Self::Claimed
            | Self::Ended
            | Self::Failed
            | Self::TimeLimit
            | Self::Silence
            | Self::Budget
            | Self::LoopDuration => true,
            Self::Cancelled
            | Self::Interrupted
            | Self::Lost
            | Self::NotStarted
            | Self::OutputLost
            | Self::Limit
            | Self::Outage
            | Self::Unable
            | Self::Unresponsive => false,
        }
    }

    pub(in crate::r#loop) fn of(
        finished: Option<&AttemptFinished>,
        end: Cause,
        claim: Option<ClaimSource>,
    ) -> Self {
        if finished.is_some_and(|finished| finished.output_error.is_some()) {
            return Self::OutputLost;
        }
        match end {
            Cause::Itself(Exit::Lost) | Cause::Stopped(_, Exit::Lost) => Self::Lost,
            Cause::Stopped(why, _) => match why {
                StopReason::OutputLost => Self::OutputLost,
                StopReason::Budget => Self::Budget,
                StopReason::Cancel => Self::Cancelled,
                StopReason::Interrupt => Self::Interrupted,
                StopReason::TimeLimit | StopReason::Silence if has_no_events(finished) => Self::Unresponsive,
                StopReason::TimeLimit => Self::TimeLimit,
                StopReason::Silence => Self::Silence,
                StopReason::ProviderWait => Self::Outage,
                StopReason::LoopDuration => Self::LoopDuration,
            },
            Cause::Itself(_) if claim.is_some() => Self::Claimed,
            Cause::Itself(exit) => match finished.and_then(|finished| finished.report.as_deref()) {
                Some(report) => Self::of_stream(report, exit),
                None if matches!(exit, Exit::Code(0) | Exit::Unseen) => Self::Ended,
                None => Self::Failed,
            },
        }
    }

    /// By the agent's own last word and its exit: a code of 0 alone is no success (agent-clis.md, trap 4).
    fn of_stream(report: &AgentReport, exit: Exit) -> Self {
        match report.fault.as_ref().map(|fault| answer(fault.kind)) {
            Some(Reaction::Wait(WaitKind::Limit)) => Self::Limit,
            Some(Reaction::Wait(WaitKind::Outage | WaitKind::Pace | WaitKind::Checks | WaitKind::Remote)) => {
                Self::Outage
            }
            Some(Reaction::Person(_)) => Self::Unable,
            Some(Reaction::Budget) => Self::Budget,
            None if report.is_final && matches!(exit, Exit::Code(0) | Exit::Unseen) => Self::Ended,
            Some(Reaction::Charge) | None => Self::Failed,
        }
    }
}

/// Whether its program was not even up before it ended.
fn has_no_events(finished: Option<&AttemptFinished>) -> bool {
    finished.and_then(|finished| finished.report.as_deref()).is_some_and(|report| report.no_events)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::r#loop) enum Cause {
    Itself(Exit),
    Stopped(StopReason, Exit),
}

impl Cause {
    /// An agent that had said its last word when it was stopped had ended, for all that matters; and one that the
    /// provider had failed did not run into a limit of ours. What a person cancels stays cancelled.
    pub(in crate::r#loop) fn of(finished: Option<&AttemptFinished>, stopping: Option<StopReason>) -> Self {
        let exit = finished.map_or(Exit::Lost, |finished| finished.exit);
        let Some(why) = stopping else { return Self::Itself(exit) };
        let report = finished.and_then(|finished| finished.report.as_deref());
        let had_ended = report.is_some_and(|report| report.is_final && report.fault.is_none());
        let was_failed = report
            .and_then(|report| report.fault.as_ref())
            .is_some_and(|fault| matches!(answer(fault.kind), Reaction::Wait(_) | Reaction::Person(_)));
        let is_own = match why {
            StopReason::Cancel | StopReason::OutputLost => false,
            StopReason::Interrupt | StopReason::Budget | StopReason::LoopDuration => had_ended,
            StopReason::TimeLimit | StopReason::Silence | StopReason::ProviderWait => had_ended || was_failed,
        };
        match (exit, is_own) {
            (Exit::Lost, _) | (_, false) => Self::Stopped(why, exit),
            (Exit::Code(_) | Exit::Signal(_) | Exit::Unseen, true) => Self::Itself(Exit::Unseen),
        }
    }
}
