//! Whether a loop still makes progress, judged by the results of its iterations (work, failures, claims), never by what
//! an agent says of them; and the prompt section for an agent that makes none.
//!
//! A small fold: [`Stuck::record`] takes one [`IterationResult`], [`Stuck::verdict`] compares the counts with [`ROWS`].
//! Only charged iterations are recorded: neither a refunded attempt nor a baseline run is (contract.md). What follows
//! from a verdict (`--on-stuck`) is decided in `loop`; what makes two failures the same, in [`crate::fingerprint`].

use std::collections::VecDeque;
use std::fmt::Write;

use crate::fingerprint::{FailureText, Fingerprint};
use crate::spec::StuckSpec;
use crate::text::{clip, printable, squeeze};
use crate::work::WorkDigest;

/// How many more such iterations are allowed: with the last of them the loop is stuck.
pub const MORE: u32 = 2;
/// How many earlier states of the work are remembered.
const STATES: usize = 64;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IterationResult {
    /// The failure: the first failing required gate, the agent itself, or why its claim was refused.
    pub failure: Option<Fingerprint>,
    /// The gate that failed also failed before the first iteration: it is expected to, until the work is done.
    pub is_expected: bool,
    /// The work when the iteration began and when its attempt ended; none if either is not known. That is never taken
    /// for "unchanged".
    pub work: Option<(WorkDigest, WorkDigest)>,
    pub claimed: bool,
}

/// In what way a loop makes no progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// The work did not change, or returned to an earlier state.
    SameWork,
    /// The same failure, and the agent claimed each time.
    RefusedClaim,
    /// The same failure over changed work, without a claim, of a gate that passed before the first iteration.
    NewFailure,
    /// The same failure over changed work, without a claim, of a gate that failed before the first iteration too.
    OldFailure,
}

/// When a pattern shifts the strategy and ends the loop.
struct Row {
    pattern: Pattern,
    shift: u32,
    /// After how many more iterations the loop is stuck; none if it never is.
    more: Option<u32>,
}

/// The rules of no progress. The cap and the budget bound a loop that is never stuck.
const ROWS: [Row; 4] = [
    Row { pattern: Pattern::SameWork, shift: 1, more: Some(MORE) },
    Row { pattern: Pattern::RefusedClaim, shift: 1, more: Some(MORE) },
    Row { pattern: Pattern::NewFailure, shift: 2, more: Some(2 * MORE) },
    Row { pattern: Pattern::OldFailure, shift: 2, more: None },
];

/// The rows of `refrain run` (seed 004): unchanged work, and the same failure regardless of changes and claims.
const ROWS_BY_FAILURE: [Row; 3] = [
    Row { pattern: Pattern::SameWork, shift: 1, more: Some(MORE) },
    Row { pattern: Pattern::NewFailure, shift: 1, more: Some(MORE) },
    Row { pattern: Pattern::OldFailure, shift: 1, more: Some(MORE) },
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It makes progress, as far as known.
    Moving,
    /// The next prompt carries the [`directive`]; so does the one after it, as each run starts afresh.
    Shift(Pattern),
    /// The strategy shift did not help.
    Stuck(Pattern),
}

/// The fold of a loop's iterations. A change of what the loop is run with (`--on-stuck model=…`, a `resume` of a stuck
/// loop) begins with a new one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stuck {
    failure: Option<Fingerprint>,
    is_expected: bool,
    /// Iterations in a row with that failure.
    same: u32,
    /// The last of them, in a row, that claimed.
    claimed: u32,
    /// Iterations in a row that did not change the work, or took it back to an earlier state.
    same_work: u32,
    is_back: bool,
    /// States of the work, oldest first.
    states: VecDeque<WorkDigest>,
}

impl Stuck {
    pub fn record(&mut self, result: &IterationResult) {
        match &result.work {
            Some((before, after)) => {
                // A state that gates, commits or the user made in between is a state like any other.
                self.see(before);
                self.is_back = before != after && self.states.contains(after);
                self.same_work = if before == after || self.is_back { self.same_work + 1 } else { 0 };
                self.see(after);
            }
            None => (self.same_work, self.is_back) = (0, false),
        }
        let again = result.failure.is_some() && self.failure == result.failure;
        let count = |before: u32| if again { before + 1 } else { 1 };
        self.same = if result.failure.is_some() { count(self.same) } else { 0 };
        self.claimed = if result.failure.is_some() && result.claimed { count(self.claimed) } else { 0 };
        (self.failure, self.is_expected) = (result.failure.clone(), result.is_expected);
    }

    fn see(&mut self, state: &WorkDigest) {
        if !self.states.contains(state) {
            if self.states.len() == STATES {
                self.states.pop_front();
            }
            self.states.push_back(state.clone());
        }
    }

    /// The failure of the last iteration.
    pub fn last(&self) -> Option<&Fingerprint> {
        self.failure.as_ref()
    }

    /// How many iterations in a row ended with it; 0 if the last one did not fail.
    pub fn count(&self) -> u32 {
        self.same
    }

