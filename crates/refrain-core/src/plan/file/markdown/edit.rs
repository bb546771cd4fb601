//! Statuses in Markdown: boxes are ticked, and other statuses are written at the end of the title.

use std::collections::HashMap;

use super::mark::Mark;
use super::outline::{Outline, TaskItem};
use crate::plan::file::edit::Edits;
use crate::plan::file::{Change, EditedTasks, FileError, last_words};
use crate::plan::{TaskId, TaskStatus};

pub(in crate::plan::file) fn set(text: &str, changes: &[Change]) -> Result<EditedTasks, FileError> {
    let outline = Outline::of(text)?;
    let mut by_id = HashMap::with_capacity(outline.found.len());
    for found in &outline.found {
        by_id.entry(&found.id).or_insert(found);
    }
    let (mut edits, mut missing, mut left) = (Edits::default(), Vec::new(), Vec::new());
    let mut changed = HashMap::new();
    for change in last_words(changes) {
        match by_id.get(&change.task) {
            Some(found) if !change.fits(found.status()) => left.push(change.task.clone()),
            Some(found) => {
                changed.insert(&change.task, change.status);
                write(text, found, change, &mut edits);
            }
            None => missing.push(change.task.clone()),
        }
    }
    for whole in completed(&outline, &changed) {
        let (task, from) = (whole.id.clone(), whole.status());
        let change = Change { task, from, status: TaskStatus::Done, note: None };
        write(text, whole, &change, &mut edits);
    }
    Ok(EditedTasks { text: edits.apply(text), missing, left })
}

/// The tasks whose parts are done in their place, with all parts done now, if these changes completed one of them.
fn completed<'a>(outline: &'a Outline, changed: &HashMap<&TaskId, TaskStatus>) -> Vec<&'a TaskItem> {
    let mut stands: Vec<_> =
        outline.found.iter().map(|it| changed.get(&it.id).copied().unwrap_or_else(|| it.status())).collect();
    let mut parts: Vec<(bool, bool)> = vec![(true, false); outline.found.len()];
    let mut completed = Vec::new();
    // A part comes after its whole.
    for (at, found) in outline.found.iter().enumerate().rev() {
        let (are_done, is_news) = parts[at];
        let is_completed = stands[at] == TaskStatus::Expanded && found.has_parts && are_done && is_news;
        if is_completed {
            stands[at] = TaskStatus::Done;
            completed.push(found);
        }
        if let Some(parent) = found.parent {
            let is_news = is_completed || changed.contains_key(&found.id);
            // A cancelled part is no reason to wait.
            let is_over = matches!(stands[at], TaskStatus::Done | TaskStatus::Cancelled);
            parts[parent] = (parts[parent].0 && is_over, parts[parent].1 || is_news);
        }
    }
    completed
}

/// Removes the marks, except those of done tasks.
pub(in crate::plan::file) fn unmarked(text: &str) -> String {
    let Ok(outline) = Outline::of(text) else { return text.to_owned() };
    let mut edits = Edits::default();
    let marks = outline.found.iter().filter_map(|found| found.mark.as_ref());
    marks
        .filter(|mark| mark.status != TaskStatus::Done)
        .for_each(|mark| edits.replace(mark.range.clone(), ""));
    edits.apply(text)
}

fn write(text: &str, found: &TaskItem, change: &Change, edits: &mut Edits) {
    let is_done = change.status == TaskStatus::Done;
    let mut all_ticked = true;
    for tick in &found.boxes {
        // The steps of a heading stay as they are until it is done; the box of an item shows the item's status.
        let should = is_done || (found.is_heading && tick.is_ticked);
        if should != tick.is_ticked {
            edits.replace(tick.at..tick.at + 1, if should { "x" } else { " " });
        }
        all_ticked &= should;
    }
    let says_itself = found.by_boxes(all_ticked) == change.status && change.note.is_none();
    let mark = if says_itself { String::new() } else { Mark::text(change.status, change.note.as_ref()) };
    let there = found.mark.as_ref().map_or(found.title_end..found.title_end, |mark| mark.range.clone());
    if text[there.clone()] != mark {
        edits.replace(there, mark);
    }
}
