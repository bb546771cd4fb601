//! SCUD's graph format (seed-systems.md section 4.3): phases separated by a line `---`, each with sections of lines.
//!
//! Unlike SCUD's own reader this one assumes nothing: a letter that is no status, a row that lacks a column and an edge
//! of an unknown task are errors, and blank lines in details stay.
//!
//! The format has no letters for `failed` and `awaiting-tune`, and no column for a reason. Such a task is `B`, which
//! SCUD understands, and the rest is in fields of its details, which SCUD skips: `blocked_as`, `blocked_reason`,
//! `attempts`.

use std::collections::HashMap;
use std::ops::Range;

use super::Tasks;
use super::edit::lines;
use super::error::{FileError, Position};
use super::scg_row::{Node, columns, id, malformed, node};
use crate::plan::{Note, Task, TaskId, TaskStatus};

const HEADER: &str = "# SCUD Graph";

pub(super) const STATUS: &str = "blocked_as";
pub(super) const REASON: &str = "blocked_reason";
pub(super) const ATTEMPTS: &str = "attempts";

pub(super) struct Phase<'a> {
    text: &'a str,
    tag: &'a str,
    pub(super) nodes: Vec<Node>,
    edges: Vec<(TaskId, TaskId)>,
    parents: Vec<(TaskId, TaskId)>,
    pub(super) details: Vec<Detail>,
    /// Where the last line of the details ends that is not blank.
    pub(super) details_end: Option<usize>,
    /// Where the last line of the phase ends that is not blank.
    pub(super) end: usize,
}

/// A field of `@details`.
pub(super) struct Detail {
    pub(super) task: TaskId,
    pub(super) field: String,
    /// From the end of the line before it to the end of its last line.
    pub(super) whole: Range<usize>,
    /// Its lines, as they are indented; nothing if there are none.
    pub(super) body: Range<usize>,
}

pub(super) fn read(text: &str, tag: &str) -> Result<Tasks, FileError> {
    let Phase { text, tag, nodes, edges, parents, details, .. } = phase(text, tag)?;
    let mut tasks: Vec<Task> = nodes.into_iter().map(|node| node.task).collect();
    let mut index = HashMap::with_capacity(tasks.len());
    for (at, task) in tasks.iter().enumerate() {
        index.entry(task.id.clone()).or_insert(at);
    }
    let of = |id: &TaskId| index.get(id).copied();
    for (from, to) in edges {
        let Some(task) = of(&from).map(|at| &mut tasks[at]) else { continue };
        if !task.dependencies.contains(&to) {
            task.dependencies.push(to);
        }
    }
    for (parent, child) in parents {
        if let Some(at) = of(&child) {
            tasks[at].parent = Some(parent);
        }
    }
    for detail in details {
        if let Some(at) = of(&detail.task) {
            detail.enter(text, &mut tasks[at])?;
        }
    }
    Ok(Tasks { name: Some(tag.to_owned()), tasks, verification: None, odd: Vec::new() })
}

pub(super) fn tags(text: &str) -> Result<Vec<String>, FileError> {
    let mut tags = Vec::new();
    for part in parts(text) {
        tags.extend(tag_of(text, part)?.map(|(tag, _)| tag.to_owned()));
    }
    Ok(tags)
}

pub(super) fn phase<'a>(text: &'a str, tag: &str) -> Result<Phase<'a>, FileError> {
    let mut known = Vec::new();
    for part in parts(text) {
        let Some((found, rest)) = tag_of(text, part)? else { continue };
        if found == tag {
            return Phase::parse(text, found, rest);
        }
        known.push(found.to_owned());
    }
    Err(FileError::NoTag { tag: tag.to_owned(), known })
}

/// The parts of a file between lines of `---`.
fn parts(text: &str) -> Vec<Range<usize>> {
    let (mut parts, mut begin) = (Vec::new(), text.len() - text.trim_start_matches('\u{feff}').len());
    for line in lines(text, begin..text.len()) {
        if text[line.clone()].trim_end() == "---" {
            parts.push(begin..line.start);
            begin = line.end;
        }
    }
    parts.push(begin..text.len());
    parts
}

/// The tag of a part, and the text after the line that names it; none if the part is blank.
fn tag_of(text: &str, part: Range<usize>) -> Result<Option<(&str, Range<usize>)>, FileError> {
    let is_first = text[..part.start].trim_start_matches('\u{feff}').is_empty();
    if text[part.clone()].trim().is_empty() && !is_first {
        return Ok(None);
    }
    let mut header = false;
    for line in lines(text, part.clone()) {
        let words = text[line.clone()].trim();
        if let Some(tag) = words.strip_prefix("# Phase:").or_else(|| words.strip_prefix("# Epic:"))
            && (header || !is_first)
        {
            return Ok(Some((tag.trim(), line.end..part.end)));
        }
        header |= words.starts_with(HEADER);
        if !(words.is_empty() || header && words.starts_with('#')) {
            break;
        }
    }
    let why = if is_first && !header {
        format!("the first line has to begin with `{HEADER}`")
    } else {
        "a phase has to begin with `# Phase: TAG`".to_owned()
    };
    let begin = part.start + text[part].bytes().take_while(u8::is_ascii_whitespace).count();
    Err(FileError::Malformed { place: Position::of(text, begin), why })
}

