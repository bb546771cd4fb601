//! Giving up: the line by which a task's agent says that it cannot be done (seed 001). It counts in the same places as
//! the promise, at the beginning of a line.

use super::line::beginning;
use crate::text::{clip, squeeze};

pub(crate) const GIVES_UP: &str = "TASK_BLOCKED:";

pub(crate) const PLACEHOLDER: &str = "<reason>";

/// How much of the reason is kept, in bytes.
const LONGEST: usize = 500;

/// The reason, if the line gives up. A line that only repeats the prompt does not.
pub(super) fn given_up(line: &str) -> Option<String> {
    let reason = beginning(line).strip_prefix(GIVES_UP)?;
    let reason = squeeze(reason.trim_matches(|c: char| matches!(c, '*' | '_' | '~') || c.is_whitespace()));
    match reason.as_str() {
        PLACEHOLDER => None,
        "" => Some("it gave no reason".to_owned()),
        reason => Some(clip(reason, LONGEST).into_owned()),
    }
}
