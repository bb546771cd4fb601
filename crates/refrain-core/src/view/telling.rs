//! Sentences for people: why a loop has its status, and what they have to do.

use jiff::Timestamp;

use super::{StatusWord, sum, with_yours};

use super::loop_parts::published;
use crate::agent::Usd;
use crate::budget::{CapKind, CapUsage};
use crate::event::{Asker, Blocked, ClaimSource, End, Exit, WaitKind};
use crate::gate::{NOT_FOUND, missing_program};
use crate::git::{CommitResult, Skipped};
use crate::r#loop::{Approval, GateFailure, Grant, LoopState, Outcome, Phase, Proving, Saved};
use crate::machine::Refusal;
use crate::protect::Touched;
use crate::session::{MAX_IDLE_TURNS, Session};
use crate::spec::Spec;
use crate::stuck::{Pattern, Verdict};
use crate::text::{printable, squeeze};

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
    why.push_str(&kept(state));
    if let Some(secret) = state.git.exposed.first() {
        why.push_str(&format!("; a secret seems to be in the history: {secret}"));
        let more = state.git.exposed.len() - 1;
        if more > 0 {
            why.push_str(&format!(", and {more} more"));
        }
    }
    if let Some(there) = published::whereabouts(state) {
        why.push_str(&format!("; {there}"));
    }
    match state.git.last.as_ref().map(|last| (last.iteration, &last.result)) {
        Some((iteration, CommitResult::Skipped(skipped)))
            if state.ended.is_some() && *skipped != Skipped::Nothing =>
        {
            format!("{why}; iteration {iteration} is not committed: {skipped}")
        }
        _ => why,
    }
}

