//! refrain-core decides and does nothing: no file, process, clock, chance or thread is within its reach.
//!
//! What is searched is the text of its sources without comments. That is no proof, but it catches what happens: a
//! convenient `Timestamp::now()` in the middle of a decision, which would make a run impossible to replay.

use std::path::Path;

use super::finding::Finding;
use crate::failure::Result;
use crate::files::{below, read, shown};

/// Modules of the standard library that have effects.
const MODULES: &[&str] = &["fs", "net", "process", "env", "thread"];

/// Other names that stand for an effect.
const NAMES: &[&str] =
    &["tokio", "SystemTime::now", "Instant::now", "Timestamp::now", "Zoned::now", "rand::"];

/// Every place in refrain-core that reaches for an effect.
pub(crate) fn check(root: &Path) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for path in below(&root.join("crates/refrain-core/src"))? {
        if path.extension().is_some_and(|extension| extension == "rs") {
            for (line, what) in effects(&read(&path)?) {
                findings.push(Finding::error(
                    format!("{}:{line}", shown(&path, root)),
                    format!("`{what}` is an effect, and refrain-core has none"),
                    "take the value as an argument, or do it in refrain-engine",
                ));
            }
        }
    }
    Ok(findings)
}

/// Line and name of every effect in a source text.
fn effects(source: &str) -> Vec<(usize, String)> {
    let text = without_comments(source);
    let mut found = Vec::new();
    for name in NAMES {
        found.extend(occurrences(&text, name).map(|at| (line_of(&text, at), (*name).to_owned())));
    }
    for at in occurrences(&text, "std::") {
        let rest = &text[at + "std::".len()..];
        let items = match rest.trim_start().strip_prefix('{') {
            Some(group) => first_names(group),
            None => vec![first_name(rest)],
        };
        for module in MODULES.iter().filter(|module| items.contains(*module)) {
            found.push((line_of(&text, at), format!("std::{module}")));
        }
    }
    found.sort();
    found
}

/// Where `name` stands as a name of its own, not as the end or the beginning of another one.
fn occurrences<'a>(text: &'a str, name: &'a str) -> impl Iterator<Item = usize> + 'a {
    text.match_indices(name).map(|(at, _)| at).filter(move |&at| {
        let before = text[..at].chars().next_back();
        let after = text[at + name.len()..].chars().next();
        !before.is_some_and(in_name) && (name.ends_with("::") || !after.is_some_and(in_name))
    })
}

fn in_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn first_name(text: &str) -> &str {
    let text = text.trim_start();
    text.find(|c| !in_name(c)).map_or(text, |end| &text[..end])
}

/// The first name of every item of a `use` group, of which the opening brace is already gone.
fn first_names(group: &str) -> Vec<&str> {
    let (mut depth, mut start, mut names) = (0_usize, 0, Vec::new());
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                names.push(first_name(&group[start..at]));
                start = at + 1;
                if c == '}' {
                    break;
                }
            }
            _ => {}
        }
    }
    names
}

fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

/// The text with comments blanked out and lines kept. Knows strings well enough not to see a comment in a URL.
pub(crate) fn without_comments(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(c) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            let length = rest.find('\n').unwrap_or(rest.len());
            rest = &rest[length..];
            continue;
        } else if rest.starts_with("/*") {
            let length = block_comment(rest);
            out.extend(rest[..length].chars().filter(|c| *c == '\n'));
            rest = &rest[length..];
            continue;
        } else if c == '"' {
            string(rest)
        } else if rest.starts_with("'\"'") {
            3
        } else if rest.starts_with("'\\\"'") {
            4
        } else {
            c.len_utf8()
        };
        out.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    out
}

/// The length of a block comment; they nest.
fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < text.len() {
        if text[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if text[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

/// The length of a string literal, its quotes included.
fn string(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effects_are_found_however_they_are_written() {
        for (source, expected) in [
            ("use std::fs::File;", "std::fs"),
            ("use std::{collections::{BTreeMap, env}, fs};", "std::fs"),
            ("use std::{\n    fmt,\n    thread::{self, sleep},\n};", "std::thread"),
            ("let t = jiff::Timestamp::now();", "Timestamp::now"),
            ("rand::rng()", "rand::"),
            ("use tokio::sync;", "tokio"),
            ("let s = \"// no comment\"; std::env::var(s)", "std::env"),
        ] {
            let found: Vec<String> = effects(source).into_iter().map(|(_, what)| what).collect();
            assert_eq!(found, [expected], "{source}");
        }
    }

    #[test]
    fn comments_and_other_names_are_left_alone() {
        for source in [
            "// std::fs is not for us",
            "/* std::env /* nested */ tokio */",
            "//! `Timestamp::now` is forbidden",
            "use std::{collections::BTreeMap, fmt};",
            "operand::new()",
            "std::fsync()",
            "tokio_like()",
            "let quote = '\"'; // std::fs",
        ] {
            assert!(effects(source).is_empty(), "{source}: {:?}", effects(source));
        }
    }

    #[test]
    fn the_line_is_that_of_the_source() {
        assert_eq!(effects("/* one\ntwo */\n// three\nstd::net::x"), [(4, "std::net".to_owned())]);
    }
}
