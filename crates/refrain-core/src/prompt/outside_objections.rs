//! The part of the prompt on objections from outside to a claim: failed checks, and a remote that went another way.

use std::fmt::Write;

use super::parts::Excerpt;
use crate::r#loop::{LoopState, Objection};
use crate::text::{printable, squeeze};

/// How many checks, or paths, are named to the agent.
const MOST: usize = 20;

/// The objection to the last iteration; `logs` is the end of the failed checks' output, or the changes of both sides of
/// a conflict.
pub(super) fn objection(state: &LoopState, logs: Option<&str>, excerpt: Excerpt) -> Option<String> {
    let (iteration, objection) = state.git.published.objection.as_ref()?;
    if iteration + 1 != state.iteration {
        return None;
    }
    let mut text = match objection {
        Objection::Checks(checks) => {
            let mut text = format!(
                "CLAIM REFUSED: your work was pushed, but these checks of commit {} failed:",
                checks.head.short()
            );
            for check in checks.failed.iter().take(MOST) {
                let _ = write!(text, "\n- {}", squeeze(&printable(&check.name)));
                if let Some(url) = &check.url {
                    let _ = write!(text, " ({})", squeeze(&printable(url)));
                }
            }
            text
        }
        Objection::Conflict { theirs, paths } => {
            let mut text = format!(
                "CONFLICT: others pushed changes that conflict with your work. Their newest commit is {theirs}: it is in this \
                 repository (see `git log`, `git diff {theirs}...HEAD` and `git diff HEAD...{theirs}`). Run `git merge {theirs}`, \
                 keep what both sides intended, and commit that. The conflicts are in:",
            );
            for conflict in paths.iter().take(MOST) {
                let _ = write!(text, "\n- {conflict}");
            }
            text
        }
    };
    let logs = logs.map(str::trim).filter(|logs| !logs.is_empty());
    match (logs, objection) {
        (Some(logs), Objection::Checks(_)) => {
            let _ = write!(text, "\n\n{}", excerpt.printed("They printed", logs));
        }
        (Some(logs), Objection::Conflict { .. }) => {
            let _ = write!(text, "\n\nWhat both sides changed there:\n\n{}", excerpt.whole(logs));
        }
        (None, _) => {}
    }
    Some(text)
}
