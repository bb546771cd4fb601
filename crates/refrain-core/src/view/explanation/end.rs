//! Why a loop has ended.

use super::block::{self, stuck, touched};
use super::statement::{asked_by, by_person, gates_ran};
use crate::event::{ClaimSource, End};
use crate::r#loop::{Approval, LoopState, Outcome};
use crate::spec::Spec;
use crate::view::sum;

pub(super) fn why(state: &LoopState, end: End) -> String {
    match end {
        End::Completed { claim } => completed(state, claim),
        End::Stuck => stuck(state),
        End::Cancelled => asked_by(state.cancelled_by, "by a person").to_owned(),
        End::IterationCap => iteration_cap(state),
        End::TimedOut => "the loop's own duration is over".to_owned(),
        End::BudgetExceeded { by: None } => budget(state),
        End::BudgetExceeded { by: Some(by) } => by.sentence(),
        End::Paused => asked_by(state.paused_by, by_person(state.pause_request.is_some())).to_owned(),
        End::Blocked { why } => block::why(state, why),
    }
}

fn completed(state: &LoopState, claim: ClaimSource) -> String {
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
        false => format!("{who}{}; {}", approved(state), unverified(&state.spec)),
    }
}

fn iteration_cap(state: &LoopState) -> String {
    let (n, s) = (state.charged, if state.charged == 1 { "" } else { "s" });
    let each = if n == 1 { "" } else { "each " };
    match (failing(state), state.spec.has_hard_gates()) {
        _ if let Some(touched) = touched(state) => format!("{n} iteration{s}, and {touched}"),
        (gates, has_gates) if let Some((_, stopped)) = cut_short(state) => {
            let gates =
                gates.filter(|_| has_gates).map_or_else(String::new, |gates| format!(", and {gates}"));
            format!("{n} iteration{s}, {each}{stopped}{gates}")
        }
        (Some(gates), true) => format!("{n} iteration{s}, and {gates}"),
        (_, true) => format!("{n} iteration{s} without a claim that its gates proved"),
        (_, false) => format!("{n} iteration{s} without a claim"),
    }
}

/// The option whose limit stopped the agent in each iteration that counts, and what it did; none if one ended by itself.
pub(super) fn cut_short(state: &LoopState) -> Option<(&'static str, String)> {
    let mut outcomes = state.attempts.iter().filter(|attempt| attempt.charged).map(|attempt| attempt.outcome);
    let first = outcomes.next()?;
    let (option, limit, stopped) = if first == Outcome::TimeLimit {
        ("--timeout", state.limits.timeout?, "stopped at its time limit")
    } else if first == Outcome::Silence {
        ("--idle-timeout", state.limits.idle_timeout?, "stopped because it printed nothing")
    } else {
        return None;
    };
    outcomes.all(|outcome| outcome == first).then(|| (option, format!("{stopped} ({option} {limit})")))
}

/// The gates that passed, for a loop that its gates alone completed.
fn all_passed(spec: &Spec) -> &'static str {
    match (spec.completes_by_gate(), spec.gates.iter().filter(|gate| gate.hard).count()) {
        (true, 1) => "the success command",
        (true, _) => "the success command and every required gate",
        (false, _) => "every required gate",
    }
}

pub(super) fn asked_are_done(state: &LoopState) -> String {
    match state.charged {
        1 => "the iteration that was asked for is done".to_owned(),
        n => format!("the {n} iterations that were asked for are done"),
    }
}

/// A loop that was asked for a number of iterations, and did them.
fn counted(state: &LoopState) -> String {
    let done = asked_are_done(state);
    let (proven, approved) = (proven(state), approved(state));
    match (state.is_proven(), failing(state)) {
        (true, _) => format!("{done}, and every required gate passed{proven}{approved}"),
        (false, _) if let Some(touched) = touched(state) => format!("{done}; unverified, as {touched}"),
        (false, Some(gates)) if state.spec.has_hard_gates() => format!("{done}; unverified, as {gates}"),
        (false, _) if state.spec.has_hard_gates() => {
            format!("{done}; unverified, as not every required gate passed")
        }
        (false, _) => format!("{done}{approved}; {}", unverified(&state.spec)),
    }
}

/// Why no gate verified the work of a loop without required gates.
fn unverified(spec: &Spec) -> &'static str {
    match spec.untrusted.is_empty() {
        true if !spec.gates.is_empty() => "unverified, as no required gate checks it",
        true => "unverified, as no gate checks it",
        false => "unverified, as its gates are not trusted and were left out",
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

fn failing(state: &LoopState) -> Option<String> {
    let proof = state.proof.as_ref()?;
    let names: Vec<&str> =
        proof.failing(&state.spec).filter_map(|it| Some(it.spec(&state.spec)?.name.as_str())).collect();
    match (names.as_slice(), gates_ran(state)) {
        ([], _) => proof.instability(),
        ([one], None) => Some(format!("gate {one} fails")),
        (many, None) => Some(format!("gates {} fail", many.join(", "))),
        ([one], Some(when)) => Some(format!("gate {one}, which ran last {when}, failed then")),
        (many, Some(when)) => Some(format!("gates {}, which ran last {when}, failed then", many.join(", "))),
    }
}

/// The cap that is used up, or would be.
fn budget(state: &LoopState) -> String {
    let (tokens, money) = (state.spent.tokens.counted(), state.counted().cost.unwrap_or_default());
    let used = sum(&format!("{tokens}"), state.spent.at_least);
    let assumed = state.assumed.assumed_part();
    let cost = sum(&format!("{money}"), state.spent.cost_at_least && assumed.is_empty());
    let more = "; another iteration like the last could pass the cap";
    match (state.limits.max_cost, state.limits.max_tokens) {
        (Some(cap), _) if money >= cap => format!("{cost} of {cap} spent{assumed}"),
        (_, Some(cap)) if tokens >= cap => format!("{used} of {cap} tokens used"),
        (Some(cap), _) if money.0.saturating_add(state.likely_use().cost.unwrap_or_default().0) > cap.0 => {
            format!("{cost} of {cap} spent{assumed}{more}")
        }
        (_, Some(cap)) => format!("{used} of {cap} tokens used{more}"),
        (_, None) => "nothing is left".to_owned(),
    }
}
