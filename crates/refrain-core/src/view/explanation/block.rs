//! Why a loop is blocked, and what its user does about it.

use super::end;
use super::statement::{needed, tell, told};
use crate::event::{BlockReason, Exit};
use crate::gate::{NOT_FOUND, missing_program};
use crate::git::SETUP_FAILED;
use crate::r#loop::{GateFailure, Grant, LoopState, Outcome};
use crate::machine::Refusal;
use crate::protect::ProtectionBreach;
use crate::session::MAX_IDLE_TURNS;
use crate::spec::Until;
use crate::stuck::{Pattern, Verdict};
use crate::text::{printable, squeeze};
use crate::view::loop_parts::publication;

/// What a program says that writes to a folder that its sandbox does not let it change (`EROFS`).
const READ_ONLY: &str = "Read-only file system";

/// Errors that have the same cause whichever program or step met them, and how to remove it.
const CAUSES: &[(&str, &str)] = &[
    ("No space left on device", "make room"),
    // What git says of it.
    ("Out of diskspace", "make room"),
    ("Too many open files", "raise the limit of open files (ulimit -n)"),
    (READ_ONLY, "make the file system writable"),
];

/// What stands before the question of an agent.
pub(crate) const ASKS: &str = "the agent asks: ";

pub(super) fn why(state: &LoopState, why: BlockReason) -> String {
    match why {
        // An attempt that came to its gates was not lost.
        BlockReason::Refunds if state.proving().is_some() => {
            "its gates were interrupted three times in a row: their runner or supervisor was lost".to_owned()
        }
        BlockReason::Refunds if is_unresponsive(state) => told(
            "the agent printed no event before its time limit, and the last three attempts were lost",
            state,
        ),
        BlockReason::Refunds => {
            "three attempts in a row were lost with their runner or supervisor".to_owned()
        }
        BlockReason::Churn => {
            let words = "the agent failed at once three times in a row";
            let last = state.attempts.last().and_then(|last| last.finished.as_ref());
            match last.map(|finished| finished.exit) {
                Some(Exit::Code(code)) if code != 0 => told(&format!("{words} with exit code {code}"), state),
                _ => told(words, state),
            }
        }
        BlockReason::AgentMissing => match last_error(state) {
            Some(error) => format!("{} could not be started: {error}", state.spec.agent.program),
            None => format!("{} could not be started", state.spec.agent.program),
        },
        BlockReason::GateMissing => cannot_run(state).unwrap_or_else(|| "a gate cannot run".to_owned()),
        BlockReason::Login => told("the agent is not logged in", state),
        BlockReason::Forbidden => told("refused by the provider (403)", state),
        BlockReason::Credit => told("there is no money left at the provider", state),
        BlockReason::Model => told("there is no such model", state),
        BlockReason::Setup => told("the agent refused to start", state),
        BlockReason::Session => told("the session to continue does not exist", state),
        BlockReason::Limit => told("the provider's limit is reset too late to wait for it", state),
        BlockReason::Outage => told("the provider did not work for too long", state),
        BlockReason::Stuck => stuck(state),
        BlockReason::Repository => match &state.git.refused {
            Some(error) if error.starts_with(SETUP_FAILED) => error.clone(),
            Some(error) => format!("git did not do what the loop needs: {error}"),
            None => "git did not do what the loop needs".to_owned(),
        },
        BlockReason::CostUnknown if state.limits.max_cost.is_some() => {
            format!("{} did not say what it cost, so --max-cost cannot be kept", state.spec.agent.kind)
        }
        BlockReason::CostUnknown => {
            let kind =
                state.spec.agents().find(|agent| !agent.tells_cost()).unwrap_or(&state.spec.agent).kind;
            format!("{kind} does not say what it costs, so the caps of [budget] cannot be kept")
        }
        BlockReason::GaveUp => {
            let reason = state.given_up.as_deref().map(|why| squeeze(&printable(why)));
            let reason = reason.unwrap_or_else(|| "it gave no reason".to_owned());
            format!("the agent gave the task up: {reason}")
        }
        BlockReason::Publish => publication::blocked(state),
        BlockReason::Approval => awaits_approval(state),
        BlockReason::StateFile => match needed(state) {
            Some(question) => format!("{ASKS}{question}"),
            None => format!("the agent left status: blocked in {}", state.spec.state_file()),
        },
        BlockReason::Idle => {
            format!("its session ended {MAX_IDLE_TURNS} turns in a row without doing anything")
        }
        BlockReason::OutputLost => match last_error(state) {
            Some(error) => format!("what the agent prints cannot be kept: {error}"),
            None => "what the agent prints cannot be kept".to_owned(),
        },
    }
}

