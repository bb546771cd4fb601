//! The part of the prompt on touched protected paths.

use std::fmt::Write;

use super::parts::{Excerpt, last_iteration};
use crate::event::ClaimSource;
use crate::r#loop::LoopState;
use crate::protect::ProtectionBreach;

const MOST_NAMED: usize = 20;

/// Which protected paths the last iteration touched, by which rule, its lines, and how to put them back.
pub(crate) fn describe_touched_paths(
    state: &LoopState,
    lines: Option<&str>,
    excerpt: Excerpt,
) -> Option<String> {
    let last = last_iteration(state)?;
    let touched = &last.proof.as_ref()?.candidate.touched;
    if touched.is_empty() {
        return None;
    }
    let is_claimed = last.claim.is_some_and(ClaimSource::is_said);
    let are_all = |is: fn(&ProtectionBreach) -> bool| touched.iter().all(is);
    let what = if are_all(|one| matches!(one, ProtectionBreach::Link(_))) {
        "links lead out of the worktree"
    } else if are_all(|one| matches!(one, ProtectionBreach::Hidden(_))) {
        "git is configured to pass over changes"
    } else if are_all(|one| matches!(one, ProtectionBreach::Unlike(_))) {
        "files differ from what a commit of them holds"
    } else if are_all(|one| matches!(one, ProtectionBreach::Submodule(_))) {
        "no commit holds the files of a repository in the repository"
    } else {
        "you changed what is protected"
    };
    let mut text = match is_claimed {
        true => format!("CLAIM REFUSED: {what}:"),
        false => format!("PROTECTED: {what}, so no claim counts:"),
    };
    for one in touched.iter().take(MOST_NAMED) {
        let _ = write!(text, "\n- {one}");
    }
    if touched.len() > MOST_NAMED {
        let _ = write!(text, "\n- and {} more", touched.len() - MOST_NAMED);
    }
    let is_file =
        |one: &ProtectionBreach| matches!(one, ProtectionBreach::Path(_) | ProtectionBreach::Part(_));
    if let Some(base) = state.git.base.as_ref().and_then(|base| base.protected.as_ref())
        && touched.iter().any(is_file)
    {
        let _ = write!(
            text,
            "\nRestore all of it, also in commits, and do the work without that change: `git show {base}:PATH` prints a file as it was. \
             Remove what is new."
        );
    }
    if state.spec.clean_checkout && touched.iter().any(is_file) {
        text.push_str(
            "\nIf one of them is as it was in the worktree, code that a gate ran changed it in the clean checkout.",
        );
    }
    if touched.iter().any(|one| matches!(one, ProtectionBreach::Link(_))) {
        text.push_str("\nReplace such links by files, or by links that stay inside the worktree.");
    }
    if touched.iter().any(|one| matches!(one, ProtectionBreach::Program(_))) {
        text.push_str("\nRemove what hides or replaces a program that the gates run.");
    }
    if let Some(lines) = lines.map(str::trim).filter(|lines| !lines.is_empty()) {
        let _ = write!(text, " What changed:\n\n{}", excerpt.whole(lines));
    }
    Some(text)
}
