//! Agents that judge: a reviewer's prompt on the work and the verdict in its answer; a critic's prompt on the progress.
//! refrain-agents starts them; `loop` decides when.
//!
//! A reviewer sees text that the agent it judges wrote: the diff. That is data. It is in a fence that it cannot close,
//! labelled as what it is, and an answer that only repeats it passes nothing. No evidence is no pass: an unclear
//! verdict is none.

mod critique;
mod prompt;
#[cfg(test)]
mod tests;
mod verdict;

pub use critique::{critique, feedback};
pub use prompt::{Changes, LONGEST_SPEC, prompt};
pub use verdict::{judge, schema};

/// What a reviewer prints alone on a line if the work meets the specification (contract.md).
pub const PASS: &str = "SPEC_PASS";
/// What it prints if it does not.
pub const FAIL: &str = "SPEC_FAIL";
