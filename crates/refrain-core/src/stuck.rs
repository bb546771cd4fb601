//! Whether a loop still moves, judged by what its iterations leave behind (failures, trees, commits, claims), never by
//! what an agent says of them; and the words for an agent that goes in circles.
//!
//! A small fold: [`Stuck::after`] takes one [`Turn`], [`Stuck::verdict`] says what it all amounts to. Only charged
//! iterations are turns: neither a refunded attempt nor a baseline run is one (contract.md). What follows from a verdict
//! (`--on-stuck`) is decided in `loop`; what makes two failures the same is [`crate::fingerprint`]'s.

use std::fmt::Write;

use crate::fingerprint::{Essence, Fingerprint};
use crate::git::Oid;
use crate::text::{clip, printable, squeeze};

/// How often the same failure comes in a row before the strategy is to shift, unless `--stuck-threshold` says otherwise.
pub const THRESHOLD: u32 = 3;
/// How many more such turns there may be once it was to shift: with the last of them the loop is stuck.
pub const MORE: u32 = 2;
/// Two things in turn, each of them twice: A-B-A-B.
const IN_TURN: u32 = 4;

/// What one charged iteration left behind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// What failed: the first failing hard gate, or the agent itself. None where nothing did.
    pub failure: Option<Fingerprint>,
    /// The candidate's tree. None where it is not known; then nobody says that nothing was changed.
    pub tree: Option<Oid>,
    /// There are commits that were not there before, by whomever: a commit of earlier work is work, too.
    pub committed: bool,
    /// It claimed that the work is done.
    pub claimed: bool,
}

/// In what way a loop does not move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// The same failure again and again.
    Same,
    /// Two failures in turn: what mends one brings the other back.
    Alternating,
    /// Two states of the work in turn.
    BackAndForth,
    /// Nothing changed, nothing committed, nothing claimed.
    Empty,
}

impl Pattern {
    const ALL: [Self; 4] = [Self::Same, Self::Alternating, Self::BackAndForth, Self::Empty];
}

/// What the turns so far amount to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on as it is.
    Moving,
    /// The next prompt carries the [`directive`]; so does the one after it, as each run starts afresh.
    Shift(Pattern),
    /// That did not help.
    Stuck(Pattern),
}

/// The fold of a loop's turns. Whoever changes what the loop is run with (`--on-stuck model=…`, a `resume` of a stuck loop)
/// begins with a new one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stuck {
    last: Option<Fingerprint>,
    count: u32,
    failures: InTurn<Fingerprint>,
    tree: Option<Oid>,
    trees: InTurn<Oid>,
    empty: u32,
}

impl Stuck {
    /// A loop whose candidate was `tree` before its first turn, so that an empty first turn is seen as one.
    #[must_use]
    pub fn starting_at(tree: Option<Oid>) -> Self {
        let mut trees = InTurn::default();
        if let Some(tree) = &tree {
            trees.add(tree);
        }
        Self { tree, trees, ..Self::default() }
    }

    /// One more turn.
    pub fn after(&mut self, turn: &Turn) {
        let unchanged = turn.tree.is_some() && turn.tree == self.tree;
        self.empty =
            if unchanged && !turn.committed && !turn.claimed { self.empty.saturating_add(1) } else { 0 };
        match &turn.failure {
            Some(failure) => {
                let again = self.last.as_ref() == Some(failure);
                self.count = if again { self.count.saturating_add(1) } else { 1 };
                self.failures.add(failure);
            }
            None => (self.count, self.failures) = (0, InTurn::default()),
        }
        self.last.clone_from(&turn.failure);
        match &turn.tree {
            // Work that stands still does not swing; that it stands still is seen above.
            Some(_) if unchanged => {}
            Some(tree) => self.trees.add(tree),
            None => self.trees = InTurn::default(),
        }
        self.tree.clone_from(&turn.tree);
    }

    /// The failure of the last turn.
    #[must_use]
    pub fn last(&self) -> Option<&Fingerprint> {
        self.last.as_ref()
    }

    /// How many turns in a row ended with it; 0 where the last one did not fail.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// How many turns in a row follow the pattern.
    #[must_use]
    pub fn turns(&self, pattern: Pattern) -> u32 {
        match pattern {
            Pattern::Same => self.count,
            Pattern::Alternating => self.failures.turns,
            Pattern::BackAndForth => self.trees.turns,
            Pattern::Empty => self.empty,
        }
    }

    /// What the turns so far amount to, where the same thing `threshold` times in a row is too often; 0 counts as 1.
    #[must_use]
    pub fn verdict(&self, threshold: u32) -> Verdict {
        let over = |pattern: Pattern| {
            let often = match pattern {
                Pattern::Same | Pattern::Empty => threshold.max(1),
                Pattern::Alternating | Pattern::BackAndForth => IN_TURN,
            };
            self.turns(pattern).checked_sub(often)
        };
        let due = |pattern: &Pattern| over(*pattern).is_some();
        let stuck = |pattern: &Pattern| over(*pattern).is_some_and(|more| more >= MORE);
        let patterns = Pattern::ALL.into_iter();
        patterns
            .clone()
            .find(stuck)
            .map(Verdict::Stuck)
            .or_else(|| patterns.clone().find(due).map(Verdict::Shift))
            .unwrap_or(Verdict::Moving)
    }
}