    /// Whether the last iteration took the work back to an earlier state.
    pub fn is_back(&self) -> bool {
        self.is_back
    }

    /// How many iterations in a row follow the pattern.
    pub fn count_of(&self, pattern: Pattern) -> u32 {
        match pattern {
            Pattern::SameWork => self.same_work,
            Pattern::RefusedClaim => self.claimed,
            Pattern::NewFailure if !self.is_expected => self.same,
            Pattern::OldFailure if self.is_expected => self.same,
            Pattern::NewFailure | Pattern::OldFailure => 0,
        }
    }

    /// The verdict on the iterations so far. A threshold of 0 counts as 1.
    pub fn verdict(&self, spec: &StuckSpec) -> Verdict {
        let threshold = spec.threshold.max(1);
        let rows: &[Row] = if spec.by_failure { &ROWS_BY_FAILURE } else { &ROWS };
        let is_stuck = |row: &&Row| {
            row.more.is_some_and(|more| self.count_of(row.pattern) >= row.shift * threshold + more)
        };
        let is_due = |row: &&Row| self.count_of(row.pattern) >= row.shift * threshold;
        let stuck = rows.iter().find(is_stuck).map(|row| Verdict::Stuck(row.pattern));
        let shift = || rows.iter().find(is_due).map(|row| Verdict::Shift(row.pattern));
        stuck.or_else(shift).unwrap_or(Verdict::Moving)
    }
}

/// The present failure, for the [`directive`].
#[derive(Clone, Copy, Debug)]
pub struct CurrentFailure<'a> {
    /// The gate, or none if the agent itself failed.
    pub gate: Option<&'a str>,
    pub essence: &'a FailureText,
}

/// The longest directive, in bytes.
pub const LONGEST: usize = 8 * 1024;
const MOST_FAILING: usize = 2;
const MOST_LINES: usize = 6;
const MOST_TRIED: usize = 5;
/// The longest part of a line, in bytes.
pub(crate) const LINE: usize = 160;

/// The prompt section for an agent that makes no progress: what fails and how often, what was tried (oldest first; of
/// many the last), and to do something else. Printable, and at most [`LONGEST`] bytes.
pub fn directive(
    (pattern, stuck): (Pattern, &Stuck),
    failing: &[CurrentFailure<'_>],
    tried: &[String],
) -> String {
    let mut text = String::from("STRATEGY SHIFT: ");
    let count = stuck.count_of(pattern);
    let _ = match pattern {
        Pattern::SameWork if stuck.is_back() => {
            write!(text, "{count} runs in a row changed nothing, or took the work back to an earlier state.")
        }
        Pattern::SameWork => write!(text, "{count} runs in a row changed nothing in the work."),
        Pattern::RefusedClaim => {
            write!(text, "the same failure came {count} times in a row, and you claimed each time.")
        }
        Pattern::NewFailure | Pattern::OldFailure => {
            write!(text, "the same failure came {count} times in a row, whatever was changed.")
        }
    };
    for CurrentFailure { gate, essence } in failing.iter().take(MOST_FAILING) {
        match gate {
            Some(gate) => text.push_str(&format!("\n\nWhat fails, says gate {}:", one_line(gate, LINE))),
            None => text.push_str("\n\nWhat fails:"),
        }
        for test in essence.tests.iter().take(MOST_LINES) {
            text.push_str(&format!("\n- test {}", one_line(test, LINE)));
        }
        for line in essence.errors.iter().take(MOST_LINES) {
            text.push_str(&format!("\n- {}", one_line(line, LINE)));
        }
    }
    if !tried.is_empty() {
        text.push_str(match pattern {
            Pattern::OldFailure => "\n\nWhat was done so far:",
            Pattern::SameWork | Pattern::RefusedClaim | Pattern::NewFailure => {
                "\n\nWhat was tried, and did not work:"
            }
        });
    }
    for tried in &tried[tried.len().saturating_sub(MOST_TRIED)..] {
        text.push_str(&format!("\n- {}", one_line(tried, 3 * LINE)));
    }
    text.push_str(match pattern {
        Pattern::SameWork => {
            "\n\nDo one part of the task now, however small, and write it to a file. If everything is done already, claim \
             so as described above. If something keeps you from working, say what."
        }
        Pattern::OldFailure => {
            "\n\nThe gate failed before the first run, too. If parts of the task are missing, go on with the next one. If \
             none is missing, do not try any of this again: find out why the gate fails, check what you take for granted, \
             and do something different."
        }
        Pattern::RefusedClaim | Pattern::NewFailure => {
            "\n\nDo not try any of this again. First find out why it fails, and check what you take for granted. Then do \
             something fundamentally different: another algorithm or data structure, another library or interface, the \
             simplest thing that could work, or one small part of it."
        }
    });
    text
}

fn one_line(text: &str, most: usize) -> String {
    clip(&squeeze(&printable(text)), most).into_owned()
}

#[cfg(test)]
mod tests;
