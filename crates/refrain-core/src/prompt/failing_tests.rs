//! Which tests still fail, out of how many, and whether they became fewer.

use std::collections::BTreeSet;

use super::gates::failed_gates;
use super::parts::last_iteration;
use super::quote::QuotedLogs;
use crate::fingerprint::{FailingTests, failing_tests};
use crate::gate::{Check, GateSpec};
use crate::r#loop::{GateResult, LoopState};
use crate::text::clip;

/// How many tests of a gate are named.
const MOST_NAMED: usize = 10;
/// How many tests are named that fail no longer, and how many that fail only now.
const MOST_CHANGED: usize = 5;
/// The longest name, in bytes.
const LONGEST_NAME: usize = 120;

/// The result of a gate before its last one, whose output is compared with that, and of which run it is; none of those
/// is the baseline.
fn before(state: &LoopState, gate: usize) -> Option<(Option<u32>, &GateResult)> {
    let last = last_iteration(state)?;
    let earlier = state.attempts.iter().rev().filter(|it| it.charged && it.id.iteration < last.id.iteration);
    let proofs = earlier.filter_map(|attempt| Some((Some(attempt.id.iteration), attempt.proof.as_ref()?)));
    let baseline = state.baseline.as_ref().map(|proof| (None, proof));
    proofs.chain(baseline).find_map(|(run, proof)| Some((run, proof.of_gate(gate)?)))
}

/// The results whose output is compared with what the gates of [`failed_gates`] printed.
pub(crate) fn compared(state: &LoopState) -> impl Iterator<Item = &GateResult> {
    let earlier = failed_gates(state).filter_map(|result| Some(before(state, result.gate)?.1));
    earlier.filter(|result| !result.passed())
}

/// A line for each required gate whose failing tests are known.
pub(super) fn still_failing(state: &LoopState, quoted: QuotedLogs<'_>) -> Vec<String> {
    let is_hard = |result: &&GateResult| result.spec(&state.spec).is_some_and(|gate| gate.hard);
    failed_gates(state).filter(is_hard).filter_map(|result| line(state, result, quoted)).collect()
}

fn line(state: &LoopState, result: &GateResult, quoted: QuotedLogs<'_>) -> Option<String> {
    let now = quoted.gate(result.gate).map(failing_tests).filter(|now| !now.names.is_empty())?;
    let is_command = |gate: &&GateSpec| gate.hard && matches!(gate.check, Check::Command(_));
    let gate = match state.spec.gates.iter().filter(is_command).count() {
        0 | 1 => String::new(),
        _ => format!(" in gate {}", result.spec(&state.spec)?.name),
    };
    let count = match now.total {
        Some(total) => format!("{} of {total}", now.count()),
        None => now.count().to_string(),
    };
    let names = names(&now.names, MOST_NAMED);
    if last_iteration(state).is_none() {
        return Some(format!("Failing before the first run{gate}, {count}: {names}."));
    }
    let Some((run, before)) = before(state, result.gate) else {
        return Some(format!("Failing{gate}, {count}: {names}."));
    };
    let when = run.map_or_else(|| "before the first run".to_owned(), |run| format!("run {run}"));
    if before.passed() {
        return Some(format!("Failing{gate}, {count}: {names} ({when}: none)."));
    }
    let then = quoted.before(result.gate).map(failing_tests).filter(|then| !then.names.is_empty());
    let Some(then) = then else { return Some(format!("Failing{gate}, {count}: {names}.")) };
    let still = if now.names.is_disjoint(&then.names) { "Failing" } else { "Still failing" };
    Some(format!("{still}{gate}, {count}: {names} ({when}: {}).", compare(&now, &then)))
}

/// Describes how the failing tests differ from those of an earlier run.
fn compare(now: &FailingTests, then: &FailingTests) -> String {
    // If the output does not name all of them, the others cannot be compared.
    let is_whole = |tests: &FailingTests| tests.names.len() as u64 >= tests.count();
    let mut text = then.count().to_string();
    if !is_whole(now) || !is_whole(then) {
        return text;
    }
    if now.names == then.names {
        return if now.count() == 1 { "the same".to_owned() } else { format!("the same {}", now.count()) };
    }
    for (what, of, other) in [("no longer failing", then, now), ("new", now, then)] {
        let changed: BTreeSet<_> = of.names.difference(&other.names).cloned().collect();
        if !changed.is_empty() {
            text.push_str(&format!("; {what}: {}", names(&changed, MOST_CHANGED)));
        }
    }
    text
}

/// The names, in their order, and how many more there are.
fn names(all: &BTreeSet<String>, most: usize) -> String {
    let short: BTreeSet<_> = all.iter().map(|name| shortened(name)).collect();
    // A name that two tests share says nothing.
    let is_short = short.len() == all.len();
    let shown = |name: &String| {
        let name = if is_short { shortened(name) } else { name };
        clip(name, LONGEST_NAME).into_owned()
    };
    let named: Vec<_> = all.iter().take(most).map(shown).collect();
    match all.len().saturating_sub(most) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

/// A test's name without the module that unittest adds after it: `test_day (test_durations.T.test_day)`.
fn shortened(name: &str) -> &str {
    match name.split_once(" (") {
        Some((short, rest)) if rest.ends_with(')') && !short.contains(' ') => short,
        Some(_) | None => name,
    }
}
