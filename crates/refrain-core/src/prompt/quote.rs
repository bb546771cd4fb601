//! Which output the prompt and `context.md` quote. It is named here; the runner reads it.

use super::failing_tests;
use super::gates::failed_gates;
use crate::event::Exit;
use crate::gate::{Check, GateName};
use crate::ids::AttemptId;
use crate::r#loop::{Attempt, GateResult, LoopState, Outcome};
use crate::spec::Spec;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quote {
    /// The agent, in the last iteration, in which it failed.
    Attempt(AttemptId),
    Gate(GateRun),
    /// The same gate in its run before, in which it failed too.
    Before(GateRun),
    /// The failure of an earlier iteration: its first required gate that failed, else the agent. For `context.md`
    /// alone.
    Earlier(AttemptId, Option<GateRun>),
    /// `git diff`, of the protected files that were changed.
    Protected(AttemptId),
    /// The checks of a pull request that failed, or `git diff` of both sides of a conflict with the remote.
    Outside(AttemptId),
    /// The agent's notes in `state.md`, unchanged.
    Notes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GateRun {
    pub gate: usize,
    pub of: AttemptId,
    /// Its number after that attempt, from 1.
    pub run: u32,
}

impl From<&GateResult> for GateRun {
    fn from(result: &GateResult) -> Self {
        Self { gate: result.gate, of: result.of, run: result.run }
    }
}

/// A place that may have the text of a quote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The standard error of an attempt's agent.
    Stderr(AttemptId),
    /// Its standard output, if that is text.
    Stdout(AttemptId),
    Gate(GateName, GateRun),
    /// `git diff` of the protected files that were changed, as it was kept with an attempt.
    Touched(AttemptId),
    /// The failure outside, as it was kept with an attempt.
    Outside(AttemptId),
    /// `state.md`.
    Notes,
}

impl Quote {
    fn sources(self, spec: &Spec) -> Vec<Source> {
        let of_gate = |run: GateRun| {
            let gate = spec.gates.get(run.gate);
            gate.map(|gate| Source::Gate(gate.name.clone(), run)).into_iter().collect()
        };
        match self {
            Self::Gate(run) | Self::Before(run) | Self::Earlier(_, Some(run)) => of_gate(run),
            // A stream of events is not readable text; the prompt names its fault anyway.
            Self::Attempt(id) | Self::Earlier(id, None) if spec.agent.streams() => vec![Source::Stderr(id)],
            Self::Attempt(id) | Self::Earlier(id, None) => vec![Source::Stderr(id), Source::Stdout(id)],
            Self::Protected(id) => vec![Source::Touched(id)],
            Self::Outside(id) => vec![Source::Outside(id)],
            Self::Notes => vec![Source::Notes],
        }
    }
}

/// All that the prompt of the next attempt, and its `context.md`, quote, and where each text may be: the first source
/// that has one counts.
pub fn quotes(state: &LoopState) -> Vec<(Quote, Vec<Source>)> {
    let is_failure = |outcome| matches!(outcome, Outcome::Failed | Outcome::TimeLimit | Outcome::Silence);
    let last = state.last_charged();
    let attempt = last.filter(|last| is_failure(last.outcome)).map(|last| Quote::Attempt(last.id));
    // A reviewer's findings are quoted from the journal; its log may be a stream.
    let by_command = |result: &&GateResult| {
        result.spec(&state.spec).is_some_and(|gate| matches!(gate.check, Check::Command(_)))
    };
    let gates = failed_gates(state).filter(by_command).map(|result| Quote::Gate(result.into()));
    let before = failing_tests::compared(state).filter(by_command).map(|result| Quote::Before(result.into()));
    let is_touched =
        |last: &&Attempt| last.proof.as_ref().is_some_and(|proof| !proof.candidate.touched.is_empty());
    let protected = last.filter(is_touched).map(|last| Quote::Protected(last.id));
    let objected = state.git.published.objection.as_ref().map(|(iteration, _)| *iteration);
    let outside = last.filter(|last| objected == Some(last.id.iteration)).map(|last| Quote::Outside(last.id));
    let earlier = earlier(state).map(|(id, run)| Quote::Earlier(id, run));
    let quotes = attempt.into_iter().chain(gates).chain(before).chain(protected).chain(outside);
    let quotes = quotes.chain(earlier).chain([Quote::Notes]);
    quotes.map(|quote| (quote, quote.sources(&state.spec))).collect()
}