/// What the user does; `resume` is the command that continues the loop.
pub(super) fn cure(state: &LoopState, reason: BlockReason, resume: String) -> String {
    let why = why(state, reason);
    let is_sandboxed = state.spec.sandbox.is_some() && why.contains(READ_ONLY);
    if is_sandboxed {
        let cure = cure_of(state, reason, resume);
        return format!("{cure}; the sandbox may have refused it: refrain docs sandbox");
    }
    let is_of_the_system =
        matches!(reason, BlockReason::AgentMissing | BlockReason::OutputLost | BlockReason::Repository);
    match CAUSES.iter().find(|(error, _)| is_of_the_system && why.contains(error)) {
        Some((_, cure)) => format!("{cure}, then {resume}"),
        None => cure_of(state, reason, resume),
    }
}

fn cure_of(state: &LoopState, why: BlockReason, resume: String) -> String {
    let id = &state.spec.id;
    match why {
        BlockReason::AgentMissing => {
            format!("see why with refrain show {id}, make it start, then {resume}")
        }
        BlockReason::OutputLost => format!("make room, then {resume}"),
        BlockReason::GateMissing => make_it_run(state, &resume).unwrap_or(resume),
        BlockReason::Login => {
            format!("log in with {}, then {resume}", state.spec.agent.program)
        }
        BlockReason::Limit | BlockReason::Outage if state.spec.task.is_some() => {
            format!("{resume} when it works again")
        }
        BlockReason::Limit | BlockReason::Outage => {
            let hours = state.hours_to_wait();
            format!("{resume} when it works again, or {resume} --retry-for {hours}h to wait that long")
        }
        BlockReason::Forbidden => {
            format!("find out what refuses it (the provider, a proxy, a firewall), then {resume}")
        }
        BlockReason::Repository => match &state.git.refused {
            Some(error) if error.starts_with(SETUP_FAILED) => format!(
                "make that command succeed, then {resume}, or correct [worktrees] setup and start the loop anew"
            ),
            _ => format!("repair the repository, then {resume}"),
        },
        BlockReason::Publish => format!("{}, then {resume}", publication::cure(state)),
        BlockReason::Approval => decide(state, &resume),
        BlockReason::CostUnknown if state.limits.max_cost.is_none() => {
            "start it anew with an agent that says what it costs or a price for its model, or take the caps out of \
             the configuration"
                .to_owned()
        }
        BlockReason::CostUnknown => {
            "start it anew with --max-tokens in place of --max-cost".to_owned()
        }
        BlockReason::Credit => format!("pay the provider, then {resume}"),
        BlockReason::Model => match (&state.spec.agent.model, &state.spec.agent.program) {
            (Some(model), program) => {
                format!("start the loop anew with another --model, or {resume} when {program} has {model}")
            }
            (None, program) => format!("correct the model in the settings of {program}, then {resume}"),
        },
        BlockReason::Setup | BlockReason::Session => format!(
            "correct the settings of {}, then {resume}, or start the loop anew with other options",
            state.spec.agent.program
        ),
        BlockReason::StateFile => {
            answer(state, "answer it", &resume)
        }
        BlockReason::Stuck | BlockReason::GaveUp | BlockReason::Idle => {
            answer(state, "tell it what to do", &resume)
        }
        BlockReason::Refunds | BlockReason::Churn => see_why(state, &resume),
    }
}

/// How a person answers. A loop whose limits are used up keeps the text, and continues with larger ones.
fn answer(state: &LoopState, what: &str, resume: &str) -> String {
    let lacks = || matches!(state.resume(&Grant::default()), Err(Refusal::NothingGranted { .. }));
    match state.spec.task {
        None if !state.steering.is_empty() => format!("give it the text that is queued: {resume}"),
        None if lacks() => format!("{what} with {}, then {resume}", tell(state)),
        _ => format!("{what} and continue with {}", tell(state)),
    }
}

pub(super) fn see_why(state: &LoopState, resume: &str) -> String {
    format!("see why with refrain logs {}, correct the cause, then {resume}", state.spec.id)
}

/// The gate that cannot run, and what it lacks.
fn cannot_run(state: &LoopState) -> Option<String> {
    let result = state.missing_gate()?;
    let name = &result.spec(&state.spec)?.name;
    let Some(GateFailure::Exit(Exit::Code(code))) = result.failure else { return None };
    let what = if code == NOT_FOUND { "was not found" } else { "may not be executed" };
    Some(match missing_program(&result.preview) {
        Some(program) => format!("gate {name} cannot run: {} {what} (exit code {code})", printable(program)),
        None => {
            let said = printable(&result.preview);
            let said = if said.is_empty() { said } else { format!(": {said}").into() };
            format!("gate {name} cannot run: its command {what} (exit code {code}){said}")
        }
    })
}

