//! Words for people: why a loop stands where it stands, and what they have to do.

use super::StatusWord;
use crate::event::{Blocked, ClaimSource, End, WaitKind};
use crate::r#loop::{LoopState, Refusal};

/// Why it stands where it stands, in one line.
pub(super) fn reason(state: &LoopState, word: StatusWord, orphan: Option<i32>) -> String {
    let flight = state.in_flight();
    match (state.ended.map(|ended| ended.end), word) {
        (Some(End::Completed { claim }), _) => {
            let who = match claim {
                ClaimSource::Promise => "the agent made its promise",
                ClaimSource::StateFile => "the agent set status: done in state.md",
                ClaimSource::ExitCode => "the command ended with exit code 0",
            };
            format!("{who}; unverified, as no gate checks it")
        }
        (Some(End::Cancelled), _) => "by a person".to_owned(),
        (Some(End::IterationCap), _) => {
            format!(
                "{} iteration{} without a claim",
                state.charged,
                if state.charged == 1 { "" } else { "s" }
            )
        }
        (Some(End::TimedOut), _) => "the loop's own duration is over".to_owned(),
        (Some(End::Paused), _) => "by a person or a signal".to_owned(),
        (Some(End::Blocked { why }), _) => match why {
            Blocked::Refunds => "three attempts in a row were lost with their runner or keeper".to_owned(),
            Blocked::Churn => "the agent failed at once three times in a row".to_owned(),
            Blocked::AgentMissing => match last_error(state) {
                Some(error) => format!("{} could not be started: {error}", state.spec.agent.program),
                None => format!("{} could not be started", state.spec.agent.program),
            },
            Blocked::OutputLost => match last_error(state) {
                Some(error) => format!("what the agent prints cannot be kept: {error}"),
                None => "what the agent prints cannot be kept".to_owned(),
            },
        },
        (None, StatusWord::Crashed) => match orphan {
            Some(pid) => {
                format!("its runner is gone, but its agent (pid {pid}) works on; resume and cancel end it")
            }
            None => "its runner is gone".to_owned(),
        },
        (None, _) => match (state.wait, flight) {
            (Some(wait), _) => match wait.kind {
                WaitKind::Pace => "rests before the next iteration".to_owned(),
            },
            (None, Some(flight)) if flight.stopping.is_some() => format!("attempt {} is ending", flight.id),
            (None, Some(flight)) => format!("attempt {} is running", flight.id),
            (None, None) if state.sweeping => "what the agent left running is being ended".to_owned(),
            (None, None) => "between two iterations".to_owned(),
        },
    }
}

/// What the system said when the last attempt came to nothing.
fn last_error(state: &LoopState) -> Option<String> {
    let last = state.attempts.last()?;
    let kept = last.finished.as_ref().and_then(|finished| finished.output_error.clone());
    last.error.clone().or(kept)
}

/// What a person has to do for it to go on.
pub(super) fn needs(state: &LoopState, word: StatusWord) -> Option<String> {
    let id = &state.spec.id;
    let resume = match state.resume(None, None) {
        Err(Refusal::NothingGranted { flag, .. }) => format!("refrain resume {id} {flag}"),
        Ok(_)
        | Err(Refusal::Final(_) | Refusal::Stopped(_) | Refusal::TooMany { .. } | Refusal::TooLong { .. }) => {
            format!("refrain resume {id}")
        }
    };
    match word {
        StatusWord::Crashed if state.cancel.is_some() => Some(format!("refrain cancel {id}")),
        StatusWord::Crashed | StatusWord::Paused | StatusWord::IterationCap | StatusWord::TimedOut => {
            Some(resume)
        }
        StatusWord::Blocked => Some(match state.ended.map(|ended| ended.end) {
            Some(End::Blocked { why: Blocked::AgentMissing }) => {
                format!("see why with refrain show {id}, make it start, then {resume}")
            }
            Some(End::Blocked { why: Blocked::OutputLost }) => format!("make room, then {resume}"),
            _ => format!("see why with refrain logs {id}, mend it, then {resume}"),
        }),
        StatusWord::Running
        | StatusWord::Waiting
        | StatusWord::Completed
        | StatusWord::Cancelled
        | StatusWord::BudgetExceeded
        | StatusWord::Stuck
        | StatusWord::Failed => None,
    }
}
