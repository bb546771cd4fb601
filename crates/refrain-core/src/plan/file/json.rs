//! The JSON shapes: numbers and texts as ids, either spelling of dependencies, subtasks by name or as objects in their
//! parent (whose ids and dependencies count within it).

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use serde::Deserialize;

use super::Tasks;
use super::error::{FileError, statuses};
use super::json_value::{Members, Raw, present, read as parse};
use crate::plan::{Note, Priority, Problem, Task, TaskId, TaskStatus};

/// The tasks of one tag, as the file has them.
#[derive(Deserialize)]
struct Group<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    name: Option<Raw<'a>>,
    #[serde(borrow, default, deserialize_with = "present")]
    tag: Option<Raw<'a>>,
    #[serde(borrow, default, deserialize_with = "present")]
    verification: Option<Raw<'a>>,
    #[serde(borrow)]
    tasks: Raw<'a>,
    #[serde(borrow, default, deserialize_with = "present")]
    waves: Option<Raw<'a>>,
}

/// A task as the file has it. Keys that are not here are left alone.
#[derive(Deserialize)]
pub(super) struct Wire<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    pub(super) id: Option<Raw<'a>>,
    #[serde(borrow, default, deserialize_with = "present")]
    title: Option<Raw<'a>>,
    #[serde(borrow, default, deserialize_with = "present")]
    description: Option<Raw<'a>>,
    #[serde(borrow, default, deserialize_with = "present")]
    details: Option<Raw<'a>>,
    #[serde(borrow, default, deserialize_with = "present", alias = "testStrategy")]
    test_strategy: Option<Raw<'a>>,
    #[serde(borrow, default, deserialize_with = "present")]
    verification: Option<Raw<'a>>,
    #[serde(borrow, default, deserialize_with = "present")]
    pub(super) status: Option<Raw<'a>>,
    #[serde(borrow, default, deserialize_with = "present")]
    complexity: Option<Raw<'a>>,
    #[serde(borrow, default, deserialize_with = "present")]
    priority: Option<Raw<'a>>,
    #[serde(borrow, default, deserialize_with = "present")]
    depends_on: Option<Raw<'a>>,
    #[serde(borrow, default, deserialize_with = "present")]
    dependencies: Option<Raw<'a>>,
    #[serde(borrow, default, deserialize_with = "present")]
    parent_id: Option<Raw<'a>>,
    #[serde(borrow, default, deserialize_with = "present")]
    subtasks: Option<Raw<'a>>,
    #[serde(borrow, default, deserialize_with = "present")]
    files: Option<Raw<'a>>,
    #[serde(borrow, default, deserialize_with = "present")]
    pub(super) blocked_reason: Option<Raw<'a>>,
    #[serde(borrow, default, deserialize_with = "present")]
    pub(super) attempts: Option<Raw<'a>>,
}

pub(super) struct Entry<'a> {
    pub(super) id: TaskId,
    pub(super) wire: Wire<'a>,
    inside: Option<TaskId>,
    parts: Vec<TaskId>,
}

#[derive(Deserialize)]
struct Wave<'a> {
    number: u32,
    #[serde(borrow)]
    task_ids: Vec<Raw<'a>>,
}

/// The tasks of `tag`, or of a file that holds but one.
pub(super) fn read(text: &str, tag: Option<&str>) -> Result<Tasks, FileError> {
    let group = group(text, tag)?;
    let whole = group.tasks.read::<Vec<Raw<'_>>>(text)?;
    let (mut tasks, mut parents) = (Vec::with_capacity(whole.len()), HashMap::new());
    // One after the other, each with its content: holding all raw values of a large file takes several times the size
    // of its tasks.
    let mut entries = Vec::new();
    for raw in whole {
        enter(text, raw, None, &mut entries)?;
        let within: HashSet<TaskId> =
            entries.iter().filter(|entry| entry.inside.is_some()).map(|entry| entry.id.clone()).collect();
        for entry in entries.drain(..) {
            tasks.push(entry.task(text, &|id: &TaskId| within.contains(id))?);
            parents.extend(entry.parts.into_iter().map(|part| (part, entry.id.clone())));
        }
    }
    for task in tasks.iter_mut().filter(|task| task.parent.is_none()) {
        task.parent = parents.get(&task.id).cloned();
    }
    let odd = stored_waves(text, &group, &tasks);
    let name = [group.name, group.tag].into_iter().flatten().find_map(Raw::as_text);
    let verification = group.verification.and_then(Raw::as_text).filter(|text| !text.trim().is_empty());
    let [name, verification] = [name, verification].map(|text| text.map(Cow::into_owned));
    Ok(Tasks { name, tasks, verification, odd })
}