/// How to make the gate run that cannot.
fn make_it_run(state: &LoopState, resume: &str) -> Option<String> {
    let result = state.missing_gate()?;
    let program = missing_program(&result.preview).map_or("its program".into(), printable);
    Some(format!(
        "make {program} available to gate {}, then {resume}; or start the loop anew with a correct gate, or with \
         --allow-missing-gates if the agent is to create it",
        result.spec(&state.spec)?.name
    ))
}

/// The question for the person who has to approve.
fn awaits_approval(state: &LoopState) -> String {
    let tree = state.awaits_approval().and_then(|awaited| awaited.tree);
    let is_partial = state.proof.as_ref().is_some_and(|proof| proof.candidate.partial);
    let more = if is_partial { " and changes that it does not show" } else { "" };
    let tree = tree.map_or_else(String::new, |tree| format!(" on tree {}{more}", tree.short()));
    let before = state.approved.as_ref().filter(|(approved, _)| {
        state.awaits_approval().is_some_and(|awaited| awaited.attempt == approved.attempt)
    });
    let before = before.and_then(|(approved, _)| approved.tree.as_ref());
    let before = before.map_or_else(String::new, |tree| {
        format!("what was approved, tree {}, is another by now: ", tree.short())
    });
    let done = match state.spec.until {
        Until::Count => end::asked_are_done(state),
        Until::Complete | Until::Forever => "it claims to be done".to_owned(),
    };
    before
        + &match state.spec.has_hard_gates() {
            true => format!("{done}, and every required gate passed{tree}: a person is to approve it"),
            false => format!("{done}{tree}, which no gate checks: a person is to approve it"),
        }
}

/// What the person does who has to approve.
fn decide(state: &LoopState, resume: &str) -> String {
    let id = &state.spec.id;
    if !state.steering.is_empty() {
        return format!(
            "send it back with your text: {resume}; or refrain take-back {id}, then refrain approve {id}"
        );
    }
    let tree = state.awaits_approval().and_then(|awaited| awaited.tree);
    let look = if tree.is_some() { "diff" } else { "logs" };
    format!(
        "see what it changed with refrain {look} {id}, then refrain approve {id}; or send it back: refrain steer {id} TEXT, then {resume}"
    )
}

/// The system's message when the last attempt failed to start.
fn last_error(state: &LoopState) -> Option<String> {
    let last = state.attempts.last()?;
    let kept = last.finished.as_ref().and_then(|finished| finished.output_error.clone());
    last.error.clone().or(kept)
}

/// Whether the last attempt was stopped before its program printed an event.
fn is_unresponsive(state: &LoopState) -> bool {
    state.attempts.last().is_some_and(|last| last.outcome == Outcome::Unresponsive)
}

/// In what way it makes no progress.
pub(super) fn stuck(state: &LoopState) -> String {
    let why = pattern(state);
    match end::cut_short(state) {
        Some((_, stopped)) => format!("{why}; each was {stopped}"),
        None => why,
    }
}

fn pattern(state: &LoopState) -> String {
    let (Verdict::Stuck(pattern) | Verdict::Shift(pattern)) = state.verdict() else {
        return "it makes no progress".to_owned();
    };
    let count = state.progress.stuck.count_of(pattern);
    match pattern {
        Pattern::SameWork if state.progress.stuck.is_back() => {
            format!(
                "{count} iterations in a row did not change the work, or took it back to an earlier state"
            )
        }
        Pattern::SameWork => format!("{count} iterations in a row did not change the work"),
        Pattern::RefusedClaim | Pattern::NewFailure | Pattern::OldFailure => {
            match state.proof.as_ref().and_then(|proof| proof.failing(&state.spec).next()) {
                Some(failing) if let Some(gate) = failing.spec(&state.spec) => {
                    format!("gate {} failed in the same way {count} times in a row", gate.name)
                }
                None if let Some(refused) =
                    touched(state).or_else(|| state.proof.as_ref()?.instability()) =>
                {
                    format!("{refused}, {count} times in a row")
                }
                Some(_) | None => format!("the same failure came {count} times in a row"),
            }
        }
    }
}

pub(super) fn touched(state: &LoopState) -> Option<String> {
    let touched = &state.proof.as_ref()?.candidate.touched;
    let more = if touched.len() > 1 { format!(" (and {} more)", touched.len() - 1) } else { String::new() };
    Some(match touched.first()? {
        one @ (ProtectionBreach::Link(_)
        | ProtectionBreach::Hidden(_)
        | ProtectionBreach::Unlike(_)
        | ProtectionBreach::Submodule(_)) => format!("{one}{more}"),
        one @ (ProtectionBreach::Path(_) | ProtectionBreach::Part(_) | ProtectionBreach::Program(_)) => {
            format!("what is protected is touched: {one}{more}")
        }
    })
}
