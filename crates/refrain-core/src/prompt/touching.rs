//! What the agent is told of protections: what stays as it is, and what of it was touched.

use std::fmt::Write;

use super::{fenced, last_iteration};
use crate::event::ClaimSource;
use crate::r#loop::LoopState;
use crate::protect::Touched;
use crate::spec::{ProtectSpec, Spec};
use crate::text::{clip, cut_middle, printable};

/// How much is said of what is protected, in bytes: an offer of `--auto-gates` has some fifty globs.
const LONGEST_LIST: usize = 800;

/// How many touched things are named.
const MOST_NAMED: usize = 20;

/// What stays as it is, in a line; nothing where nothing has to.
pub(super) fn what_is_kept(spec: &Spec) -> String {
    let ProtectSpec { frozen, existing, parts } = &spec.protect;
    let list = |globs: &[String]| clip(&printable(&globs.join(", ")), LONGEST_LIST).into_owned();
    let mut rules = Vec::new();
    if !frozen.is_empty() {
        rules.push(format!("these are not changed, deleted or added: {}", list(frozen)));
    }
    if !existing.is_empty() {
        rules.push(format!("these may gain files, but what is there stays as it is: {}", list(existing)));
    }
    if !parts.is_empty() {
        let part = |part: &crate::protect::Part| {
            let keys: Vec<_> = part.frozen.iter().chain(&part.may_gain).map(String::as_str).collect();
            format!("{} ({})", part.path, keys.join(", "))
        };
        rules.push(format!("these parts stay: {}", list(&parts.iter().map(part).collect::<Vec<_>>())));
    }
    match rules.is_empty() {
        true => String::new(),
        false => format!("- Protected, or no claim counts: {}\n", rules.join("; ")),
    }
}

/// What of the protected was touched behind the last iteration, by which rule, its lines, and how to put it back.
pub(crate) fn what_was_touched(state: &LoopState, lines: Option<&str>, most: usize) -> Option<String> {
    let last = last_iteration(state)?;
    let touched = &last.proof.as_ref()?.candidate.touched;
    if touched.is_empty() {
        return None;
    }
    let mut text = match last.claim {
        Some(ClaimSource::Promise | ClaimSource::StateFile) => {
            "CLAIM REFUSED: you said done, but you changed what is protected:".to_owned()
        }
        Some(ClaimSource::ExitCode | ClaimSource::Gates | ClaimSource::Result | ClaimSource::Count)
        | None => "PROTECTED: no claim counts, as you changed what is protected:".to_owned(),
    };
    for one in touched.iter().take(MOST_NAMED) {
        let _ = write!(text, "\n- {one}");
    }
    if touched.len() > MOST_NAMED {
        let _ = write!(text, "\n- and {} more", touched.len() - MOST_NAMED);
    }
    let is_file = |one: &Touched| matches!(one, Touched::Path(_) | Touched::Part(_));
    if let Some(base) = state.git.base.as_ref().and_then(|base| base.protected.as_ref())
        && touched.iter().any(is_file)
    {
        let _ = write!(
            text,
            "\nPut all of it back as it was, and do the work without that: `git show {base}:PATH` prints a file as it was; \
             take away what is new."
        );
    }
    if !touched.iter().all(is_file) {
        text.push_str("\nTake away what stands in front of a program of the gates, or in its place.");
    }
    if let Some(lines) = lines.map(str::trim).filter(|lines| !lines.is_empty()) {
        let _ = write!(text, " What changed:\n\n{}", fenced(&cut_middle(lines, most)));
    }
    Some(text)
}