pub(super) fn tags(text: &str) -> Result<Vec<String>, FileError> {
    let is_group = |value: &Raw<'_>| value.text().starts_with('{');
    Ok(members(text)?.into_iter().filter(|(_, value)| is_group(value)).map(|(tag, _)| tag).collect())
}

fn members(text: &str) -> Result<Vec<(String, Raw<'_>)>, FileError> {
    let (at, json) = without_mark(text);
    Ok(parse::<Members<'_>>(json, text, at)?.0)
}

/// The text after the byte order mark, and where that begins.
fn without_mark(text: &str) -> (usize, &str) {
    let json = text.strip_prefix('\u{feff}').unwrap_or(text);
    (text.len() - json.len(), json)
}

fn group<'a>(text: &'a str, tag: Option<&str>) -> Result<Group<'a>, FileError> {
    let Some(tag) = tag else {
        let (at, json) = without_mark(text);
        return parse(json, text, at);
    };
    let mut members = members(text)?;
    match members.iter().position(|(name, _)| name == tag) {
        Some(at) => members.swap_remove(at).1.read(text),
        None => {
            let known = members.into_iter().map(|(name, _)| name).collect();
            Err(FileError::NoTag { tag: tag.to_owned(), known })
        }
    }
}

/// Every task of the file's tag, subtasks after their parents.
pub(super) fn entries<'a>(text: &'a str, tag: Option<&str>) -> Result<Vec<Entry<'a>>, FileError> {
    let tasks = group(text, tag)?.tasks.read::<Vec<Raw<'_>>>(text)?;
    let mut entries = Vec::with_capacity(tasks.len());
    for task in tasks {
        enter(text, task, None, &mut entries)?;
    }
    Ok(entries)
}

/// The last task of a file's tag.
pub(super) struct LastTask {
    pub(super) range: Range<usize>,
    /// Whether its id is a number.
    pub(super) has_numbers: bool,
}

pub(super) fn last(text: &str, tag: Option<&str>) -> Result<Option<LastTask>, FileError> {
    let tasks = group(text, tag)?.tasks.read::<Vec<Raw<'_>>>(text)?;
    let Some(last) = tasks.last() else { return Ok(None) };
    let wire: Wire<'_> = last.read(text)?;
    let has_numbers = wire.id.is_some_and(|id| id.text().starts_with(|c: char| c.is_ascii_digit()));
    Ok(Some(LastTask { range: last.span(text), has_numbers }))
}

/// Enters a task and those in it. It ends at any depth: each id is longer than that of the task around it, and ids are
/// short.
fn enter<'a>(
    text: &'a str,
    raw: Raw<'a>,
    inside: Option<&TaskId>,
    entries: &mut Vec<Entry<'a>>,
) -> Result<(), FileError> {
    let wire: Wire<'a> = raw.read(text)?;
    let Some(given) = wire.id else {
        let place = raw.place(text);
        return Err(FileError::Malformed { place, why: "a task has no `id`".to_owned() });
    };
    let id = within(inside, id(text, "?", "id", given)?)
        .map_err(|_| refused(text, "?", "id", given, "a shorter one"))?;
    let own = entries.len();
    let subtasks = wire.subtasks.filter(|it| !it.is_null());
    entries.push(Entry { id: id.clone(), wire, inside: inside.cloned(), parts: Vec::new() });
    for part in subtasks.map_or(Ok(Vec::new()), |it| list(text, id.as_str(), "subtasks", it))? {
        if part.text().starts_with('{') {
            enter(text, part, Some(&id), entries)?;
        } else {
            let part = self::id(text, id.as_str(), "subtasks", part)?;
            entries[own].parts.push(part);
        }
    }
    Ok(())
}

/// The full name of a task within another one: `1` in `5` is `5.1`, and so is `5.1`.
fn within(parent: Option<&TaskId>, id: TaskId) -> Result<TaskId, crate::plan::TaskIdError> {
    match parent {
        Some(parent) if !is_within(parent, &id) => format!("{parent}.{id}").parse(),
        Some(_) | None => Ok(id),
    }
}

fn is_within(parent: &TaskId, id: &TaskId) -> bool {
    id.as_str().strip_prefix(parent.as_str()).is_some_and(|rest| rest.len() > 1 && rest.starts_with('.'))
}