impl<'a> Phase<'a> {
    fn parse(text: &'a str, tag: &'a str, part: Range<usize>) -> Result<Self, FileError> {
        let mut phase = Phase {
            text,
            tag,
            nodes: Vec::new(),
            edges: Vec::new(),
            parents: Vec::new(),
            details: Vec::new(),
            details_end: None,
            end: part.start,
        };
        let mut section = "";
        let mut before = part.start;
        // Places of names of tasks, which may come before the tasks.
        let mut named = Vec::new();
        for line in lines(text, part) {
            let words = text[line.clone()].trim();
            if words.is_empty() {
                before = line.end;
                continue;
            }
            phase.end = line.end;
            if section == "details" && text[line.clone()].starts_with("  ") {
                if let Some(detail) = phase.details.last_mut() {
                    detail.extend(&line);
                }
            } else if let Some(name) = words.strip_prefix('@') {
                section = name.trim_end_matches('{').trim_end();
            } else if words != "}" && !words.starts_with('#') {
                match section {
                    "nodes" => phase.nodes.push(node(text, &line)?),
                    "edges" => named.extend(phase.edge(&line)?),
                    "parents" => named.extend(phase.parent(&line)?),
                    "details" => phase.details.push(Detail::begin(text, before, &line)?),
                    // `@meta`, `@assignments`, and what we do not know.
                    _ => {}
                }
            }
            if section == "details" {
                phase.details_end = Some(line.end);
            }
            before = line.end;
        }
        let known: std::collections::HashSet<_> = phase.nodes.iter().map(|node| &node.task.id).collect();
        match named.iter().find(|(id, _)| !known.contains(id)) {
            Some((id, at)) => Err(malformed(text, *at, format!("there is no task {id}"))),
            None => Ok(phase),
        }
    }

    /// A dependency, and the task that must be there for it to be one.
    fn edge(&mut self, line: &Range<usize>) -> Result<Option<(TaskId, usize)>, FileError> {
        let accepted = || malformed(self.text, line.start, "an edge is `dependent -> dependency`");
        let (from, to) = self.text[line.clone()].split_once("->").ok_or_else(accepted)?;
        let (from, to) = (id(self.text, line.start, from)?, id(self.text, line.start, to)?);
        self.edges.push((from.clone(), to));
        Ok(Some((from, line.start)))
    }

    fn parent(&mut self, line: &Range<usize>) -> Result<Vec<(TaskId, usize)>, FileError> {
        let row = self.text[line.clone()].trim();
        // Ids may have colons, but none before a space.
        let (parent, children) = row
            .split_once(": ")
            .or_else(|| row.strip_suffix(':').map(|parent| (parent, "")))
            .or_else(|| row.split_once(':'))
            .ok_or_else(|| malformed(self.text, line.start, "subtasks are `parent: child, child`"))?;
        let parent = id(self.text, line.start, parent)?;
        let mut named = Vec::new();
        for child in children.split(',').filter(|child| !child.trim().is_empty()) {
            let child = id(self.text, line.start, child)?;
            self.parents.push((parent.clone(), child.clone()));
            named.push((child, line.start));
        }
        Ok(named)
    }
}

impl Detail {
    fn begin(text: &str, before: usize, line: &Range<usize>) -> Result<Self, FileError> {
        let columns = columns(text, line);
        let [task, field, ..] = &columns[..] else {
            return Err(malformed(text, line.start, "a detail begins with `id | field |`"));
        };
        Ok(Self {
            task: id(text, line.start, &text[task.clone()])?,
            field: text[field.clone()].to_owned(),
            whole: before..line.end,
            body: line.end..line.end,
        })
    }

    fn extend(&mut self, line: &Range<usize>) {
        if self.body.is_empty() {
            self.body.start = line.start;
        }
        (self.body.end, self.whole.end) = (line.end, line.end);
    }

    /// Its lines, less their indent; blank ones stay.
    pub(super) fn words(&self, text: &str) -> String {
        let own = |line: Range<usize>| {
            let line = &text[line];
            line.strip_prefix("  ").unwrap_or(line.trim_start())
        };
        let is_comment = |line: &Range<usize>| text[line.clone()].starts_with('#');
        let lines = lines(text, self.body.clone()).filter(|line| !is_comment(line));
        lines.map(own).collect::<Vec<_>>().join("\n")
    }

    fn enter(&self, text: &str, task: &mut Task) -> Result<(), FileError> {
        let words = self.words(text);
        if words.trim().is_empty() {
            return Ok(());
        }
        let refused = |found: String, accepted: String| FileError::Field {
            place: Position::of(text, self.body.start),
            task: task.id.to_string(),
            field: "details",
            found,
            accepted,
        };
        match self.field.as_str() {
            "description" => task.description = Some(words),
            "details" => task.details = Some(words),
            "test_strategy" => task.test_strategy = Some(words),
            "verification" => task.verification = Some(words),
            // The details of a `B` mean nothing once the letter is another.
            STATUS if task.status == TaskStatus::Blocked => {
                let named = TaskStatus::named(words.trim());
                task.status = named.ok_or_else(|| refused(words, super::error::statuses()))?;
            }
            REASON => note(task).reason = words,
            ATTEMPTS => {
                let number = words.trim().parse().ok();
                note(task).attempts = number.ok_or_else(|| refused(words, "a whole number".to_owned()))?;
            }
            _ => {}
        }
        Ok(())
    }
}

fn note(task: &mut Task) -> &mut Note {
    task.note.get_or_insert_with(|| Note { reason: String::new(), attempts: 0 })
}
