//! The part of the prompt on a commit that was not made, or is not whole, if the agent can do something about it.

use std::fmt::Write;

use super::parts::{FAILURE_EXCERPT, fenced, separate};
use crate::git::{CommitReport, CommitResult, LeftOutReason, SkipReason};
use crate::text::cut_middle;

/// How many files that look like secrets are named to the agent.
const MOST_SECRETS: usize = 10;

/// A hook's complaint, and what looks like a secret.
pub(super) fn describe_refused_commit(report: &CommitReport) -> Option<String> {
    let mut text = String::new();
    if let CommitResult::Skipped(SkipReason::Hook { said }) = &report.result {
        let said = fenced(&cut_middle(said.trim(), FAILURE_EXCERPT));
        let _ =
            write!(text, "COMMIT REFUSED: a hook of the repository refused your changes. It said:\n\n{said}");
    }
    let secrets = report.left_out.iter().filter(|left| matches!(left.why, LeftOutReason::Secret { .. }));
    for (number, secret) in secrets.take(MOST_SECRETS).enumerate() {
        if number == 0 {
            if !text.is_empty() {
                separate(&mut text);
            }
            text.push_str("NOT COMMITTED, AS IT LOOKS LIKE A SECRET. Remove the secret from the file:");
        }
        let _ = write!(text, "\n- {}: {}", secret.path, secret.why);
    }
    for (number, secret) in report.exposed.iter().filter(|it| !it.allowed).take(MOST_SECRETS).enumerate() {
        if number == 0 {
            if !text.is_empty() {
                separate(&mut text);
            }
            text.push_str(
                "YOU COMMITTED WHAT LOOKS LIKE A SECRET. It stays in the history: do not rewrite the history. Remove it from the \
                 file, and write in your notes that it has to be replaced:",
            );
        }
        let _ = write!(text, "\n- {secret}");
    }
    (!text.is_empty()).then_some(text)
}
