//! Statuses in the JSON shapes: values are replaced in place, and keys of our own (`blocked_reason`, `attempts`) are
//! added after the status, in the style of the file.

use std::collections::HashMap;

use super::edit::Edits;
use super::json::{Entry, entries, named_status};
use super::json_value::Raw;
use super::{Change, EditedTasks, FileError};
use crate::plan::{Note, TaskStatus};

const REASON: &str = "blocked_reason";
const ATTEMPTS: &str = "attempts";

pub(super) fn set(text: &str, tag: Option<&str>, changes: &[Change]) -> Result<EditedTasks, FileError> {
    let entries = entries(text, tag)?;
    let mut by_id = HashMap::with_capacity(entries.len());
    for entry in &entries {
        by_id.entry(&entry.id).or_insert(entry);
    }
    let (mut edits, mut missing, mut left) = (Edits::default(), Vec::new(), Vec::new());
    for change in super::last_words(changes) {
        match by_id.get(&change.task) {
            Some(entry) if !change.fits(status(entry)) => left.push(change.task.clone()),
            Some(entry) => write(text, entry, change, &mut edits),
            None => missing.push(change.task.clone()),
        }
    }
    Ok(EditedTasks { text: edits.apply(text), missing, left })
}

/// The status of a task; `null` means pending.
fn status(entry: &Entry<'_>) -> TaskStatus {
    entry.wire.status.and_then(named_status).unwrap_or_default()
}

fn write(text: &str, entry: &Entry<'_>, change: &Change, edits: &mut Edits) {
    let wire = &entry.wire;
    // `entries` refuses a task without an id.
    let Some(anchor) = wire.status.or(wire.id) else { return };
    let manner = Layout::of(text, anchor);
    let word = quoted(change.status.word());
    match wire.status {
        Some(_) if status(entry) == change.status => {}
        Some(raw) => edits.replace(raw.span(text), word),
        None if change.status == TaskStatus::Pending => {}
        None => edits.insert(manner.end, manner.member("status", &word)),
    }
    match &change.note {
        Some(Note { reason, attempts }) => {
            let values = [
                (REASON, wire.blocked_reason, quoted(reason)),
                (ATTEMPTS, wire.attempts, attempts.to_string()),
            ];
            for (key, found, value) in values {
                match found {
                    Some(raw) if raw.text() == value => {}
                    Some(raw) => edits.replace(raw.span(text), value),
                    None => edits.insert(manner.end, manner.member(key, &value)),
                }
            }
        }
        // Without a reason the number is not ours.
        None => remove(text, wire.blocked_reason, wire.attempts, edits),
    }
}

struct Layout<'a> {
    before: &'a str,
    between: &'a str,
    /// Where the value ends that others are added after.
    end: usize,
}

impl<'a> Layout<'a> {
    /// The manner of the member of that value.
    fn of(text: &'a str, value: Raw<'_>) -> Self {
        let span = value.span(text);
        let (key, key_end) = key(text, value);
        let before = text[..key].trim_end().len();
        Self { before: &text[before..key], between: &text[key_end..span.start], end: span.end }
    }

    fn member(&self, key: &str, value: &str) -> String {
        format!(",{}{}{}{value}", self.before, quoted(key), self.between)
    }
}

/// Where the key of a value begins and ends, with its quotation marks.
fn key(text: &str, value: Raw<'_>) -> (usize, usize) {
    let before = text[..value.span(text).start].trim_end();
    let end = before.strip_suffix(':').unwrap_or(before).trim_end().len();
    let is_open = |at: &usize| {
        let slashes = text[..*at].bytes().rev().take_while(|byte| *byte == b'\\').count();
        slashes % 2 == 0
    };
    let inner = end.saturating_sub(1);
    (text[..inner].rmatch_indices('"').map(|(at, _)| at).find(is_open).unwrap_or(inner), end)
}

/// Takes our members out of their object, and with each of them one of the commas beside it.
fn remove(text: &str, reason: Option<Raw<'_>>, attempts: Option<Raw<'_>>, edits: &mut Edits) {
    let Some(reason) = reason else { return };
    let mut members: Vec<_> = [Some(reason), attempts].into_iter().flatten().collect();
    members.sort_by_key(|value| value.span(text).start);
    let mut spans: Vec<_> = members.iter().map(|value| key(text, *value).0..value.span(text).end).collect();
    // Side by side they go as one: the comma between them is neither's.
    if let [first, second] = &mut spans[..]
        && text[first.end..second.start].trim() == ","
    {
        first.end = second.end;
        spans.truncate(1);
    }
    for span in spans {
        let before = text[..span.start].trim_end();
        if before.ends_with(',') {
            edits.replace(before.len() - 1..span.end, "");
        } else {
            let rest = text[span.end..].trim_start();
            let rest = rest.strip_prefix(',').map_or(rest, str::trim_start);
            edits.replace(span.start..text.len() - rest.len(), "");
        }
    }
}

pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
