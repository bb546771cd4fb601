//! The part of the prompt on gates that did not pass.

use std::fmt::Write;

use super::parts::{Excerpt, last_iteration};
use super::quote::QuotedLogs;
use crate::gate::{Check, GateSpec};
use crate::r#loop::{GateFailure, GateResult, LoopState, Proof};
use crate::text::{clip, inline_code, printable, squeeze};

/// How many failed gates are quoted to the agent.
const MOST_GATES: usize = 5;

/// How much of a gate's command is shown before its output, in bytes.
const LONGEST_COMMAND: usize = 200;

/// The gates in the next prompt: those that failed after the last iteration, or before the first.
pub(crate) fn failed_gates(state: &LoopState) -> impl Iterator<Item = &GateResult> {
    let proof = match is_first(state) {
        true => state.baseline.as_ref(),
        false => last_iteration(state).and_then(|last| last.proof.as_ref()),
    };
    proof.into_iter().flat_map(|proof| &proof.results).filter(|result| !result.passed())
}

/// Whether no iteration of this loop is over yet.
fn is_first(state: &LoopState) -> bool {
    state.iteration <= state.spec.carried() + 1
}

/// The output of the failed gates, required gates first.
pub(crate) fn describe_gate_failures(
    state: &LoopState,
    quoted: QuotedLogs<'_>,
    excerpt: Excerpt,
) -> Vec<String> {
    let is_hard = |result: &&GateResult| result.spec(&state.spec).is_some_and(|gate| gate.hard);
    let (hard, soft): (Vec<_>, Vec<_>) = failed_gates(state).partition(is_hard);
    let unquoted: Vec<_> =
        hard.iter().skip(MOST_GATES).filter_map(|result| result.spec(&state.spec)).collect();
    let shown: Vec<_> = hard.into_iter().chain(soft).take(MOST_GATES).collect();
    let each = Excerpt { most: excerpt.most / shown.len().max(1), ..excerpt };
    let mut said: Vec<String> =
        shown.iter().filter_map(|result| describe_gate_failure(state, result, quoted, each)).collect();
    if !unquoted.is_empty() {
        let names: Vec<_> = unquoted.iter().map(|gate| gate.name.as_str()).collect();
        said.push(format!("FAILED TOO: gate {}.", names.join(", gate ")));
    }
    if !said.is_empty() && state.lay_on_theirs() {
        said.insert(
            0,
            "OTHERS' COMMITS CAME IN: others pushed to the branch while you worked. Your commits are on top of theirs now, and \
             the gates ran on both together: what fails may come from both. `git log` shows theirs."
                .to_owned(),
        );
    }
    let last = last_iteration(state).and_then(|last| last.proof.as_ref());
    if let Some(unstable) = last.and_then(Proof::instability) {
        said.push(format!(
            "CLAIM REFUSED: nothing is verified, because {unstable}. Add what they write to .gitignore, or keep them from \
             changing it."
        ));
    }
    let flaky = last.into_iter().flat_map(|proof| &proof.results).filter(|result| result.flaky);
    for gate in flaky.filter_map(|result| result.spec(&state.spec)) {
        said.push(format!("FLAKY: gate {} failed, and then passed on the same files.", gate.name));
    }
    said
}

/// Says that a person, who was asked last of all, did not approve it; their words, if any, are steering.
pub(super) fn describe_refused_approval(state: &LoopState) -> Option<String> {
    last_iteration(state)?.proof.as_ref().filter(|proof| proof.is_refused())?;
    let gates = if state.spec.has_hard_gates() { ", although every required gate passed" } else { "" };
    let words = match !state.steering.iter().any(|said| said.by.is_person()) {
        true => "They gave no reason: read the task again, and look for what is missing",
        false => "What they say about it is under STEERING",
    };
    Some(format!("CLAIM REFUSED: a person looked at your work and did not approve it{gates}. {words}."))
}

fn describe_gate_failure(
    state: &LoopState,
    result: &GateResult,
    quoted: QuotedLogs<'_>,
    excerpt: Excerpt,
) -> Option<String> {
    let (gate, failure) = (result.spec(&state.spec)?, result.failure.as_ref()?);
    let name = &gate.name;
    let claim = last_iteration(state).and_then(|last| last.claim);
    let mut text = match claim {
        _ if !gate.hard => format!("ADVISORY GATE FAILED: {name}"),
        _ if is_first(state) => format!("FAILED BEFORE YOU BEGAN: gate {name}"),
        Some(claim) if claim.is_said() => format!("CLAIM REFUSED: gate {name} failed"),
        Some(_) | None => format!("GATE FAILED: {name}"),
    };
    let why = match failure {
        GateFailure::Review(_) => "the reviewer refuses the work".to_owned(),
        GateFailure::Exit(_)
        | GateFailure::TimeLimit
        | GateFailure::NoTest(_)
        | GateFailure::NotStarted(_)
        | GateFailure::NoVerdict(_) => failure.to_string(),
    };
    let _ = write!(text, " ({}): {why}", describe_gate_check(gate));
    if !is_first(state) {
        text.push_str(&state.said_before(result, "run"));
    }
    if let GateFailure::Review(findings) = failure {
        // The findings say what to do, so they are quoted whole.
        let _ = write!(text, ".\n\nREVIEWER FEEDBACK:\n{}", excerpt.whole(findings.trim()));
        return Some(text);
    }
    let output = quoted.gate(result.gate).map(str::trim);
    match output.filter(|output| !output.is_empty()) {
        Some(output) => {
            let _ = write!(text, ". {}", excerpt.printed("It printed", output));
        }
        None => text.push('.'),
    }
    Some(text)
}

/// A gate on one line: a command as code, an agent in words.
fn describe_gate_check(gate: &GateSpec) -> String {
    let line = squeeze(&printable(&gate.check.to_string()));
    let line = clip(&line, LONGEST_COMMAND);
    match gate.check {
        Check::Command(_) => inline_code(&line),
        Check::Review(_) => line.into_owned(),
    }
}
