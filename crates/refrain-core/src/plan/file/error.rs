//! Why a task file cannot be used, and where in it.

use std::fmt;

use crate::plan::TaskStatus;
use crate::text::nearest;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
}

impl Position {
    /// The place of a byte of a text.
    pub(super) fn of(text: &str, at: usize) -> Self {
        let before = &text[..text.floor_char_boundary(at)];
        let begin = before.rfind('\n').map_or(0, |end| end + 1);
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        Self { line, column: before[begin..].trim_start_matches('\u{feff}').chars().count() + 1 }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    #[error("{place}: {why}")]
    Malformed { place: Position, why: String },
    #[error("{place}: task {task}: `{field}` is {found}; accepted: {accepted}")]
    Field { place: Position, task: String, field: &'static str, found: String, accepted: String },
    #[error("there is no tag {tag:?}{}", others(.tag, .known))]
    NoTag { tag: String, known: Vec<String> },
    #[error("it holds no tasks; {0}")]
    Nothing(&'static str),
    #[error("no task can be added to it: {0}; edit the file instead")]
    NotAdded(String),
}

pub(super) fn statuses() -> String {
    TaskStatus::ALL.map(TaskStatus::word).join(", ")
}

/// The tag that was probably meant, and the known ones.
fn others(tag: &str, known: &[String]) -> String {
    let meant = nearest(tag, known.iter().map(String::as_str));
    let meant = meant.map(|meant| format!("; did you mean {meant}?")).unwrap_or_default();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    format!("; there are: {known}{meant}")
}