/// In what way it makes no progress.
fn stuck(state: &LoopState) -> String {
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

/// The source of a stop request; `person` are the words for a person.
pub(super) fn asked_by(by: Option<Asker>, person: &'static str) -> &'static str {
    match by {
        Some(Asker::Agent) => "by an agent",
        Some(Asker::Unknown) => "by an unknown sender",
        Some(Asker::Person) | None => person,
    }
}

/// How a person paused it: by a request, or with a signal to the runner.
pub(super) fn by_person(is_requested: bool) -> &'static str {
    if is_requested { "by a person" } else { "by a signal to its runner (Ctrl-C or SIGTERM)" }
}

fn why(state: &LoopState, word: StatusWord, orphan: Option<i32>) -> String {
    let flight = state.in_flight();
    if let Some(departure) = &state.tenure.departure {
        return format!("moved to {}", printable(&departure.to));
    }
    match (state.ended.map(|ended| ended.end), word) {
        (Some(End::Completed { claim }), _) => {
            let who = match claim {
                ClaimSource::Promise => "the agent made its promise",
                ClaimSource::StateFile => "the agent set status: done in state.md",
                ClaimSource::ExitCode => "the command ended with exit code 0",
                ClaimSource::Gates | ClaimSource::Result => {
                    let gates = all_passed(&state.spec);
                    let tests = without_tests(state);
                    return format!("{gates} passed{}{}{tests}", proven(state), approved(state));
                }
                ClaimSource::Count => return counted(state),
            };
            match state.is_proven() {
                true => {
                    format!("{who}, and every required gate passed{}{}", proven(state), approved(state))
                }
                false if state.spec.has_hard_gates() => {
                    format!("{who}{}{}", approved(state), without_tests(state))
                }
                false => format!("{who}{}; unverified, as no gate checks it", approved(state)),
            }
        }
        (Some(End::Stuck), _) => stuck(state),
        (Some(End::Cancelled), _) => asked_by(state.cancelled_by, "by a person").to_owned(),
        (Some(End::IterationCap), _) => {
            let (n, s) = (state.charged, if state.charged == 1 { "" } else { "s" });
            match (failing(state), state.spec.has_hard_gates()) {
                _ if let Some(touched) = touched(state) => format!("{n} iteration{s}, and {touched}"),
                (Some(gates), true) => format!("{n} iteration{s}, and {gates}"),
                (_, true) => format!("{n} iteration{s} without a claim that its gates proved"),
                (_, false) => format!("{n} iteration{s} without a claim"),
            }
        }
        (Some(End::TimedOut), _) => "the loop's own duration is over".to_owned(),
        (Some(End::BudgetExceeded { by: None }), _) => budget(state),
        (Some(End::BudgetExceeded { by: Some(by) }), _) => shared_budget(&by),
        (Some(End::Paused), _) => asked_by(state.paused_by, by_person(state.is_pause_requested)).to_owned(),
        (Some(End::Blocked { why }), _) => match why {
            Blocked::Refunds if is_unresponsive(state) => told(
                "the agent printed no event before its time limit, and the last three attempts were lost",
                state,
            ),
            Blocked::Refunds => "three attempts in a row were lost with their runner or keeper".to_owned(),
            Blocked::Churn => told("the agent failed at once three times in a row", state),
            Blocked::AgentMissing => match last_error(state) {
                Some(error) => format!("{} could not be started: {error}", state.spec.agent.program),
                None => format!("{} could not be started", state.spec.agent.program),
            },
            Blocked::GateMissing => cannot_run(state).unwrap_or_else(|| "a gate cannot run".to_owned()),
            Blocked::Login => told("the agent is not logged in", state),
            Blocked::Forbidden => told("refused by the provider (403)", state),
            Blocked::Credit => told("there is no money left at the provider", state),
            Blocked::Model => told("there is no such model", state),
            Blocked::Setup => told("the agent refused to start", state),
            Blocked::Session => told("the session to go on with does not exist", state),
            Blocked::Limit => told("the provider's limit is reset too late to wait for it", state),
            Blocked::Outage => told("the provider did not work for too long", state),
            Blocked::Stuck => stuck(state),
            Blocked::Repository => match &state.git.refused {
                Some(error) => format!("git did not do what the loop needs: {error}"),
                None => "git did not do what the loop needs".to_owned(),
            },
            Blocked::CostUnknown if state.limits.max_cost.is_some() => {
                format!("{} did not say what it cost, so --max-cost cannot be kept", state.spec.agent.kind)
            }
            Blocked::CostUnknown => {
                let kind =
                    state.spec.agents().find(|agent| !agent.tells_cost()).unwrap_or(&state.spec.agent).kind;
                format!("{kind} does not say what it costs, so the caps of [budget] cannot be kept")
            }
            Blocked::GaveUp => {
                let reason = state.given_up.as_deref().map(|why| squeeze(&printable(why)));
                let reason = reason.unwrap_or_else(|| "it gave no reason".to_owned());
                format!("the agent gave the task up: {reason}")
            }
            Blocked::Publish => published::blocked(state),
            Blocked::Approval => awaits_approval(state),
            Blocked::StateFile => match needed(state) {
                Some(question) => format!("the agent asks: {question}"),
                None => format!("the agent left status: blocked in {}", state.spec.state_file()),
            },
            Blocked::Idle => {
                format!("its session ended {MAX_IDLE_TURNS} turns in a row without doing anything")
            }
            Blocked::OutputLost => match last_error(state) {
                Some(error) => format!("what the agent prints cannot be kept: {error}"),
                None => "what the agent prints cannot be kept".to_owned(),
            },
        },
        (None, StatusWord::Crashed) => match orphan {
            Some(pid) => {
                format!("its runner is gone, but its agent (pid {pid}) works on; resume and cancel end it")
            }
            None => {
                let what = if state.is_in_session() { "its session" } else { "its runner" };
                gone(what, state.updated_at)
            }
        },
        (None, _) => match (state.wait, flight) {
            (Some(wait), _) => match wait.kind {
                WaitKind::Pace if state.unneeded > 0 => {
                    "found nothing to do, and looks again later".to_owned()
                }
                WaitKind::Pace => "rests before the next iteration".to_owned(),
                // It also waits for the account's sake, without a fault of its own.
                WaitKind::Limit if state.provider_wait().is_none() => {
                    "waits for the limit of its account to be reset".to_owned()
                }
                WaitKind::Limit => told("waits for the provider's limit to be reset", state),
                WaitKind::Outage => told("waits for the provider to work again", state),
                WaitKind::Checks => published::checks(state),
                WaitKind::Remote => published::remote(state),
            },
            (None, Some(flight)) if state.is_in_session() => {
                let session = state.session.as_ref().and_then(Session::short);
                let session = session.map_or_else(|| "its session".to_owned(), |id| format!("session {id}"));
                format!("{session} works on attempt {}", flight.id)
            }
            (None, Some(flight)) if flight.child.stopping.is_some() => {
                format!("attempt {} is ending", flight.id)
            }
            (None, Some(flight)) => format!("attempt {} is running", flight.id),
            (None, None) if state.sweeping => "what the agent left running is being ended".to_owned(),
            (None, None) if let Some(proving) = state.proving() => gates(state, proving),
            (None, None) if let Some(publishing) = state.publishing() => published::doing(state, publishing),
            (None, None) if matches!(state.phase, Phase::Idle { uncommitted: true, .. }) => {
                format!("iteration {} is being committed", state.iteration)
            }
            (None, None) => "between two iterations".to_owned(),
        },
    }
}

/// The gates that passed, for a loop that its gates alone completed.
fn all_passed(spec: &Spec) -> &'static str {
    match (spec.completes_by_gate(), spec.gates.iter().filter(|gate| gate.hard).count()) {
        (true, 1) => "the success command",
        (true, _) => "the success command and every required gate",
        (false, _) => "every required gate",
    }
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

/// A loop that was asked for a number of iterations, and did them.
fn counted(state: &LoopState) -> String {
    let done = match state.charged {
        1 => "the iteration that was asked for is done".to_owned(),
        n => format!("the {n} iterations that were asked for are done"),
    };
    let (proven, approved) = (proven(state), approved(state));
    match (state.is_proven(), failing(state)) {
        (true, _) => format!("{done}, and every required gate passed{proven}{approved}"),
        (false, _) if let Some(touched) = touched(state) => format!("{done}; unverified, as {touched}"),
        (false, Some(gates)) if state.spec.has_hard_gates() => format!("{done}; unverified, as {gates}"),
        (false, _) if state.spec.has_hard_gates() => {
            format!("{done}; unverified, as not every required gate passed")
        }
        (false, _) => format!("{done}{approved}; unverified, as no gate checks it"),
    }
}

fn proven(state: &LoopState) -> String {
    state.proven_tree().map_or_else(String::new, |tree| {
        let more = if state.is_proven_beyond_its_tree() { " and changes that it does not show" } else { "" };
        format!(" on tree {}{more}", tree.short())
    })
}

/// Says so if the loop was to make tests, and there are none.
fn without_tests(state: &LoopState) -> &'static str {
    if state.lacks_tests() { "; unverified, as there are no tests" } else { "" }
}

