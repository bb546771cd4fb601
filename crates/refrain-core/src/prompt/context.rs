//! The content of `context.md`: what failed, verbatim and longer than in the prompt, what failed in the iterations
//! before, and what was tried (seed 004, `.ralph_context.md`). Written by Refrain alone, never by a model.

use std::fmt::Write;

use crate::r#loop::LoopState;
use crate::prompt::{
    Excerpt, QuotedLogs, attempt_line, charged, describe_failed_run, describe_gate_failures,
    describe_touched_paths, fenced, last_iteration,
};
use crate::text::cut_middle;

/// How much of one iteration's output it quotes, in bytes: some 16,000 tokens.
pub const EXCERPT: usize = 64 << 10;
const EARLIER: usize = EXCERPT / 4;
const NAMED: usize = 20;
/// How much of an iteration's result is repeated, and of its agent's words, in bytes.
const SAID: usize = 200;

/// The text of `context.md`; none if nothing failed.
pub fn context(state: &LoopState, quoted: QuotedLogs<'_>) -> Option<String> {
    let parts = describe_last_failures(state, quoted);
    (!parts.is_empty()).then(|| text(state, state.iteration, &parts, quoted))
}

/// The state as the next iteration would find it, for the context of a loop that ends.
pub fn ahead(state: &LoopState) -> LoopState {
    let mut ahead = state.clone();
    ahead.iteration += 1;
    ahead
}

/// The same text of a loop that ends, from its state [`ahead`]; there is one even if nothing failed.
pub fn at_the_end(ahead: &LoopState, quoted: QuotedLogs<'_>) -> String {
    text(ahead, ahead.iteration - 1, &describe_last_failures(ahead, quoted), quoted)
}

fn describe_last_failures(state: &LoopState, quoted: QuotedLogs<'_>) -> Vec<String> {
    let excerpt = Excerpt { most: EXCERPT, is_verbatim: true };
    let own = last_iteration(state).and_then(|last| describe_failed_run(last, quoted.attempt(), excerpt));
    let touched = describe_touched_paths(state, quoted.protected(), excerpt);
    let gates = describe_gate_failures(state, quoted, excerpt);
    own.into_iter().chain(touched).chain(gates).collect()
}

fn text(state: &LoopState, iteration: u32, parts: &[String], quoted: QuotedLogs<'_>) -> String {
    let mut text = status(state, iteration);
    if !parts.is_empty() {
        let _ = write!(text, "\n## Last Error Output (verbatim)\n\n{}\n", parts.join("\n\n"));
    }
    for (id, output) in quoted.earlier() {
        let output = fenced(&cut_middle(output.trim(), EARLIER));
        let _ = write!(text, "\n## What failed in iteration {} (verbatim)\n\n{output}\n", id.iteration);
    }
    text.push_str(&tried(state));
    text
}

fn status(state: &LoopState, iteration: u32) -> String {
    let total = state.limits.max_iterations.map_or_else(|| "unlimited".to_owned(), |cap| cap.to_string());
    let mut text =
        format!("# Loop Context: {}\n\n## Status\n- Iteration: {iteration} of {total}\n", state.spec.id);
    let failing = state.proof.as_ref().and_then(|proof| proof.failing(&state.spec).next());
    if let Some(gate) = failing.and_then(|result| result.spec(&state.spec)) {
        let _ = writeln!(text, "- Last gate failed: {}", gate.name);
    }
    let (count, threshold) = (state.progress.stuck.count(), state.spec.stuck.threshold);
    if count > 0 {
        let _ = writeln!(text, "- Stuck count: {count} (threshold: {threshold})");
    }
    text
}

fn tried(state: &LoopState) -> String {
    let all: Vec<_> = charged(state).collect();
    let last = &all[all.len().saturating_sub(NAMED)..];
    let lines = last.iter().map(|attempt| format!("- {}\n", attempt_line(state, attempt, SAID)));
    if last.is_empty() {
        String::new()
    } else {
        format!("\n## What was tried\n{}", lines.collect::<String>())
    }
}
