//! Agents that judge: what a reviewer is asked about the work and what its answer amounts to; what a critic is asked about
//! the progress. How they are started lives in the agents, when in the loop.
//!
//! A reviewer sees text that the agent it judges wrote: the diff. That is data. It stands in a fence that it cannot close,
//! named as what it is, and an answer that only repeats it passes nothing. No evidence is no pass: what is no clear verdict
//! is none.

mod critique;
mod prompt;
#[cfg(test)]
mod tests;
mod verdict;

pub use critique::{critique, feedback};
pub use prompt::{Changes, LONGEST_SPEC, prompt};
pub use verdict::{judge, schema};

/// What a reviewer prints alone on a line where the work meets the specification (contract.md).
pub const PASS: &str = "SPEC_PASS";
/// What it prints where it does not.
pub const FAIL: &str = "SPEC_FAIL";