fn approved(state: &LoopState) -> &'static str {
    match state.proof.as_ref().and_then(|proof| proof.approval) {
        Some(Approval::Given(_)) => "; a person approved it",
        Some(Approval::Awaited | Approval::Refused(_)) | None => "",
    }
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
    before
        + &match state.spec.has_hard_gates() {
            true => format!(
                "it claims to be done, and every required gate passed{tree}: a person is to approve it"
            ),
            false => format!("it claims to be done{tree}, which no gate checks: a person is to approve it"),
        }
}

/// What the person does who has to approve.
fn decide(state: &LoopState, resume: &str) -> String {
    let id = &state.spec.id;
    let tree = state.awaits_approval().and_then(|awaited| awaited.tree);
    let look = if tree.is_some() { "diff" } else { "logs" };
    format!(
        "see what it changed with refrain {look} {id}, then refrain approve {id}; or send it back: refrain steer {id} TEXT, then {resume}"
    )
}

fn touched(state: &LoopState) -> Option<String> {
    let touched = &state.proof.as_ref()?.candidate.touched;
    let more = if touched.len() > 1 { format!(" (and {} more)", touched.len() - 1) } else { String::new() };
    Some(match touched.first()? {
        one @ (Touched::Link(_) | Touched::Hidden(_)) => format!("{one}{more}"),
        one @ (Touched::Path(_) | Touched::Part(_) | Touched::Program(_)) => {
            format!("what is protected is touched: {one}{more}")
        }
    })
}

fn failing(state: &LoopState) -> Option<String> {
    let proof = state.proof.as_ref()?;
    let names: Vec<&str> =
        proof.failing(&state.spec).filter_map(|it| Some(it.spec(&state.spec)?.name.as_str())).collect();
    match names.as_slice() {
        [] => proof.instability(),
        [one] => Some(format!("gate {one} fails")),
        many => Some(format!("gates {} fail", many.join(", "))),
    }
}

fn gates(state: &LoopState, proving: &Proving) -> String {
    let about = match proving.of {
        Some(id) => format!("behind attempt {id}"),
        None => "before the first iteration".to_owned(),
    };
    let running = proving.running.as_ref();
    match running.and_then(|running| Some((running, state.spec.gates.get(running.gate)?))) {
        Some((running, gate)) if running.child.stopping.is_some() => format!("gate {} is ending", gate.name),
        Some((_, gate)) => format!("gate {} is running {about}", gate.name),
        None => format!("the gates are asked {about}"),
    }
}

