//! The gates of a proposal. Each fails closed: a gate that cannot decide refuses, and does not ask again.

use super::edit::changed;
use super::safety::{self, Unsafe};
use super::{Change, Reflection};

/// How long the file may become, in lines, unless it is longer already.
const LONGEST: usize = 200;
const MOST_GAINED: usize = 40;
/// How much of the old text has to stay, in hundredths.
const KEPT: usize = 70;
/// How long a line may be, in characters.
const LONGEST_LINE: usize = 400;
/// How long a reason may be, in characters.
const LONGEST_REASON: usize = 500;

/// The markers around the lines that `init` writes and keeps up to date.
const MARKED: (&str, &str) = ("<!-- refrain:begin", "<!-- refrain:end");

#[derive(Clone, Copy, Debug)]
pub struct History<'a> {
    pub iterations: &'a [u32],
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("the answer is not of the form that was asked for: {0}")]
    Form(String),
    #[error("it changes nothing")]
    Nothing,
    #[error("the change at line {0} lies outside of the file, or in front of the one before it")]
    Place(usize),
    #[error("the file would have {0} lines; accepted: {LONGEST}, and {MOST_GAINED} more than now")]
    Size(usize),
    #[error("only {0} of 100 lines would stay as they are; accepted: {KEPT}")]
    Drift(usize),
    #[error("the change at line {0} names no reason, or no iteration that there was")]
    Evidence(usize),
    /// It changes lines that are written by `init`.
    #[error("the change at line {0} is one of the lines that refrain init wrote")]
    Marked(usize),
    #[error("a line of the change at line {line} {what}")]
    Unsafe { line: usize, what: Unsafe },
    #[error("a line of the change at line {line} looks like a secret: {what}")]
    Secret { line: usize, what: &'static str },
}

/// The file as the reflection would have it; `secret` says what a line looks like that is one.
pub fn judge(
    old: &str,
    reflection: &Reflection,
    history: History<'_>,
    secret: impl Fn(&str) -> Option<&'static str>,
) -> Result<String, Fault> {
    let lines: Vec<&str> = old.lines().collect();
    let mut at = 1;
    for change in &reflection.changes {
        let end = change.line.checked_add(change.remove).ok_or(Fault::Place(change.line))?;
        if change.line < at || change.line == 0 || end > lines.len() + 1 {
            return Err(Fault::Place(change.line));
        }
        at = end;
        evidence(change, history)?;
        let removed = &lines[change.line - 1..end - 1];
        if is_marked(&lines, change) || change.insert.iter().any(|line| line.contains("refrain:")) {
            return Err(Fault::Marked(change.line));
        }
        if let Some(line) = change.insert.iter().chain([&change.because]).find_map(|line| secret(line)) {
            return Err(Fault::Secret { line: change.line, what: line });
        }
        let what = safety::look(&change.insert, removed, LONGEST_LINE);
        if let Some(what) = what.or_else(|| safety::hidden(&change.because)) {
            return Err(Fault::Unsafe { line: change.line, what });
        }
    }
    let new = changed(old, &reflection.changes);
    let count = new.lines().count();
    if new == old || reflection.changes.is_empty() {
        return Err(Fault::Nothing);
    }
    if count > lines.len() + MOST_GAINED || (count > LONGEST && count > lines.len()) {
        return Err(Fault::Size(count));
    }
    let removed: usize = reflection.changes.iter().map(|change| change.remove).sum();
    let kept = ((lines.len() - removed) * 100).checked_div(lines.len()).unwrap_or(100);
    if kept < KEPT {
        return Err(Fault::Drift(kept));
    }
    // What is harmless line by line may not be so together, nor beside the old lines.
    let all: Vec<String> = new.lines().map(str::to_owned).collect();
    for change in &reflection.changes {
        let near = around(&all, change, &reflection.changes);
        if let Some(what) = safety::together(&near, &change.insert) {
            return Err(Fault::Unsafe { line: change.line, what });
        }
    }
    Ok(new)
}

fn evidence(change: &Change, history: History<'_>) -> Result<(), Fault> {
    let reason = change.because.trim();
    let is_told = !reason.is_empty() && reason.chars().count() <= LONGEST_REASON && !reason.contains('\n');
    let is_there = |iteration: &u32| history.iterations.contains(iteration);
    let is_shown = !change.iterations.is_empty() && change.iterations.iter().all(is_there);
    if is_told && is_shown { Ok(()) } else { Err(Fault::Evidence(change.line)) }
}

/// Whether a change touches the lines between the marks, or would be between them.
fn is_marked(lines: &[&str], change: &Change) -> bool {
    let begin = lines.iter().position(|line| line.contains(MARKED.0));
    let Some(begin) = begin else { return false };
    let end = lines.iter().position(|line| line.contains(MARKED.1)).unwrap_or(lines.len());
    let (from, until) = (change.line - 1, change.line - 1 + change.remove);
    from <= end && until > begin && !(from == begin && until == begin)
}

/// The new text around a change: with one line before it and one after.
fn around(new: &[String], change: &Change, changes: &[Change]) -> Vec<String> {
    let before = changes.iter().take_while(|other| other.line < change.line);
    let shift = before
        .fold(0_isize, |shift, other| shift + other.insert.len().cast_signed() - other.remove.cast_signed());
    let begin = (change.line - 1).saturating_add_signed(shift);
    let end = (begin + change.insert.len() + 1).min(new.len());
    new[begin.saturating_sub(1).min(end)..end].to_vec()
}
