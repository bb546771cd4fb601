//! Whether two failures are the same: what is left of a gate's output when everything is taken away that differs between
//! two runs of the same failure, and a hash of that.
//!
//! What is kept: the names of failing tests, and the lines that say what is wrong, wherever and in whatever order they
//! stand. What is taken away: escapes, times, durations, addresses, process ids, ports, seeds, random names, absolute and
//! temporary folders, line numbers (the agent edits above them), sizes, passed tests and their count, progress, warnings,
//! source excerpts, stacks, and what a wrapper (cargo, npm, make) adds of its own. What a test expected and what it got is
//! *kept*: an agent that moves from one wrong value to another has moved, and a loop that is stopped too early is worse
//! than one that is stopped late.
//!
//! `shapes` knows what the lines of real tools look like, `reading` folds a text over it, `normal` writes one line
//! the way it is compared. Where nothing is known to be a runner's verdict, the last lines are compared as they are.
//!
//! What it cannot know: a number that nothing names (a bare process id) is taken for a value, a date never is one, and a
//! runner that stops at the first failure shows another one whenever its tests run in another order.
//!
//! A reading takes time in proportion to the text (and to sort its lines), and memory of a few times its size: whoever
//! calls cuts a log to 256 KiB first, with [`crate::text::cut_middle`].

mod failing;
mod normal;
mod reading;
mod shapes;

#[cfg(test)]
mod pairs;
#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use failing::{FailingTests, failing_tests};
use reading::Reading;

/// Raised with every change of what is kept or taken away: failures of different rules are never the same.
const RULES: &str = "refrain fingerprint 1";

/// A failure, as 16 hexadecimal digits in lower case. The same failure has the same one on every machine and, while the
/// rules stay, in every version: it stands in journals.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Fingerprint(String);

/// A text that is no [`Fingerprint`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no fingerprint; one is 16 hexadecimal digits in lower case")]
pub struct FingerprintError(String);

impl Fingerprint {
    /// As text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Fingerprint {
    type Err = FingerprintError;

    fn from_str(text: &str) -> Result<Self, FingerprintError> {
        let is_one = text.len() == 16 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if is_one { Ok(Self(text.to_owned())) } else { Err(FingerprintError(text.to_owned())) }
    }
}

impl TryFrom<String> for Fingerprint {
    type Error = FingerprintError;

    fn try_from(text: String) -> Result<Self, FingerprintError> {
        text.parse()
    }
}

impl From<Fingerprint> for String {
    fn from(fingerprint: Fingerprint) -> Self {
        fingerprint.0
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// The fingerprint of a failure of `gate` (or of whatever else failed, by a name of its own) that printed `output`. How it
/// ended, by an exit code or by its time limit, counts only where the caller writes it as a line into `output`.
#[must_use]
pub fn of(gate: &str, output: &str) -> Fingerprint {
    let mut hasher = blake3::Hasher::new();
    // No part can run into the next: names of gates and lines have no line break.
    for part in [RULES.to_owned(), gate.replace('\n', " ")].into_iter().chain(Reading::of(output).items()) {
        hasher.update(part.as_bytes());
        hasher.update(b"\n");
    }
    Fingerprint(hasher.finalize().to_hex()[..16].to_owned())
}

/// What a failure comes down to, for a prompt and for people.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Essence {
    /// The names of failing tests, in their order by name; at most [`Essence::MOST`].
    pub tests: Vec<String>,
    /// The first lines that say what is wrong, as they were printed but for control characters and length; at most
    /// [`Essence::MOST`]. The last lines of all where none does.
    pub errors: Vec<String>,
}

impl Essence {
    /// How many names, and how many lines, are kept.
    pub const MOST: usize = 12;
    /// The longest name or line, in bytes.
    pub const LINE: usize = 300;
}

/// What the output of a failure comes down to.
#[must_use]
pub fn essence(output: &str) -> Essence {
    Reading::of(output).essence()
}
