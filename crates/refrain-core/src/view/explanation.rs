//! Sentences for people: why a loop has its status, and what they have to do.

mod block;
mod end;
mod progress;
mod statement;

pub(super) use self::block::ASKS;
pub use self::statement::tell_task;
pub(super) use self::statement::{asked_by, by_person, gates_ran};
use self::statement::{needed, tell};
use super::loop_parts::publication;
use super::{RUNNER, StatusWord, with_yours};
use crate::budget::{CapKind, CapUsage};
use crate::event::{BlockReason, End};
use crate::git::{CommitResult, SkipReason};
use crate::r#loop::{Grant, LoopState, Saved};
use crate::machine::Refusal;
use crate::signature::Remedy;
use crate::spec::Spec;
use crate::text::printable;

/// What a person does for more of a shared cap than it left to a loop of this specification; `kind` is what they resume.
pub(super) fn more_money(by: &CapUsage, spec: &Spec, resume: &str, kind: &str) -> String {
    let (key, is_pinned) = (by.which.key(), spec.caps.of(by.which) == Some(by.cap));
    match (by.which, is_pinned) {
        (CapKind::Day | CapKind::ProjectDay, true) => format!("{resume} from midnight on"),
        (CapKind::Day | CapKind::ProjectDay, false) => {
            format!("{resume} from midnight on, or with a higher {key} in your config.toml")
        }
        (CapKind::Project, true) => format!("raise {key} in refrain.toml, then start a new {kind}"),
        (CapKind::Project, false) => format!("raise {key} in your config.toml, then {resume}"),
    }
}

/// Why it cannot continue by itself, in one line.
pub fn blocked(state: &LoopState, why: BlockReason) -> String {
    block::why(state, why)
}

/// Why it has its status, in one line; and that its work is not committed, if it was to be.
pub(super) fn reason(state: &LoopState, word: StatusWord, orphan: Option<i32>) -> String {
    match state.signatures.objection() {
        None => reason_in_journal(state, word, orphan),
        Some(objection) if word == StatusWord::Running => {
            format!("its runner is at work and did not write what the journal says: {objection}")
        }
        Some(objection) => {
            format!("unsigned: {objection}; the journal says: {}", reason_in_journal(state, word, orphan))
        }
    }
}

fn reason_in_journal(state: &LoopState, word: StatusWord, orphan: Option<i32>) -> String {
    let mut why = why(state, word, orphan);
    if !state.spec.untrusted.is_empty() && (word != StatusWord::Completed || state.spec.has_hard_gates()) {
        why.push_str("; without gates that are not trusted");
    }
    why.push_str(&kept(state));
    if let Some(secret) = state.git.exposed.first() {
        why.push_str(&format!("; a secret seems to be in the history: {secret}"));
        let more = state.git.exposed.len() - 1;
        if more > 0 {
            why.push_str(&format!(", and {more} more"));
        }
    }
    if let Some(there) = publication::whereabouts(state) {
        why.push_str(&format!("; {there}"));
    }
    match state.git.last.as_ref().map(|last| (last.iteration, &last.result)) {
        Some((iteration, CommitResult::Skipped(skipped)))
            if state.ended.is_some() && *skipped != SkipReason::Nothing =>
        {
            format!("{why}; iteration {iteration} is not committed: {skipped}")
        }
        _ => why,
    }
}

/// Where its work is kept, or why it is not; empty while it runs.
fn kept(state: &LoopState) -> String {
    match state.progress.saved.as_ref().filter(|_| state.ended.is_some()) {
        Some(Saved::Branch { name, mixed, .. }) => {
            format!("; its work is on branch {name}{}", with_yours(mixed))
        }
        Some(Saved::Not { why }) => format!("; its work is on no branch: {why}"),
        None => String::new(),
    }
}

fn why(state: &LoopState, word: StatusWord, orphan: Option<i32>) -> String {
    if let Some(departure) = &state.tenure.departure {
        return format!("its journal is at {} now", printable(&departure.to));
    }
    match (state.ended, word, orphan) {
        (Some(ended), _, _) => end::why(state, ended.end),
        (None, StatusWord::Crashed, Some(pid)) => {
            format!("its runner is gone, but its agent (pid {pid}) works on; resume and cancel end it")
        }
        (None, StatusWord::Crashed, None) => {
            let what = if state.is_in_session() { "its session" } else { RUNNER };
            gone(what, state.in_flight().is_some())
        }
        (None, _, _) => progress::why(state),
    }
}

