//! What is remembered of a loop when it ends: its result, what its person said that holds beyond it, and which way its
//! gates proved. It comes only from what the loop recorded, so the same journal gives the same memories.

use super::clean::{fit, plants};
use super::{Kind, Memory, Origin};
use crate::event::End;
use crate::gate::{Check, GateSpec};
use crate::r#loop::LoopState;
use crate::text::clip;
use crate::view::{self, Alive};

/// The longest goal and summary that are repeated, in bytes.
const LONGEST_GOAL: usize = 200;
const LONGEST_SUMMARY: usize = 200;
/// The shortest and the longest sentence that can be a fact, in bytes.
const SENTENCE: std::ops::RangeInclusive<usize> = 8..=300;
/// How many facts one loop leaves at most.
const MOST_FACTS: usize = 20;

/// The memories of a loop that has ended; `said` is all its steering. None if it is paused or waits for something that
/// has nothing to do with its work, and none if it never ran.
pub fn after(state: &LoopState, said: &[&str]) -> Vec<Memory> {
    let Some(ended) = state.ended else { return Vec::new() };
    let Some(outcome) = Outcome::of(state, ended.end) else { return Vec::new() };
    if state.last_charged().is_none() {
        return Vec::new();
    }
    let new = |kind, text: &str, importance: f64| {
        let text = fit(text, kind)?;
        let project = state.spec.project.as_str();
        let memory = Memory::new(kind, text, project, Origin::Loop, importance, ended.at);
        Some(memory.of_loop(&state.spec.id, state.started_at, kind != Kind::Fact))
    };
    let episode = new(Kind::Episode, &episode(state), outcome.importance());
    let way = procedure(state, outcome).and_then(|text| new(Kind::Procedure, &text, 0.6));
    let facts = said.iter().flat_map(|text| sentences(text));
    let facts = facts.filter_map(|sentence| new(Kind::Fact, sentence, holds(sentence)?));
    episode.into_iter().chain(way).chain(facts.take(MOST_FACTS)).collect()
}

/// Its end, as far as that matters later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Done,
    Abandoned,
    Failed,
    Partial,
}

impl Outcome {
    fn of(state: &LoopState, end: End) -> Option<Self> {
        let failed = || if state.git.commits.is_empty() { Self::Failed } else { Self::Partial };
        match end {
            End::Completed { .. } => Some(Self::Done),
            End::Cancelled => Some(Self::Abandoned),
            End::IterationCap | End::Stuck | End::TimedOut | End::BudgetExceeded { .. } => Some(failed()),
            End::Blocked { why } => why.is_of_work().then(failed),
            End::Paused => None,
        }
    }

    /// From what failed there is more to learn.
    const fn importance(self) -> f64 {
        match self {
            Self::Done | Self::Abandoned => 0.5,
            Self::Failed => 0.7,
            Self::Partial => 0.8,
        }
    }
}

fn episode(state: &LoopState) -> String {
    let status = view::status(state, Alive::NO_RUNNER);
    let times = if state.charged == 1 { "iteration" } else { "iterations" };
    let mut text = format!(
        "\"{}\": {} after {} {times} of {}; {}",
        goal(state),
        status.status.as_str(),
        state.charged,
        state.spec.agent.kind,
        harmless(&status.reason)
    );
    let failing = state.proof.iter().flat_map(|proof| proof.failing(&state.spec));
    let failing: Vec<_> =
        failing.filter_map(|result| Some(result.spec(&state.spec)?.name.to_string())).collect();
    if !failing.is_empty() {
        text.push_str(&format!("; gates that failed last: {}", failing.join(", ")));
    }
    let last = state.last_charged().and_then(|attempt| attempt.finished.as_ref());
    if let Some(summary) = last.and_then(|finished| finished.summary.as_ref()) {
        text.push_str(&format!("; its agent said last: {}", harmless(&clip(summary, LONGEST_SUMMARY))));
    }
    text
}

/// The person's words, as far as they can be repeated: they may come from anywhere.
fn goal(state: &LoopState) -> String {
    let goal = fit(&super::goal(&state.spec), Kind::Procedure).unwrap_or_default();
    harmless(&clip(&goal, LONGEST_GOAL))
}

/// The words, unless they give an instruction to the reader.
fn harmless(text: &str) -> String {
    if plants(text) { "[left out: it reads like an instruction]".to_owned() } else { text.to_owned() }
}

/// Which way was proven to lead there: none without a required gate, as an agent's word is no proof.
fn procedure(state: &LoopState, outcome: Outcome) -> Option<String> {
    let is_proven =
        outcome == Outcome::Done && state.proof.as_ref().is_some_and(|proof| proof.holds(&state.spec));
    if !is_proven || !state.spec.has_hard_gates() {
        return None;
    }
    let gates = state.spec.gates.iter().filter(|gate| gate.hard).map(gate);
    let gates: Vec<_> = gates.collect();
    let times = if state.charged == 1 { "iteration" } else { "iterations" };
    let model = state.spec.agent.model.as_ref().map(|model| format!(" ({model})")).unwrap_or_default();
    Some(format!(
        "\"{}\" was proven done by {} after {} {times} of {}{model}",
        goal(state),
        gates.join(", "),
        state.charged,
        state.spec.agent.kind
    ))
}

fn gate(gate: &GateSpec) -> String {
    match &gate.check {
        Check::Command(command) => format!("{}: {}", gate.name, clip(command, LONGEST_GOAL)),
        Check::Review(_) => format!("{}, a reviewer", gate.name),
    }
}

fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.split(['\n', ';']);
    let sentences =
        lines.flat_map(|line| line.split_inclusive(". ").flat_map(|part| part.split_inclusive("! ")));
    sentences.map(str::trim).filter(|sentence| SENTENCE.contains(&sentence.len()))
}

/// How much a sentence matters that holds beyond the moment: a preference, a rule, a correction. None for other
/// sentences, and for those that would talk a later agent out of its gates: the steering may come from an agent, too.
/// Never so much that every goal gets it.
fn holds(sentence: &str) -> Option<f64> {
    let lower = sentence.to_lowercase();
    let words: Vec<&str> = lower.split(|c: char| !c.is_alphanumeric() && c != '\'').collect();
    let has = |word: &str| words.contains(&word);
    let says = |phrase: &str| lower.contains(phrase);
    let is_rule =
        has("always") || has("never") || says("from now on") || says("must not") || says("remember that");
    let is_preference =
        has("prefer") || has("prefers") || says("instead of") || says("rather than") || says("we use ");
    let is_correction =
        ["don't ", "do not ", "no, ", "actually, ", "stop "].iter().any(|begin| lower.starts_with(begin));
    let importance = match (is_rule, is_preference, is_correction) {
        (true, ..) => 0.8,
        (_, true, _) => 0.7,
        (.., true) => 0.6,
        (false, false, false) => return None,
    };
    (!plants(sentence)).then_some(importance)
}
