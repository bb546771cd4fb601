//! The places of tasks in a Markdown text: the parser's headings, items and code, put together.

use std::collections::HashSet;
use std::ops::Range;

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use super::mark::Mark;
use super::task_details::{self, TaskDetails};
use crate::plan::TaskId;
use crate::plan::file::edit::lines;
use crate::plan::file::error::FileError;
use crate::text::squeeze;

/// The tasks of a text, in its order, and what is around them.
pub(super) struct Outline {
    pub(super) by_headings: bool,
    pub(super) name: Option<String>,
    pub(super) verification: Option<String>,
    pub(super) found: Vec<TaskItem>,
}

pub(super) struct TaskItem {
    pub(super) id: TaskId,
    pub(super) title: String,
    pub(super) is_heading: bool,
    /// Where its title ends: there a mark is put.
    pub(super) title_end: usize,
    /// The mark that is there, its range that in the text.
    pub(super) mark: Option<Mark>,
    pub(super) boxes: Vec<Tick>,
    pub(super) parent: Option<usize>,
    pub(super) has_parts: bool,
    pub(super) details: Option<String>,
    pub(super) said: TaskDetails,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Tick {
    pub(super) at: usize,
    pub(super) is_ticked: bool,
}

#[derive(Default)]
struct MarkdownParts {
    headings: Vec<Heading>,
    items: Vec<Item>,
    /// Code, with its text, and HTML, without.
    masked: Vec<(Range<usize>, Option<String>)>,
}

struct Heading {
    level: HeadingLevel,
    range: Range<usize>,
    inner: Range<usize>,
}

struct Item {
    range: Range<usize>,
    tick: Tick,
    line: Range<usize>,
}

impl Outline {
    pub(super) fn of(text: &str) -> Result<Self, FileError> {
        let seen = MarkdownParts::of(text);
        let name = seen.headings.iter().find(|heading| heading.level == HeadingLevel::H1);
        let name = name
            .map(|heading| squeeze(&text[heading.inner.clone()]))
            .filter(|name| task_details::heading(name).is_none());
        let (mut found, ranges) = seen.tasks(text);
        let by_headings = found.first().is_some_and(|found| found.is_heading);
        let mut owned: Vec<Vec<(Range<usize>, &str)>> = vec![Vec::new(); found.len() + 1];
        for (part, owner) in parts(&ranges, text.len()) {
            let owned = &mut owned[owner.map_or(0, |owner| owner + 1)];
            owned.extend(lines(text, part).map(|line| (line.clone(), &text[line])));
        }
        let code = |at: usize| seen.code_behind(text, at);
        let said = |lines: &[(Range<usize>, &str)]| {
            let lines: Vec<_> =
                lines.iter().filter(|(line, _)| !seen.is_masked(line.start)).cloned().collect();
            TaskDetails::of(&lines, &code)
        };
        let around = said(&owned[0]);
        for (found, lines) in found.iter_mut().zip(&owned[1..]) {
            found.said = said(lines);
            let below: Vec<_> =
                lines.iter().filter(|(line, _)| line.start > found.title_end).cloned().collect();
            found.details = if by_headings { None } else { details(&below) };
        }
        Ok(Self { by_headings, name, verification: around.verification, found })
    }
}

impl MarkdownParts {
    fn of(text: &str) -> Self {
        let base = text.len() - text.trim_start_matches('\u{feff}').len();
        let mut seen = Self::default();
        let mut heading: Option<Heading> = None;
        let mut items = Vec::new();
        let mut code: Option<String> = None;
        for (event, range) in Parser::new_ext(&text[base..], Options::ENABLE_TASKLISTS).into_offset_iter() {
            let range = range.start + base..range.end + base;
            match event {
                Event::Start(Tag::Heading { level, .. }) => {
                    heading = Some(Heading { level, inner: range.end..range.end, range });
                }
                Event::End(TagEnd::Heading(_)) => seen.headings.extend(heading.take()),
                Event::Start(Tag::Item) => items.push(range),
                Event::End(TagEnd::Item) => drop(items.pop()),
                Event::TaskListMarker(is_ticked) => {
                    // The box is the first thing of the innermost item: one item has one box.
                    let line = text[range.end..].find('\n').map_or(text.len(), |end| range.end + end);
                    let tick = Tick { at: range.start + 1, is_ticked };
                    let item = items.last().cloned().unwrap_or(range.clone());
                    seen.items.push(Item { range: item, tick, line: trimmed(text, range.end..line) });
                }
                Event::Start(Tag::CodeBlock(_)) => code = Some(String::new()),
                Event::End(TagEnd::CodeBlock) => seen.masked.push((range, code.take())),
                Event::Html(_) => seen.masked.push((range, None)),
                Event::Text(words) => {
                    if let Some(code) = &mut code {
                        code.push_str(&words);
                    }
                    widen(heading.as_mut(), &range);
                }
                Event::Start(_)
                | Event::End(_)
                | Event::Code(_)
                | Event::InlineMath(_)
                | Event::DisplayMath(_)
                | Event::InlineHtml(_)
                | Event::FootnoteReference(_)
                | Event::SoftBreak
                | Event::HardBreak
                | Event::Rule => widen(heading.as_mut(), &range),
            }
        }
        seen
    }