/// How many iterations are quoted, the last one included (seed 004: the last three attempts).
const QUOTED: usize = 3;

/// The iterations before the last one whose failures are quoted too, the newest first: each with the first required
/// gate that failed in it; none if the agent itself failed.
fn earlier(state: &LoopState) -> impl Iterator<Item = (AttemptId, Option<GateRun>)> {
    let failed = |attempt: &Attempt| {
        let gate = attempt.proof.as_ref().and_then(|proof| proof.failing(&state.spec).next());
        let gate = gate.map(GateRun::from);
        let by_itself = attempt.outcome == Outcome::Failed
            && attempt.finished.as_ref().is_some_and(|finished| finished.exit != Exit::Lost);
        (gate.is_some() || by_itself).then_some((attempt.id, gate))
    };
    let before = state.attempts.iter().rev().filter(|attempt| attempt.charged);
    let before = before.skip_while(|attempt| attempt.id.iteration + 1 >= state.iteration);
    before.take(QUOTED - 1).filter_map(failed)
}

/// The texts of [`quotes`]: the printable ends of logs. A text that could not be read is missing.
#[derive(Clone, Copy, Debug, Default)]
pub struct QuotedLogs<'a>(pub &'a [(Quote, String)]);

impl<'a> QuotedLogs<'a> {
    fn find(self, is_it: impl Fn(&Quote) -> bool) -> Option<&'a str> {
        self.0.iter().find(|(quote, _)| is_it(quote)).map(|(_, text)| text.as_str())
    }

    pub(crate) fn attempt(self) -> Option<&'a str> {
        self.find(|quote| matches!(quote, Quote::Attempt(_)))
    }

    /// Each gate that failed, with its output.
    pub(super) fn gates(self) -> impl Iterator<Item = (usize, &'a str)> {
        self.0.iter().filter_map(|(quote, text)| {
            let Quote::Gate(run) = quote else { return None };
            Some((run.gate, text.as_str()))
        })
    }

    pub(super) fn gate(self, gate: usize) -> Option<&'a str> {
        self.gates().find(|(place, _)| *place == gate).map(|(_, text)| text)
    }

    pub(super) fn before(self, gate: usize) -> Option<&'a str> {
        self.find(|quote| matches!(quote, Quote::Before(run) if run.gate == gate))
    }

    pub(crate) fn protected(self) -> Option<&'a str> {
        self.find(|quote| matches!(quote, Quote::Protected(_)))
    }

    pub(super) fn outside(self) -> Option<&'a str> {
        self.find(|quote| matches!(quote, Quote::Outside(_)))
    }

    pub(super) fn notes(self) -> Option<&'a str> {
        self.find(|quote| matches!(quote, Quote::Notes))
    }

    /// The iterations before, the newest first, each with what failed in it.
    pub(crate) fn earlier(self) -> impl Iterator<Item = (AttemptId, &'a str)> {
        self.0.iter().filter_map(|(quote, text)| {
            let Quote::Earlier(id, _) = quote else { return None };
            Some((*id, text.as_str()))
        })
    }

    /// Whether `context.md` has more of this output than the prompt.
    pub(super) fn has_output(self) -> bool {
        let outputs = self.gates().map(|(_, text)| text).chain(self.attempt()).chain(self.protected());
        outputs.into_iter().any(|text| !text.trim().is_empty())
    }
}
