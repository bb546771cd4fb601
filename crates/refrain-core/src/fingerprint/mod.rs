//! Whether two failures are the same: a hash of a gate's output, without everything that differs between two runs of
//! the same failure.
//!
//! Kept: the names of failing tests, and the lines that say what is wrong, in any place and order. Removed: escapes,
//! times, durations, addresses, process ids, ports, seeds, random names, absolute and temporary folders, line numbers
//! (the agent edits above them), sizes, passed tests and their count, progress, warnings, source excerpts, stacks, and
//! lines that a wrapper (cargo, npm, make) adds. The expected and the actual value of a test are *kept*: an agent that
//! moves from one wrong value to another has moved, and a loop that is stopped too early is worse than one that is
//! stopped late.
//!
//! `shapes` knows what the lines of real tools look like, `reading` folds a text over it, `normal` writes one line the
//! way it is compared. If no line is known to be a runner's verdict, the last lines are compared as they are.
//!
//! Limits: a number without a name (a bare process id) counts as a value, a date never does, and a runner that stops at
//! the first failure shows another one whenever its tests run in another order.
//!
//! A reading takes time in proportion to the text (and to sort its lines), and memory of a few times its size: the
//! caller cuts a log to 256 KiB first, with [`crate::text::cut_middle`].

mod failing_tests;
mod normal;
mod output_digest;
mod shapes;

#[cfg(test)]
mod pairs;
#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::hex::Hex;
pub use failing_tests::{FailingTests, failing_tests};
use output_digest::Reading;

/// Raised with every change of the rules: failures under different rules are never the same.
const RULES: &str = "refrain fingerprint 2";

/// A failure, as 16 hexadecimal digits in lower case. The same failure has the same one on every machine and, while the
/// rules stay, in every version, because journals store it.
pub type Fingerprint = Hex<16>;

/// The fingerprint of a failure of `gate` (or of another step, under its own name) that printed `output`. How it ended,
/// by an exit code or by its time limit, counts only if the caller writes it as a line into `output`.
pub fn of(gate: &str, output: &str) -> Fingerprint {
    let mut hasher = blake3::Hasher::new();
    // No part can run into the next: names of gates and lines have no line break.
    for part in [RULES.to_owned(), gate.replace('\n', " ")].into_iter().chain(Reading::of(output).items()) {
        hasher.update(part.as_bytes());
        hasher.update(b"\n");
    }
    hasher.finalize().into()
}

/// What a failure comes down to, for a prompt and for people.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FailureText {
    /// The names of failing tests, in their order by name; at most [`FailureText::MOST`].
    pub tests: Vec<String>,
    /// The first lines that say what is wrong, as they were printed but for control characters and length; at most
    /// [`FailureText::MOST`]. The last lines of all where none does.
    pub errors: Vec<String>,
}

impl FailureText {
    /// How many names, and how many lines, are kept.
    pub const MOST: usize = 12;
    /// The longest name or line, in bytes.
    pub const LINE: usize = 300;
}

pub fn essence(output: &str) -> FailureText {
    Reading::of(output).essence()
}