/// The system's message when the last attempt failed to start.
fn last_error(state: &LoopState) -> Option<String> {
    let last = state.attempts.last()?;
    let kept = last.finished.as_ref().and_then(|finished| finished.output_error.clone());
    last.error.clone().or(kept)
}

/// The words, and what the agent's program said last.
fn told(words: &str, state: &LoopState) -> String {
    match state.said_of_trouble() {
        Some(said) => format!("{words}: {}", squeeze(&printable(said))),
        None => words.to_owned(),
    }
}

/// Whether the last attempt was stopped before its program printed an event.
fn is_unresponsive(state: &LoopState) -> bool {
    state.attempts.last().is_some_and(|last| last.outcome == Outcome::Unresponsive)
}

/// The cap that is used up, or would be.
fn budget(state: &LoopState) -> String {
    let (tokens, money) = (state.spent.tokens.counted(), state.spent.cost.unwrap_or_default());
    let used = sum(&format!("{tokens}"), state.spent.at_least);
    let cost = sum(&format!("{money}"), state.spent.cost_at_least);
    let more = "; another iteration like the last could pass the cap";
    match (state.limits.max_cost, state.limits.max_tokens) {
        (Some(cap), _) if money >= cap => format!("{cost} of {cap} spent"),
        (_, Some(cap)) if tokens >= cap => format!("{used} of {cap} tokens used"),
        (Some(cap), _) if money.0.saturating_add(state.likely_use().cost.unwrap_or_default().0) > cap.0 => {
            format!("{cost} of {cap} spent{more}")
        }
        (_, Some(cap)) => format!("{used} of {cap} tokens used{more}"),
        (_, None) => "nothing is left".to_owned(),
    }
}

/// The shared cap that is used up, and when there is more.
fn shared_budget(by: &CapUsage) -> String {
    let reserved = match by.reserved {
        Usd(0) => String::new(),
        reserved => format!(" and {reserved} reserved for loops at work"),
    };
    let more = match by.which {
        CapKind::Day | CapKind::ProjectDay => {
            format!("on {}{reserved}; there is more from midnight on", by.day)
        }
        CapKind::Project => format!("so far{reserved}"),
    };
    format!("{} of {by} ({}) spent {more}", by.spent, by.which.key())
}

