//! How people write tasks: the name, and lines with the dependencies, the files and the verification.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use crate::plan::TaskId;

/// The content of the lines below a title.
#[derive(Debug, Default)]
pub(super) struct TaskDetails {
    pub(super) dependencies: Vec<TaskId>,
    pub(super) files: Vec<String>,
    pub(super) verification: Option<String>,
    pub(super) test_strategy: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Dependencies,
    Files,
    Verification,
}

static LINE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    // Small or large, in ASCII: of Unicode's tables those are not built in.
    let keys = "((?i-u:dependencies|depends on|files|verify|verification))";
    Regex::new(&format!(r"^\s*(?:[-*+]\s+)?(?:\*\*|__)?{keys}(?:\*\*|__)?\s*:(?:\*\*|__)?(.*)$")).ok()
});

impl TaskDetails {
    /// What these lines say, each with its place; `code` returns the block of code that begins after a place.
    pub(super) fn of(lines: &[(Range<usize>, &str)], code: &dyn Fn(usize) -> Option<String>) -> Self {
        let (mut said, mut key) = (Self::default(), None);
        for (range, line) in lines {
            let found = LINE.as_ref().and_then(|pattern| pattern.captures(line));
            if let Some(found) = found {
                key = Some(match found[1].to_lowercase().as_str() {
                    "files" => Key::Files,
                    "verify" | "verification" => Key::Verification,
                    _ => Key::Dependencies,
                });
                let value = found[2].trim();
                if !value.is_empty() {
                    said.enter(key.take(), value);
                } else if key == Some(Key::Verification)
                    && let Some(code) = code(range.end)
                {
                    said.verification = Some(code);
                    key = None;
                }
            } else if let Some(item) = listed(line) {
                said.enter(key, item);
            } else if !line.trim().is_empty() {
                key = None;
            }
        }
        said
    }

    fn enter(&mut self, key: Option<Key>, value: &str) {
        match key {
            Some(Key::Dependencies) => {
                for id in dependencies(value) {
                    if !self.dependencies.contains(&id) {
                        self.dependencies.push(id);
                    }
                }
            }
            Some(Key::Files) => {
                let parts: Vec<_> = if value.contains('`') {
                    code_spans(value).collect()
                } else {
                    value.split(',').collect()
                };
                self.files
                    .extend(parts.into_iter().map(path).filter(|path| !path.is_empty()).map(str::to_owned));
            }
            Some(Key::Verification) if self.verification.is_none() => match command(value) {
                Some(command) => self.verification = Some(command.to_owned()),
                None => self.test_strategy = Some(value.to_owned()),
            },
            Some(Key::Verification) | None => {}
        }
    }
}

/// The words of a list's item, if the line is one, and has no box.
fn listed(line: &str) -> Option<&str> {
    let item = line.trim().strip_prefix(['-', '*', '+'])?;
    item.strip_prefix([' ', '\t']).map(str::trim).filter(|item| !item.starts_with('['))
}

/// A file's path, less the word before it that says what becomes of it.
fn path(text: &str) -> &str {
    let text = text.trim();
    text.rsplit_once(": ").map_or(text, |(_, path)| path.trim())
}

fn code_spans(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The command in a line: the text in backticks, else all of it, unless it begins as a sentence does.
fn command(value: &str) -> Option<&str> {
    if let Some(command) = code_spans(value).next().filter(|command| !command.trim().is_empty()) {
        return Some(command.trim());
    }
    let first = value.split_whitespace().next()?;
    let mut letters = first.chars();
    let is_prose = letters.next().is_some_and(char::is_uppercase) && letters.all(char::is_lowercase);
    (!is_prose).then_some(value)
}

fn dependencies(value: &str) -> Vec<TaskId> {
    let parts = value.split([',', ';', '&']).flat_map(|part| part.split(" and "));
    parts.filter_map(dependency).collect()
}

/// `Task 1`, `#1`, `1 (the parser)`, or the title of an item.
fn dependency(part: &str) -> Option<TaskId> {
    let part = part.trim().trim_matches(['`', '*', '_']).trim();
    let plain = part.trim_end_matches('.').to_lowercase();
    if ["", "none", "nothing", "n/a", "no", "-", "–", "—"].contains(&plain.as_str()) {
        return None;
    }
    let named = after_task(part).or_else(|| part.strip_prefix('#'));
    let words = named.unwrap_or(part).trim();
    let first = words.split_whitespace().next()?;
    let rest = words[first.len()..].trim();
    if named.is_some() || rest.is_empty() || rest.starts_with('(') {
        let id = first.trim_end_matches(['.', ':', ')', '*', '`']);
        return id.parse().ok().or_else(|| Some(TaskId::from_words(words)));
    }
    Some(TaskId::from_words(words))
}

fn after_task(text: &str) -> Option<&str> {
    let rest = text.get(..4).filter(|word| word.eq_ignore_ascii_case("task")).map(|_| &text[4..])?;
    let rest = rest.strip_prefix(['s', 'S']).unwrap_or(rest);
    rest.starts_with(char::is_whitespace).then(|| rest.trim_start())
}

/// The id and the title of a heading `Task 3: title`.
pub(super) fn heading(text: &str) -> Option<(TaskId, String)> {
    let rest = after_task(text.trim_start_matches(['*', '_']))?;
    let word = rest.split_whitespace().next()?;
    // A space after the colon is optional: only a name without digits may be that of a tag.
    let cut = word.find(':').filter(|at| word[..*at].contains(|c: char| c.is_ascii_digit()));
    let word = &word[..cut.map_or(word.len(), |at| at + 1)];
    let id = word.trim_end_matches(['.', ':', ')', '*', '_']);
    let is_letter = id.len() == 1 && id.starts_with(|c: char| c.is_ascii_alphabetic()) && word.len() > 1;
    if !is_letter && !id.contains(|c: char| c.is_ascii_digit()) {
        return None;
    }
    Some((id.parse().ok()?, title(&rest[word.len()..], text)))
}

/// The id that an item gives itself, and its title.
pub(super) fn item(text: &str) -> Option<(TaskId, String)> {
    if let Some(found) = heading(text) {
        return Some(found);
    }
    let plain = text.trim_start_matches(['*', '_']);
    let word = plain.split_whitespace().next()?;
    let id = word.trim_end_matches(['.', ':', ')']);
    let is_number = id.split('.').all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()));
    let letters = id.bytes().take_while(u8::is_ascii_uppercase).count();
    let rest = id[letters..].strip_prefix('-').unwrap_or(&id[letters..]);
    let is_code = letters > 0 && rest.len() > 1 && rest.bytes().all(|b| b.is_ascii_digit());
    if word.len() > id.len() && (is_number || is_code) {
        return Some((id.parse().ok()?, title(&plain[word.len()..], text)));
    }
    // With nothing after it, it may be a word of the title.
    let is_id = is_code || (is_number && id.contains('.'));
    is_id.then(|| Some((id.parse().ok()?, text.to_owned())))?
}

/// The text after an id; the whole if that is empty.
fn title(rest: &str, whole: &str) -> String {
    let title =
        rest.trim_start_matches(|c: char| c.is_whitespace() || [':', '-', '–', '—', '*', '_'].contains(&c));
    let title = if rest.contains("**") { title.trim_end_matches('*') } else { title };
    let title = if title.trim().is_empty() { whole } else { title };
    title.trim().to_owned()
}