    fn tasks(&self, text: &str) -> (Vec<TaskItem>, Vec<Range<usize>>) {
        let (mut found, mut ranges): (Vec<TaskItem>, Vec<Range<usize>>) = (Vec::new(), Vec::new());
        let mut open: Vec<(HeadingLevel, usize)> = Vec::new();
        for heading in &self.headings {
            while let Some((_, ended)) = open.pop_if(|(level, _)| *level >= heading.level) {
                ranges[ended].end = heading.range.start;
            }
            let line = trimmed(text, heading.inner.clone());
            let (mark, title) = marked(text, &line);
            let Some((id, title)) = task_details::heading(&squeeze(title)) else { continue };
            // Levels of headings mean too many things: a part of a task is known by its number.
            let is_part = |of: &TaskItem| id.as_str().starts_with(&format!("{}.", of.id));
            let parent = open.iter().rev().map(|(_, parent)| *parent).find(|parent| is_part(&found[*parent]));
            open.push((heading.level, found.len()));
            ranges.push(heading.range.end..text.len());
            found.push(TaskItem::new(id, title, true, line.end, mark, parent));
        }
        if found.is_empty() {
            return self.items(text);
        }
        let mut ticks = self.items.iter().map(|item| item.tick).peekable();
        for (part, owner) in parts(&ranges, text.len()) {
            while let Some(tick) = ticks.next_if(|tick| tick.at < part.end) {
                if let Some(owner) = owner.filter(|_| tick.at >= part.start) {
                    found[owner].boxes.push(tick);
                }
            }
        }
        (with_parts(found), ranges)
    }

    fn items(&self, text: &str) -> (Vec<TaskItem>, Vec<Range<usize>>) {
        let (mut found, mut ranges): (Vec<TaskItem>, Vec<Range<usize>>) = (Vec::new(), Vec::new());
        let (mut open, mut taken): (Vec<usize>, HashSet<TaskId>) = (Vec::new(), HashSet::new());
        for Item { range, tick, line } in &self.items {
            while open.pop_if(|at: &mut usize| ranges[*at].end <= range.start).is_some() {}
            let (mark, title) = marked(text, line);
            let (id, title) = task_details::item(title).unwrap_or_else(|| {
                // Each of several items with one title is still a task.
                let id = TaskId::from_words(title);
                let tries = (2..).map_while(|number| format!("{id}-{number}").parse::<TaskId>().ok());
                let id =
                    std::iter::once(id.clone()).chain(tries).find(|id| !taken.contains(id)).unwrap_or(id);
                (id, title.to_owned())
            });
            taken.insert(id.clone());
            let parent = open.last().copied();
            open.push(found.len());
            // From the begin of its line on: the title is not the parent's.
            let begin = text[..range.start].rfind('\n').map_or(0, |end| end + 1);
            let begin = parent.map_or(begin, |parent| begin.max(ranges[parent].start));
            ranges.push(begin..range.end.max(line.end));
            found.push(TaskItem {
                boxes: vec![*tick],
                ..TaskItem::new(id, title, false, line.end, mark, parent)
            });
        }
        (with_parts(found), ranges)
    }

