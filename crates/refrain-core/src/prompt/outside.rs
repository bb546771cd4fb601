//! What the agent is told that was held against its claim from outside: checks that failed, and a remote that went another way.

use std::fmt::Write;

use super::fenced;
use crate::r#loop::{LoopState, Objection};
use crate::text::{cut_middle, printable, squeeze};

/// How many checks, or paths, are named to the agent.
const MOST: usize = 20;

/// What is held against what the last iteration did; `logs` is the end of what the checks
/// that failed printed, or what both sides of a conflict did.
pub(super) fn objection(state: &LoopState, logs: Option<&str>, most: usize) -> Option<String> {
    let (iteration, objection) = state.git.published.objection.as_ref()?;
    if iteration + 1 != state.iteration {
        return None;
    }
    let mut text = match objection {
        Objection::Checks(checks) => {
            let mut text = format!(
                "CLAIM REFUSED: you said done, and it was pushed, but these checks of commit {} failed:",
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
                "CONFLICT: others pushed what does not go together with your work. Their newest commit is {theirs}: it is in this \
                 repository, look at it with git (git log, git diff {theirs}...HEAD and HEAD...{theirs}). Merge it (git merge \
                 {theirs}), keeping what both sides meant, and commit that. Both are at odds over:",
            );
            for conflict in paths.iter().take(MOST) {
                let _ = write!(text, "\n- {conflict}");
            }
            text
        }
    };
    let logs = logs.map(str::trim).filter(|logs| !logs.is_empty());
    if let Some(logs) = logs {
        let what = match objection {
            Objection::Checks(_) => "They printed",
            Objection::Conflict { .. } => "What both sides did there",
        };
        let _ = write!(text, "\n\n{what}:\n\n{}", fenced(&cut_middle(logs, most)));
    }
    Some(text)
}
