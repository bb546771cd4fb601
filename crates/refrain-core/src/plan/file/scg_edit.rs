//! Statuses in SCUD's graph format: a letter in its column, and the rest in details of our own.

use std::collections::HashMap;

use super::edit::Edits;
use super::scg::{ATTEMPTS, Detail, Phase, REASON, STATUS, phase};
use super::scg_row::{Node, letter};
use super::{Change, EditedTasks, FileError};
use crate::plan::TaskStatus;

pub(super) fn set(text: &str, tag: &str, changes: &[Change]) -> Result<EditedTasks, FileError> {
    let phase = phase(text, tag)?;
    let mut nodes = HashMap::with_capacity(phase.nodes.len());
    for node in &phase.nodes {
        nodes.entry(&node.task.id).or_insert(node);
    }
    let ours =
        phase.details.iter().filter(|detail| [STATUS, REASON, ATTEMPTS].contains(&detail.field.as_str()));
    let details: HashMap<_, _> = ours.map(|detail| ((&detail.task, detail.field.as_str()), detail)).collect();
    let mut writer = Writer { text, phase: &phase, edits: Edits::default(), added: String::new() };
    let (mut missing, mut left) = (Vec::new(), Vec::new());
    for change in super::last_words(changes) {
        match nodes.get(&change.task) {
            Some(node) => {
                let found = |field: &str| details.get(&(&change.task, field)).copied();
                match change.fits(status(text, node, found(STATUS))) {
                    true => writer.write(node, change, &found),
                    false => left.push(change.task.clone()),
                }
            }
            None => missing.push(change.task.clone()),
        }
    }
    Ok(EditedTasks { text: writer.finish(), missing, left })
}

/// The status of a task: from its letter, and from the details beside a `B`.
fn status(text: &str, node: &Node, detail: Option<&Detail>) -> TaskStatus {
    let letter = node.task.status;
    let beside = detail.filter(|_| letter == TaskStatus::Blocked);
    beside.and_then(|detail| TaskStatus::named(detail.words(text).trim())).unwrap_or(letter)
}

struct Writer<'a> {
    text: &'a str,
    phase: &'a Phase<'a>,
    edits: Edits,
    /// Details that were not there.
    added: String,
}

impl<'a> Writer<'a> {
    fn write(&mut self, node: &Node, change: &Change, found: &dyn Fn(&str) -> Option<&'a Detail>) {
        let Change { task, status, note, .. } = change;
        let letter = letter(*status);
        if self.text[node.status.clone()] != *letter
            && !(node.status.is_empty() && *status == TaskStatus::Pending)
        {
            let space = if node.status.is_empty() { " " } else { "" };
            self.edits.replace(node.status.clone(), format!("{space}{letter}"));
        }
        let has_no_letter = matches!(status, TaskStatus::Failed | TaskStatus::AwaitingTune);
        let values = [
            (STATUS, has_no_letter.then(|| status.word().to_owned())),
            (REASON, note.as_ref().map(|note| note.reason.clone())),
            (ATTEMPTS, note.as_ref().map(|note| note.attempts.to_string())),
        ];
        for (field, value) in values {
            match (found(field), value) {
                (Some(detail), Some(value)) if detail.words(self.text) == value => {}
                (Some(detail), value) => {
                    let row = value.map(|value| self.row(task.as_str(), field, &value));
                    self.edits.replace(detail.whole.clone(), row.unwrap_or_default());
                }
                (None, Some(value)) => {
                    let row = self.row(task.as_str(), field, &value);
                    self.added.push_str(&row);
                }
                (None, None) => {}
            }
        }
    }

    /// A detail, as it is written after the end of a line.
    fn row(&self, task: &str, field: &str, value: &str) -> String {
        let end = self.line_end();
        let lines: String = value.lines().map(|line| format!("{end}  {line}")).collect();
        format!("{end}{task} | {field} |{lines}")
    }

    fn line_end(&self) -> &'static str {
        if self.text.split_once('\n').is_some_and(|(line, _)| line.ends_with('\r')) { "\r\n" } else { "\n" }
    }

    fn finish(mut self) -> String {
        if !self.added.is_empty() {
            let end = self.line_end();
            match self.phase.details_end {
                Some(at) => self.edits.insert(at, self.added),
                None => self.edits.insert(self.phase.end, format!("{end}{end}@details{}", self.added)),
            }
        }
        self.edits.apply(self.text)
    }
}