    fn is_masked(&self, at: usize) -> bool {
        let before = self.masked.partition_point(|(range, _)| range.start <= at);
        before > 0 && self.masked[before - 1].0.end > at
    }

    /// The text of the block of code after this place, with only space between.
    fn code_behind(&self, text: &str, at: usize) -> Option<String> {
        let next = self.masked.partition_point(|(range, _)| range.start < at);
        let (range, code) = self.masked.get(next)?;
        let is_next = text[at..range.start].trim().is_empty();
        code.as_ref().map(|code| code.trim()).filter(|code| is_next && !code.is_empty()).map(str::to_owned)
    }
}

impl TaskItem {
    fn new(
        id: TaskId,
        title: String,
        is_heading: bool,
        title_end: usize,
        mark: Option<Mark>,
        parent: Option<usize>,
    ) -> Self {
        let (boxes, details, said) = (Vec::new(), None, TaskDetails::default());
        Self { id, title, is_heading, title_end, mark, boxes, parent, has_parts: false, details, said }
    }
}

fn with_parts(mut found: Vec<TaskItem>) -> Vec<TaskItem> {
    for at in 0..found.len() {
        if let Some(parent) = found[at].parent {
            found[parent].has_parts = true;
        }
    }
    found
}

/// A heading's words reach as far as anything in it.
fn widen(heading: Option<&mut Heading>, range: &Range<usize>) {
    if let Some(heading) = heading {
        let Range { start, end } = heading.inner;
        heading.inner = if start == end { range.clone() } else { start.min(range.start)..end.max(range.end) };
    }
}

/// A part of the text without the space around it.
fn trimmed(text: &str, part: Range<usize>) -> Range<usize> {
    let words = text[part.clone()].trim_end();
    part.start + words.len() - words.trim_start().len()..part.start + words.len()
}

/// The mark of a title, as a part of the text, and the text before it.
fn marked<'a>(text: &'a str, line: &Range<usize>) -> (Option<Mark>, &'a str) {
    let title = &text[line.clone()];
    let mark = Mark::of(title);
    let title = mark.as_ref().map_or(title, |mark| &title[..mark.range.start]);
    let in_text = |range: Range<usize>| range.start + line.start..range.end + line.start;
    (mark.map(|mark| Mark { range: in_text(mark.range), ..mark }), title.trim_end())
}

/// The whole text in parts, each with the innermost of these ranges that contains it. The ranges begin in order, and
/// are nested or apart.
fn parts(ranges: &[Range<usize>], end: usize) -> Vec<(Range<usize>, Option<usize>)> {
    let (mut parts, mut open, mut at): (Vec<_>, Vec<usize>, usize) = (Vec::new(), Vec::new(), 0);
    let begins = ranges.iter().enumerate().map(|(owner, range)| (range.start, Some(owner)));
    for (begin, next) in begins.chain([(end, None)]) {
        while let Some(owner) = open.pop_if(|owner| ranges[*owner].end <= begin) {
            parts.push((at..ranges[owner].end, Some(owner)));
            at = ranges[owner].end;
        }
        parts.push((at..begin, open.last().copied()));
        at = begin;
        open.extend(next);
    }
    parts.retain(|(part, _)| !part.is_empty());
    parts
}

/// The text below an item's first line, without its indent.
fn details(lines: &[(Range<usize>, &str)]) -> Option<String> {
    let indent = |line: &&str| line.len() - line.trim_start().len();
    let least =
        lines.iter().map(|(_, line)| line).filter(|line| !line.trim().is_empty()).map(indent).min()?;
    let text: Vec<_> = lines.iter().map(|(_, line)| line.get(least..).unwrap_or_default()).collect();
    Some(text.join("\n").trim_matches('\n').trim_end().to_owned())
}