/// Two values in turn.
#[derive(Clone, Debug, PartialEq, Eq)]
struct InTurn<T> {
    last: Option<T>,
    /// The last one that was another.
    other: Option<T>,
    /// How many of the last values were the two in turn; one that is new begins with 1 or, behind another, 2.
    turns: u32,
}

impl<T> Default for InTurn<T> {
    fn default() -> Self {
        Self { last: None, other: None, turns: 0 }
    }
}

impl<T: Clone + PartialEq> InTurn<T> {
    fn add(&mut self, value: &T) {
        let again = self.last.as_ref() == Some(value);
        let back = self.other.as_ref() == Some(value);
        self.turns = match self.turns {
            // A-B-A-B-B is no way out.
            turns if back || again && turns >= IN_TURN => turns.saturating_add(1),
            0 => 1,
            _ if again => 1,
            _ => 2,
        };
        if !again {
            self.other = self.last.replace(value.clone());
        }
    }
}

/// What fails, for the [`directive`].
#[derive(Clone, Copy, Debug)]
pub struct Failing<'a> {
    /// The gate, or none where the agent itself failed.
    pub gate: Option<&'a str>,
    /// What it says.
    pub essence: &'a Essence,
}

/// What one iteration tried, for the [`directive`].
#[derive(Clone, Copy, Debug)]
pub struct Tried<'a> {
    /// Which.
    pub iteration: u32,
    /// What became of it, in words that follow its number: `claimed; gate tests failed`.
    pub outcome: &'a str,
    /// The files that it changed, as far as they are known.
    pub files: &'a [String],
    /// The beginning of what the agent said of it.
    pub preview: Option<&'a str>,
}

/// The longest directive, in bytes.
pub const LONGEST: usize = 8 * 1024;
const MOST_FAILING: usize = 2;
const MOST_LINES: usize = 6;
const MOST_TRIED: usize = 5;
const MOST_FILES: usize = 5;
const LINE: usize = 160;
const FILE: usize = 60;

/// The part of a prompt that tells an agent that it goes in circles: what fails and how often, what was tried (oldest first;
/// of many the last), and to do something else. Printable, and at most [`LONGEST`] bytes.
#[must_use]
pub fn directive(pattern: Pattern, turns: u32, failing: &[Failing<'_>], tried: &[Tried<'_>]) -> String {
    let mut text = String::from("STRATEGY SHIFT: ");
    let _ = match pattern {
        Pattern::Same => write!(text, "the same failure came {turns} times in a row, whatever was changed."),
        Pattern::Alternating => {
            write!(
                text,
                "{turns} runs in a row ended with one of two failures: what mends one brings the other back."
            )
        }
        Pattern::BackAndForth => {
            write!(text, "{turns} runs in a row took the work back and forth between two states.")
        }
        Pattern::Empty => {
            write!(text, "{turns} runs in a row changed nothing, committed nothing and claimed nothing.")
        }
    };
    for Failing { gate, essence } in failing.iter().take(MOST_FAILING) {
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
        text.push_str("\n\nWhat was tried, and did not work:");
    }
    for tried in &tried[tried.len().saturating_sub(MOST_TRIED)..] {
        text.push_str(&format!("\n- iteration {}: {}", tried.iteration, attempt(tried)));
    }
    text.push_str(match pattern {
        Pattern::Same | Pattern::Alternating | Pattern::BackAndForth => {
            "\n\nDo not try any of this again. First find out why it fails, and check what you take for granted. Then do \
             something fundamentally different: another algorithm or data structure, another library or interface, the \
             simplest thing that could work, or one small part of it."
        }
        Pattern::Empty => {
            "\n\nDo one part of the task now, however small, and write it to a file. If everything is done already, claim \
             so as you were told. If something keeps you from working, say what."
        }
    });
    text
}

fn attempt(tried: &Tried<'_>) -> String {
    let mut parts = vec![one_line(tried.outcome, LINE)];
    if !tried.files.is_empty() {
        let names: Vec<_> = tried.files.iter().take(MOST_FILES).map(|file| one_line(file, FILE)).collect();
        let more = tried.files.len() - names.len();
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        parts.push(format!("changed {}{more}", names.join(", ")));
    }
    if let Some(preview) =
        tried.preview.map(|preview| one_line(preview, LINE)).filter(|said| !said.is_empty())
    {
        parts.push(format!("said: {preview}"));
    }
    parts.join("; ")
}

/// Somebody else's text, on one line.
fn one_line(text: &str, most: usize) -> String {
    clip(&squeeze(&printable(text)), most).into_owned()
}

#[cfg(test)]
#[path = "stuck_tests.rs"]
mod tests;