/// What a person has to do for it to continue.
pub(super) fn needs(state: &LoopState, word: StatusWord) -> Option<String> {
    let id = &state.spec.id;
    if let Some(objection) = state.signatures.objection() {
        return match objection.is_forged() {
            _ if word == StatusWord::Running => None,
            true => Some(format!(
                "refrain verify {id}; refrain resume {id} puts that record and all behind it aside"
            )),
            false => Some(format!(
                "add that key to [trust] signers in your config.toml if it is yours, then refrain verify {id}"
            )),
        };
    }
    let resume = match state.resume(&Grant::default()) {
        Err(Refusal::NothingGranted { flag, .. }) => format!("refrain resume {id} {flag}"),
        Ok(_)
        | Err(
            Refusal::Final(_)
            | Refusal::Stopped(_)
            | Refusal::NotALoop
            | Refusal::NoSandbox
            | Refusal::Moved { .. }
            | Refusal::Immovable(_)
            | Refusal::NotAsked(_)
            | Refusal::AnotherTree { .. }
            | Refusal::TooMany { .. }
            | Refusal::TooLong { .. }
            | Refusal::SteeringTooLong { .. }
            | Refusal::Unreported { .. },
        ) => {
            format!("refrain resume {id}")
        }
    };
    if let Some(End::BudgetExceeded { by: Some(by) }) = state.ended.map(|ended| ended.end) {
        let (key, is_pinned) = (by.which.key(), state.spec.caps.of(by.which) == Some(by.cap));
        return Some(match (by.which, is_pinned) {
            (CapKind::Day | CapKind::ProjectDay, true) => format!("{resume} from midnight on"),
            (CapKind::Day | CapKind::ProjectDay, false) => {
                format!("{resume} from midnight on, or with a higher {key} in your config.toml")
            }
            (CapKind::Project, true) => format!("raise {key} in refrain.toml, then start a new loop"),
            (CapKind::Project, false) => format!("raise {key} in your config.toml, then {resume}"),
        });
    }
    match word {
        StatusWord::Moved => state.tenure.departure.as_ref().map(|departure| {
            format!("refrain move {id} --from {} takes it back, unless another machine has taken it over", printable(&departure.to))
        }),
        StatusWord::Crashed if state.cancel.is_some() => Some(format!("refrain cancel {id}")),
        StatusWord::Crashed
        | StatusWord::Paused
        | StatusWord::IterationCap
        | StatusWord::BudgetExceeded
        | StatusWord::Stuck
        | StatusWord::TimedOut => Some(resume),
        StatusWord::Blocked => Some(match state.ended.map(|ended| ended.end) {
            Some(End::Blocked { why: Blocked::AgentMissing }) => {
                format!("see why with refrain show {id}, make it start, then {resume}")
            }
            Some(End::Blocked { why: Blocked::OutputLost }) => format!("make room, then {resume}"),
            Some(End::Blocked { why: Blocked::GateMissing }) => make_it_run(state, &resume).unwrap_or(resume),
            Some(End::Blocked { why: Blocked::Login }) => {
                format!("log in with {}, then {resume}", state.spec.agent.program)
            }
            Some(End::Blocked { why: Blocked::Limit | Blocked::Outage }) => {
                let hours = state.hours_to_wait();
                format!("{resume} when it works again, or {resume} --retry-for {hours}h to wait that long")
            }
            Some(End::Blocked { why: Blocked::Forbidden }) => {
                format!("find out what refuses it (the provider, a proxy, a firewall), then {resume}")
            }
            Some(End::Blocked { why: Blocked::Repository }) => {
                format!("mend the repository, then {resume}")
            }
            Some(End::Blocked { why: Blocked::Publish }) => format!("{}, then {resume}", published::cure(state)),
            Some(End::Blocked { why: Blocked::Approval }) => decide(state, &resume),
            Some(End::Blocked { why: Blocked::CostUnknown }) if state.limits.max_cost.is_none() => {
                "start it anew with an agent that says what it costs or a price for its model, or take the caps out of \
                 the configuration"
                    .to_owned()
            }
            Some(End::Blocked { why: Blocked::CostUnknown }) => {
                "start it anew with --max-tokens in place of --max-cost".to_owned()
            }
            Some(End::Blocked { why: Blocked::Credit }) => format!("pay the provider, then {resume}"),
            Some(End::Blocked { why: Blocked::Setup | Blocked::Model | Blocked::Session }) => {
                format!("mend what {} was told or configured to, then {resume}", state.spec.agent.program)
            }
            Some(End::Blocked { why: Blocked::StateFile }) => {
                format!("answer it and continue with refrain answer {id} TEXT")
            }
            Some(End::Blocked { why: Blocked::Stuck | Blocked::GaveUp | Blocked::Idle }) => {
                format!("tell it what to do and continue with refrain answer {id} TEXT")
            }
            Some(
                End::Blocked { why: Blocked::Refunds | Blocked::Churn }
                | End::Completed { .. }
                | End::Cancelled
                | End::IterationCap
                | End::Stuck
                | End::TimedOut
                | End::BudgetExceeded { .. }
                | End::Paused,
            )
            | None => format!("see why with refrain logs {id}, mend it, then {resume}"),
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

/// Since when a loop or plan that has not ended has had no runner.
pub(super) fn gone(what: &str, since: Timestamp) -> String {
    let since = since.strftime("%Y-%m-%d %H:%M:%S UTC");
    format!("{what} is gone since {since}; nothing is lost, and the interrupted attempt does not count")
}

/// The question of an agent that is blocked.
pub(super) fn question(state: &LoopState, word: StatusWord) -> Option<String> {
    let is_asking = match state.ended.map(|ended| ended.end) {
        None => !word.has_stopped() && state.blocked > 0,
        Some(end) => end == End::Blocked { why: Blocked::StateFile },
    };
    needed(state).filter(|_| is_asking)
}

/// What the agent that is blocked says that it needs, else the last sentence of its message.
fn needed(state: &LoopState) -> Option<String> {
    let finished = state.last_charged()?.finished.as_ref()?;
    let said = match &finished.needs {
        Some(needs) => squeeze(&printable(needs)),
        None => last_sentence(&squeeze(&printable(&finished.preview))).to_owned(),
    };
    (!said.is_empty()).then_some(said)
}

fn last_sentence(line: &str) -> &str {
    let end = line.trim_end_matches(['.', '!', '?', ' ']).len();
    let begins = [". ", "! ", "? "].iter().filter_map(|mark| Some(line[..end].rfind(mark)? + mark.len()));
    &line[begins.max().unwrap_or(0)..]
}