impl Entry<'_> {
    fn task(&self, text: &str, is_sibling: &dyn Fn(&TaskId) -> bool) -> Result<Task, FileError> {
        let Wire { title, status, complexity, priority, depends_on, dependencies, .. } = &self.wire;
        let words = |field, raw: Option<Raw<'_>>| self.words(text, field, raw);
        let mut task = Task::new(self.id.clone(), words("title", *title)?.unwrap_or_default());
        task.description = words("description", self.wire.description)?;
        task.details = words("details", self.wire.details)?;
        task.test_strategy = words("test_strategy", self.wire.test_strategy)?;
        task.verification = words("verification", self.wire.verification)?;
        if let Some(raw) = status.filter(|raw| !raw.is_null()) {
            task.status = named_status(raw).ok_or_else(|| self.refused(text, "status", raw, &statuses()))?;
        }
        if let Some(raw) = complexity.filter(|raw| !raw.is_null()) {
            task.complexity = raw.as_type().ok_or_else(|| {
                self.refused(text, "complexity", raw, "a whole number that is not negative")
            })?;
        }
        if let Some(raw) = priority.filter(|raw| !raw.is_null()) {
            const ACCEPTED: &str = "critical, high, medium or low";
            task.priority =
                raw.as_type::<Priority>().ok_or_else(|| self.refused(text, "priority", raw, ACCEPTED))?;
        }
        for (field, raw) in [("depends_on", depends_on), ("dependencies", dependencies)] {
            let Some(raw) = raw.filter(|raw| !raw.is_null()) else { continue };
            for raw in list(text, self.id.as_str(), field, raw)? {
                let on = id(text, self.id.as_str(), field, raw)?;
                // In a subtask's object the names of its siblings are short.
                let near = self.inside.as_ref().and_then(|parent| within(Some(parent), on.clone()).ok());
                let on = near.filter(|near| is_sibling(near)).unwrap_or(on);
                if !task.dependencies.contains(&on) {
                    task.dependencies.push(on);
                }
            }
        }
        let parent = self.wire.parent_id.filter(|raw| !raw.is_null());
        let parent = parent.map(|raw| id(text, self.id.as_str(), "parent_id", raw)).transpose()?;
        task.parent = self.inside.clone().or(parent);
        if let Some(raw) = self.wire.files.filter(|raw| !raw.is_null()) {
            task.files = raw.as_type().ok_or_else(|| self.refused(text, "files", raw, "a list of paths"))?;
        }
        task.note = self.note();
        Ok(task)
    }

    /// The keys of our own beside its status, if they are valid.
    fn note(&self) -> Option<Note> {
        let reason = self.wire.blocked_reason.and_then(Raw::as_text)?.into_owned();
        let attempts = self.wire.attempts.and_then(Raw::as_type).unwrap_or_default();
        Some(Note { reason, attempts })
    }

    /// A text, if there is one that says something.
    fn words(
        &self,
        text: &str,
        field: &'static str,
        raw: Option<Raw<'_>>,
    ) -> Result<Option<String>, FileError> {
        let Some(raw) = raw.filter(|raw| !raw.is_null()) else { return Ok(None) };
        let words = raw.as_text().ok_or_else(|| self.refused(text, field, raw, "a text"))?;
        Ok(Some(words.into_owned()).filter(|words| !words.trim().is_empty()))
    }

    fn refused(&self, text: &str, field: &'static str, raw: Raw<'_>, accepted: &str) -> FileError {
        refused(text, self.id.as_str(), field, raw, accepted)
    }
}

pub(super) fn named_status(raw: Raw<'_>) -> Option<TaskStatus> {
    raw.as_text().and_then(|word| TaskStatus::named(&word))
}

fn list<'a>(text: &str, task: &str, field: &'static str, raw: Raw<'a>) -> Result<Vec<Raw<'a>>, FileError> {
    if !raw.text().starts_with('[') {
        return Err(refused(text, task, field, raw, "a list"));
    }
    raw.read(text)
}

/// An id: a text, or a number as it is written.
fn id(text: &str, task: &str, field: &'static str, raw: Raw<'_>) -> Result<TaskId, FileError> {
    let is_number = raw.text().starts_with(|c: char| c.is_ascii_digit());
    let word = if is_number { Some(raw.text().into()) } else { raw.as_text() };
    let id = word.and_then(|word| word.parse().ok());
    id.ok_or_else(|| {
        refused(text, task, field, raw, "1 to 100 letters, digits, `_`, `:`, `.` and `-`, or a number")
    })
}

fn refused(text: &str, task: &str, field: &'static str, raw: Raw<'_>, accepted: &str) -> FileError {
    const SHOWN: usize = 60;
    let found = crate::text::clip(raw.text(), SHOWN).into_owned();
    let (task, accepted) = (task.to_owned(), accepted.to_owned());
    FileError::Field { place: raw.place(text), task, field, found, accepted }
}

/// Where the waves that a file stores put a task before, or beside, one that it depends on. An invalid list of waves
/// says nothing: they are made from the dependencies anyway.
fn stored_waves(text: &str, group: &Group<'_>, tasks: &[Task]) -> Vec<Problem> {
    let waves = group.waves.and_then(|raw| raw.read::<Vec<Wave<'_>>>(text).ok()).unwrap_or_default();
    let numbered = |wave: Wave<'_>| {
        let ids = wave.task_ids.into_iter().filter_map(|raw| id(text, "?", "task_ids", raw).ok());
        ids.map(move |id| (id, wave.number)).collect::<Vec<_>>()
    };
    let wave_of: HashMap<TaskId, u32> = waves.into_iter().flat_map(numbered).collect();
    let too_early = |task: &Task| {
        let wave = *wave_of.get(&task.id)?;
        let stored = task.dependencies.iter().filter_map(|on| Some((on.clone(), *wave_of.get(on)?)));
        let (on, on_wave) = stored.into_iter().find(|(_, it)| *it >= wave)?;
        Some(Problem::StoredWaves { task: task.id.clone(), wave, on, on_wave })
    };
    tasks.iter().filter_map(too_early).collect()
}

/// Whether a JSON text holds the tasks of but one tag.
pub(super) fn holds_one_tag(text: &str) -> Result<bool, FileError> {
    let members = members(text)?;
    Ok(members.iter().any(|(name, value)| name == "tasks" && value.text().starts_with('[')))
}
