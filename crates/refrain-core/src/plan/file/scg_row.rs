//! Rows of SCUD's graph format: lines, columns, letters.

use std::borrow::Cow;
use std::ops::Range;

use super::error::{FileError, Position};
use crate::plan::{Priority, Task, TaskId, TaskIdError, TaskStatus};

const STATUSES: [(&str, TaskStatus); 8] = [
    ("P", TaskStatus::Pending),
    ("I", TaskStatus::InProgress),
    ("D", TaskStatus::Done),
    ("R", TaskStatus::Review),
    ("B", TaskStatus::Blocked),
    ("F", TaskStatus::Deferred),
    ("C", TaskStatus::Cancelled),
    ("X", TaskStatus::Expanded),
];

/// The letter of a status; that of `blocked` if it has none.
pub(super) fn letter(status: TaskStatus) -> &'static str {
    STATUSES.iter().find(|(_, known)| *known == status).map_or("B", |(letter, _)| letter)
}

pub(super) struct Node {
    pub(super) task: Task,
    /// Its status column, without the space around it.
    pub(super) status: Range<usize>,
}

pub(super) fn node(text: &str, line: &Range<usize>) -> Result<Node, FileError> {
    let columns = columns(text, line);
    let [first, title, status, complexity, priority, ..] = &columns[..] else {
        let why = "a task is `id | title | status | complexity | priority`";
        return Err(malformed(text, line.start, why));
    };
    let of = |column: &Range<usize>| &text[column.clone()];
    let mut task = Task::new(id(text, first.start, of(first))?, unescaped(of(title)).into_owned());
    let refused = |field, column: &Range<usize>, accepted: String| FileError::Field {
        place: Position::of(text, column.start),
        task: of(first).to_owned(),
        field,
        found: format!("{:?}", of(column)),
        accepted,
    };
    if !status.is_empty() {
        let found = STATUSES.iter().find(|(letter, _)| *letter == of(status));
        let letters = || STATUSES.map(|(letter, status)| format!("{letter} ({status})")).join(", ");
        task.status = found.ok_or_else(|| refused("status", status, letters()))?.1;
    }
    if !complexity.is_empty() {
        let accepted = || refused("complexity", complexity, "a whole number".to_owned());
        task.complexity = of(complexity).parse().map_err(|_| accepted())?;
    }
    task.priority = match of(priority) {
        "C" => Priority::Critical,
        "H" => Priority::High,
        "M" | "" => Priority::Medium,
        "L" => Priority::Low,
        _ => return Err(refused("priority", priority, "C, H, M or L".to_owned())),
    };
    Ok(Node { task, status: status.clone() })
}

/// The texts between the pipes of a row, without the space around them.
pub(super) fn columns(text: &str, line: &Range<usize>) -> Vec<Range<usize>> {
    let (row, mut columns, mut begin) = (&text[line.clone()], Vec::new(), 0);
    let mut is_escaped = false;
    let mut add = |from: usize, to: usize| {
        let column = &row[from..to];
        let words = column.trim();
        let space = if words.is_empty() { 0 } else { column.len() - column.trim_start().len() };
        let begin = line.start + from + space;
        columns.push(begin..begin + words.len());
    };
    for (at, byte) in row.bytes().enumerate() {
        match byte {
            b'\\' => is_escaped = !is_escaped,
            b'|' if !is_escaped => {
                add(begin, at);
                begin = at + 1;
            }
            _ => {}
        }
        is_escaped &= byte == b'\\';
    }
    add(begin, row.len());
    columns
}

/// A title as it was before `\`, `|` and line breaks were written otherwise.
fn unescaped(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let (mut out, mut chars) = (String::with_capacity(text.len()), text.chars());
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => out.push('\n'),
            Some(c @ ('|' | '\\')) => out.push(c),
            other => {
                out.push('\\');
                out.extend(other);
            }
        }
    }
    Cow::Owned(out)
}

pub(super) fn id(text: &str, at: usize, word: &str) -> Result<TaskId, FileError> {
    word.trim().parse().map_err(|error: TaskIdError| malformed(text, at, error.to_string()))
}

pub(super) fn malformed(text: &str, at: usize, why: impl Into<String>) -> FileError {
    FileError::Malformed { place: Position::of(text, at), why: why.into() }
}
