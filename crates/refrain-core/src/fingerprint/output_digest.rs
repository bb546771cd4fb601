//! The output of a failure, folded line by line into what it says.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::shapes::{self, Shape};
use super::{FailureText, normal};
use crate::text::{clip, printable};

/// How many of the last lines are compared if no line is known to be a runner's verdict.
const TAIL: usize = 40;

#[derive(Debug, Default)]
pub(super) struct Reading {
    tests: BTreeSet<String>,
    /// Complaints in their compared form, with the different printed forms: their number counts.
    diagnostics: BTreeMap<String, BTreeSet<String>>,
    messages: BTreeSet<String>,
    details: BTreeSet<String>,
    /// The last lines that are no noise, as they were printed.
    tail: VecDeque<String>,
    said: Vec<String>,
    hinted: Vec<String>,
}

/// The context that the lines above give the next one.
#[derive(Default)]
enum LineContext {
    #[default]
    Nothing,
    /// Lines up to an empty one say what is wrong.
    Headline,
    /// Lines that belong to it are skipped.
    Warning,
    /// The next line is an excerpt.
    Frame,
    File(String),
}

impl Reading {
    pub(super) fn of(output: &str) -> Self {
        let mut reading = Self::default();
        let mut within = LineContext::default();
        for line in output.split('\n') {
            let line = last_shown(line);
            let line = printable(line);
            within = reading.read(line.trim_end(), within);
        }
        reading
    }

    fn read(&mut self, line: &str, within: LineContext) -> LineContext {
        if line.is_empty() {
            return LineContext::Nothing;
        }
        let found = shapes::of(line);
        match (&within, &found) {
            (LineContext::Frame, None | Some((Shape::Detail | Shape::Noise, ..))) => {
                return LineContext::Nothing;
            }
            (LineContext::Warning, Some((Shape::Test | Shape::Headline, ..))) => {}
            (LineContext::Warning, _) if belongs_to_warning(line) => return within,
            (LineContext::Headline, None | Some((Shape::Detail | Shape::Log, ..))) => {
                self.message(line, line);
                return within;
            }
            (
                LineContext::Nothing
                | LineContext::Frame
                | LineContext::Warning
                | LineContext::Headline
                | LineContext::File(_),
                _,
            ) => {}
        }
        let Some((shape, name, text)) = found else {
            self.keep_in_tail(line);
            return stays(within);
        };
        let text = text.as_deref().unwrap_or(line);
        match shape {
            // Only brackets may come between two lines of a message.
            Shape::Noise
                if matches!(within, LineContext::Headline) && line.contains(char::is_alphanumeric) =>
            {
                return LineContext::Nothing;
            }
            Shape::Noise => return stays(within),
            Shape::Warning => return LineContext::Warning,
            Shape::Frame => return LineContext::Frame,
            Shape::Test => {
                self.tests.extend(name.map(|name| normal::line(&name)));
                // A line that names a test and no more says nothing else.
                if text != line {
                    self.message(text, text);
                }
            }
            Shape::Diagnostic => self.diagnostic(text, line),
            Shape::Message => self.message(text, line),
            Shape::Headline => {
                self.message(text, line);
                self.keep_in_tail(line);
                return LineContext::Headline;
            }
            Shape::Detail => {
                self.details.insert(normal::line(line));
                show(&mut self.hinted, line);
            }
            Shape::File => {
                self.keep_in_tail(line);
                return LineContext::File(text.trim().to_owned());
            }
            Shape::Row => {
                if let LineContext::File(file) = &within {
                    self.diagnostic(&format!("{file}: {text}"), &format!("{file}: {}", line.trim()));
                } else {
                    self.diagnostic(text, line);
                }
            }
            Shape::Log => {}
        }
        self.keep_in_tail(line);
        stays(within)
    }

    fn diagnostic(&mut self, text: &str, line: &str) {
        self.diagnostics.entry(normal::line(text)).or_default().insert(line.to_owned());
        show(&mut self.said, line);
    }

    fn message(&mut self, text: &str, line: &str) {
        self.messages.insert(normal::line(text));
        show(&mut self.said, line);
    }

    fn keep_in_tail(&mut self, line: &str) {
        if self.tail.len() == TAIL {
            self.tail.pop_front();
        }
        self.tail.push_back(line.to_owned());
    }

    /// Whether a runner, a compiler or a linter that is known gave its verdict.
    fn is_known(&self) -> bool {
        !(self.tests.is_empty() && self.diagnostics.is_empty() && self.messages.is_empty())
    }

    /// The hashed items: without line breaks, in an order that does not depend on that of the output.
    pub(super) fn items(&self) -> impl Iterator<Item = String> {
        let mut plain = self.details.clone();
        if !self.is_known() {
            plain.extend(self.tail.iter().map(|line| normal::line(line)));
        }
        let tests = self.tests.iter().map(|name| format!("test {name}"));
        let diagnostics = self.diagnostics.iter().map(|(line, all)| format!("{} times {line}", all.len()));
        let messages = self.messages.iter().map(|line| format!("message {line}"));
        tests.chain(diagnostics).chain(messages).chain(plain.into_iter().map(|line| format!("line {line}")))
    }

    pub(super) fn into_tests(self) -> BTreeSet<String> {
        self.tests
    }

    pub(super) fn essence(self) -> FailureText {
        let tests =
            self.tests.iter().take(FailureText::MOST).map(|name| clip(name, FailureText::LINE).into_owned());
        let tail = self.tail.len().saturating_sub(FailureText::MOST);
        let mut errors = self.said;
        errors.extend(self.hinted);
        if errors.is_empty() {
            errors =
                self.tail.iter().skip(tail).map(|line| clip(line.trim(), FailureText::LINE).into()).collect();
        }
        errors.truncate(FailureText::MOST);
        FailureText { tests: tests.collect(), errors }
    }
}

/// What continues after a line that neither begins nor ends anything.
fn stays(within: LineContext) -> LineContext {
    match within {
        LineContext::File(_) | LineContext::Headline => within,
        LineContext::Nothing | LineContext::Warning | LineContext::Frame => LineContext::Nothing,
    }
}

/// Whether the line follows a compiler's warning: places, excerpts, notes.
fn belongs_to_warning(line: &str) -> bool {
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    rest.starts_with([' ', '\t', '|']) || line.starts_with("...")
}

fn show(lines: &mut Vec<String>, line: &str) {
    let line = clip(line.trim(), FailureText::LINE);
    if lines.len() < FailureText::MOST && !lines.iter().any(|shown| *shown == line) {
        lines.push(line.into_owned());
    }
}

/// What a terminal shows of a line in the end: text that a carriage return, or an escape that goes to the first column,
/// has overwritten is progress.
fn last_shown(line: &str) -> &str {
    let line = line.trim_end_matches('\r');
    ["\r", "\u{1b}[1G", "\u{1b}[0G", "\u{1b}[G", "\u{1b}[2K"]
        .into_iter()
        .fold(line, |line, mark| line.rsplit(mark).find(|part| !part.trim().is_empty()).unwrap_or_default())
}
