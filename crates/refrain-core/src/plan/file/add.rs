//! A new task at the end of a task file. What the file held before stays as it was: that is checked by reading the new
//! text.

use super::edit::Edits;
use super::json_edit::quoted;
use super::{FileError, Shape, Tasks, json, read, scg};
use crate::plan::{Task, TaskId};

/// A task to add.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewTask {
    /// What is to be done, in a line.
    pub title: String,
    /// The rest, for its agent.
    pub text: Option<String>,
    /// The tasks that have to be done first.
    pub dependencies: Vec<TaskId>,
}

const ALTERED: &str = "its title, its text or the end of the file has marks of the format";

/// The text with one more task, and the id of that.
pub fn add(text: &str, shape: Shape, tag: &str, task: &NewTask) -> Result<(String, TaskId), FileError> {
    let before = read(text, shape, tag)?;
    if let Some(unknown) = task.dependencies.iter().find(|id| !before.tasks.iter().any(|it| it.id == **id)) {
        return Err(FileError::NotAdded(format!("there is no task {unknown}")));
    }
    let id = next_id(&before.tasks)?;
    let new = match shape {
        Shape::TagJson => add_json(text, (None, "depends_on"), &id, task),
        Shape::TagsJson => add_json(text, (Some(tag), "dependencies"), &id, task),
        Shape::Scg => add_scg(text, tag, &id, task),
        Shape::Markdown => Ok(add_markdown(text, &before.tasks, &id, task)),
    }?;
    let after = read(&new, shape, tag)?;
    let added = added(&before, &after).filter(|it| it.title == task.title && is_same(it, task));
    let id = added.map(|it| it.id.clone()).ok_or_else(|| FileError::NotAdded(ALTERED.to_owned()))?;
    Ok((new, id))
}

fn is_same(task: &Task, new: &NewTask) -> bool {
    task.dependencies == new.dependencies && task.parent.is_none() && task.status.is_to_do()
}

/// The only new task of a text in which all others are as they were.
fn added<'a>(before: &Tasks, after: &'a Tasks) -> Option<&'a Task> {
    let mut old = before.tasks.iter().peekable();
    let mut new = after.tasks.iter().filter(|task| old.next_if_eq(task).is_none());
    let added = new.next()?;
    let is_only = new.next().is_none();
    (is_only && old.next().is_none()).then_some(added)
}

/// The number after the largest one.
fn next_id(tasks: &[Task]) -> Result<TaskId, FileError> {
    let numbers = tasks.iter().filter_map(|task| task.id.as_str().split('.').next()?.parse::<u64>().ok());
    let next = numbers.max().unwrap_or(0).saturating_add(1);
    next.to_string().parse().map_err(|error| FileError::NotAdded(format!("{error}")))
}

/// As an object after the last one, in one line.
fn add_json(
    text: &str,
    (tag, after): (Option<&str>, &str),
    id: &TaskId,
    task: &NewTask,
) -> Result<String, FileError> {
    let Some(last) = json::last(text, tag)? else {
        return Err(FileError::NotAdded("it has no task yet".to_owned()));
    };
    // Numbers where the file has numbers.
    let name = |id: &TaskId| match last.has_numbers && id.as_str().parse::<u64>().is_ok() {
        true => id.to_string(),
        false => quoted(id.as_str()),
    };
    let on: Vec<_> = task.dependencies.iter().map(name).collect();
    let description = task.text.iter().map(|text| format!("\"description\": {}, ", quoted(text)));
    let object = format!(
        r#"{{"id": {}, "title": {}, {}"status": "pending", "{after}": [{}]}}"#,
        name(id),
        quoted(&task.title),
        description.collect::<String>(),
        on.join(", ")
    );
    let space = &text[text[..last.range.start].trim_end().len()..last.range.start];
    let mut edits = Edits::default();
    edits.insert(last.range.end, format!(",{}{object}", if space.is_empty() { " " } else { space }));
    Ok(edits.apply(text))
}

/// As a row after the last one, with its edges and its text.
fn add_scg(text: &str, tag: &str, id: &TaskId, task: &NewTask) -> Result<String, FileError> {
    let phase = scg::phase(text, tag)?;
    let Some(last) = phase.nodes.last() else {
        return Err(FileError::NotAdded("it has no task yet".to_owned()));
    };
    let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let line_end = |at: usize| text[at..].find(['\r', '\n']).map_or(text.len(), |length| at + length);
    let title = task.title.replace('\\', "\\\\").replace('|', "\\|");
    let mut edits = Edits::default();
    edits.insert(line_end(last.status.end), format!("{end}{id} | {title} | P | 0 | M"));
    let edges: String = task.dependencies.iter().map(|on| format!("{end}{id} -> {on}")).collect();
    let rest = last.status.end..phase.end;
    let mut lines = super::edit::lines(text, rest);
    match lines.find(|line| text[line.clone()].trim() == "@edges") {
        _ if edges.is_empty() => {}
        Some(section) => edits.insert(section.end, edges),
        None => edits.insert(phase.end, format!("{end}{end}@edges{edges}")),
    }
    if let Some(words) = &task.text {
        let lines: String = words.lines().map(|line| format!("{end}  {line}")).collect();
        let row = format!("{end}{id} | description |{lines}");
        match phase.details_end {
            Some(at) => edits.insert(at, row),
            None => edits.insert(phase.end, format!("{end}{end}@details{row}")),
        }
    }
    Ok(edits.apply(text))
}

/// As a heading, or an item, at the end of the text, in the manner of the last one.
fn add_markdown(text: &str, before: &[Task], id: &TaskId, task: &NewTask) -> String {
    let headings = super::markdown::heading_marks(text);
    let has_numbers = before.iter().any(|it| it.id.as_str().starts_with(|c: char| c.is_ascii_digit()));
    let mut new = text.trim_end().to_owned();
    let on: Vec<_> = task.dependencies.iter().map(ToString::to_string).collect();
    let on = (!on.is_empty()).then(|| format!("Depends on: {}", on.join(", ")));
    let parts = task.text.iter().map(|words| words.trim_end()).chain(on.as_deref());
    match headings {
        Some(marks) => {
            new.push_str(&format!("\n\n{marks} Task {id}: {}\n", task.title));
            parts.for_each(|part| new.push_str(&format!("\n{part}\n")));
        }
        None => {
            let is_item =
                new.lines().last().is_some_and(|line| line.trim_start().starts_with(['-', '*', '+']));
            let number = if has_numbers { format!("{id}. ") } else { String::new() };
            new.push_str(&format!("{}- [ ] {number}{}\n", if is_item { "\n" } else { "\n\n" }, task.title));
            let lines = parts.flat_map(str::lines);
            lines.for_each(|line| new.push_str(&format!("  {line}\n")));
        }
    }
    new
}