/// What a person has to do for it to continue.
pub(super) fn needs(state: &LoopState, word: StatusWord) -> Option<String> {
    let id = &state.spec.id;
    if let Some(objection) = state.signatures.objection() {
        return match objection.remedy() {
            _ if word == StatusWord::Running => None,
            Remedy::StartAnew => {
                Some(format!("look at its work with refrain diff {id}, then start another loop"))
            }
            Remedy::SetAside => Some(format!(
                "refrain verify {id}; refrain resume {id} puts that record and all after it aside"
            )),
            Remedy::TrustKey => {
                Some("add that key to [trust] signers in your config.toml if it is yours".to_owned())
            }
        };
    }
    let refusal = state.resume(&Grant::default()).err();
    let resume = match (&state.spec.task, refusal.as_ref().and_then(Refusal::flag)) {
        (Some(task), _) => format!("refrain plan resume {}", task.plan),
        (None, Some(flag)) => format!("refrain resume {id} {flag}"),
        (None, None) => format!("refrain resume {id}"),
    };
    if let Some(End::BudgetExceeded { by: Some(by) }) = state.ended.map(|ended| ended.end) {
        return Some(more_money(&by, &state.spec, &resume, "loop"));
    }
    match word {
        StatusWord::Moved => state.tenure.departure.as_ref().map(|departure| {
            let to = printable(&departure.to);
            format!(
                "refrain move {id} --from {to} takes it back, unless another machine has taken it over; refrain archive {id} \
                 removes it from the list here"
            )
        }),
        StatusWord::Crashed if state.cancel.is_some() => Some(format!("refrain cancel {id}")),
        // No iteration more and no words let the agent end by itself, and a loop keeps these limits.
        StatusWord::IterationCap | StatusWord::Stuck if let Some((option, _)) = end::cut_short(state) => {
            Some(match &state.spec.task {
                Some(_) => format!("start the plan anew with a larger {option}"),
                None => format!("start another loop with a larger {option}; if it makes progress, {resume}"),
            })
        }
        StatusWord::IterationCap | StatusWord::TimedOut | StatusWord::Stuck if state.spec.task.is_some() => {
            Some(format!("say what it overlooks with {}", tell(state)))
        }
        StatusWord::Crashed
        | StatusWord::Paused
        | StatusWord::IterationCap
        | StatusWord::BudgetExceeded
        | StatusWord::TimedOut => Some(resume),
        StatusWord::Stuck => {
            Some(format!("say what it overlooks with refrain steer {id} TEXT, then {resume}"))
        }
        StatusWord::Blocked => Some(match state.ended.map(|ended| ended.end) {
            Some(End::Blocked { why }) => block::cure(state, why, resume),
            Some(_) | None => block::see_why(state, &resume),
        }),
        StatusWord::Running | StatusWord::Waiting if state.blocked > 0 => Some(format!(
            "its agent says in {} that it is blocked{}: tell it what to do with refrain answer {id} TEXT",
            state.spec.state_file(),
            needed(state).map(|needed| format!(" ({needed})")).unwrap_or_default()
        )),
        StatusWord::Running
        | StatusWord::Waiting
        | StatusWord::Completed
        | StatusWord::Cancelled
        | StatusWord::Failed => None,
    }
}

/// Why a loop or plan that has not ended does not go on.
pub(super) fn gone(what: &str, is_interrupted: bool) -> String {
    let attempt = if is_interrupted { ", and the interrupted attempt does not count" } else { "" };
    format!("{what} is gone; nothing is lost{attempt}")
}

/// The question of an agent that is blocked.
pub(super) fn question(state: &LoopState, word: StatusWord) -> Option<String> {
    let is_asking = match state.ended.map(|ended| ended.end) {
        None => !word.has_stopped() && state.blocked > 0,
        Some(end) => end == End::Blocked { why: BlockReason::StateFile },
    };
    needed(state).filter(|_| is_asking)
}
