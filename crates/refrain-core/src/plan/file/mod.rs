//! Task files: text in, tasks out; and text in, text out, with some statuses changed and all else as it was, byte for
//! byte. Which file it is, and how it is replaced, is in refrain-store.
//!
//! Four shapes are known ([`Shape`]). SCUD's three are those of seed-systems.md section 4.3; the fourth is a plan or a
//! checklist in Markdown.

mod add;
mod edit;
mod error;
mod json;
mod json_edit;
mod json_value;
mod markdown;
mod scg;
mod scg_edit;
mod scg_row;
mod tasks;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

pub use add::{NewTask, add};
pub use error::FileError;
pub use markdown::draft;
pub use tasks::{Change, EditedTasks, Tasks};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A file for each tag: `{"tag", "tasks": [{"id": 1, "depends_on": [2], …}], "waves": […]}`.
    TagJson,
    /// All tags in one: `{TAG: {"tasks": [{"id": "1", "dependencies": ["2"], …}]}}`.
    TagsJson,
    /// SCUD's graph format, a phase for each tag.
    Scg,
    /// A plan with headings `## Task 1: title`, or a list of `- [ ] title`.
    Markdown,
}

impl Shape {
    /// The shape of a file of that name and text; none if the name is that of no task file.
    pub fn of(name: &str, text: &str) -> Result<Option<Self>, FileError> {
        match name.rsplit_once('.').map(|(_, extension)| extension) {
            Some("json") if json::holds_one_tag(text)? => Ok(Some(Self::TagJson)),
            Some("json") => Ok(Some(Self::TagsJson)),
            Some("scg") => Ok(Some(Self::Scg)),
            Some("md" | "markdown") => Ok(Some(Self::Markdown)),
            _ => Ok(None),
        }
    }
}

/// Reads the tasks of `tag`; a shape with only one tag is read under any name.
pub fn read(text: &str, shape: Shape, tag: &str) -> Result<Tasks, FileError> {
    match shape {
        Shape::TagJson => json::read(text, None),
        Shape::TagsJson => json::read(text, Some(tag)),
        Shape::Scg => scg::read(text, tag),
        Shape::Markdown => markdown::read(text),
    }
}

/// The tags that a file holds, in its order; none for a shape that holds but one without naming it.
pub fn tags(text: &str, shape: Shape) -> Result<Vec<String>, FileError> {
    match shape {
        Shape::TagJson | Shape::Markdown => Ok(Vec::new()),
        Shape::TagsJson => json::tags(text),
        Shape::Scg => scg::tags(text),
    }
}

/// Sets the statuses of tasks, unless another writer already changed them, and leaves every other byte as it was. One
/// pass for any number of changes.
pub fn set(text: &str, shape: Shape, tag: &str, changes: &[Change]) -> Result<EditedTasks, FileError> {
    match shape {
        Shape::TagJson => json_edit::set(text, None, changes),
        Shape::TagsJson => json_edit::set(text, Some(tag), changes),
        Shape::Scg => scg_edit::set(text, tag, changes),
        Shape::Markdown => markdown::set(text, changes),
    }
}

/// Whether a Markdown text has headings of tasks: then it is a task file, whatever else it holds.
pub fn has_task_headings(text: &str) -> bool {
    markdown::has_headings(text)
}

/// A task file in Markdown without the statuses in titles, except for what is done; one that cannot be read is returned
/// unchanged.
pub fn unmarked(text: &str) -> String {
    markdown::unmarked(text)
}

/// The changes, without those that later ones of the same task take back.
fn last_words(changes: &[Change]) -> impl Iterator<Item = &Change> {
    let last: HashMap<_, _> = changes.iter().enumerate().map(|(at, change)| (&change.task, at)).collect();
    changes.iter().enumerate().filter(move |(at, change)| last[&change.task] == *at).map(|(_, change)| change)
}
