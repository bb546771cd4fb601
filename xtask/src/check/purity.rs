//! refrain-core decides and has no effects: it uses no file, process, clock, randomness or thread.
//!
//! The check searches the text of its sources without comments and tests. That is no proof, but it catches the usual
//! mistake: a convenient `Timestamp::now()` in the middle of a decision, which would make a run impossible to replay.

use std::path::Path;

use super::finding::Finding;
use super::source::shipped_sources;
use crate::failure::Result;
use crate::files::shown;

/// Modules of the standard library that have effects.
const MODULES: &[&str] = &["fs", "net", "process", "env", "thread"];

const NAMES: &[&str] =
    &["tokio", "SystemTime::now", "Instant::now", "Timestamp::now", "Zoned::now", "rand::"];

/// Every place in refrain-core that reaches for an effect.
pub(crate) fn check(root: &Path) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    // Tests may read a seed from the environment or use every processor: they are not shipped.
    for (path, text) in shipped_sources(&root.join("crates/refrain-core/src"))? {
        for (line, what) in effects(&text) {
            findings.push(Finding::error(
                format!("{}:{line}", shown(&path, root)),
                format!("`{what}` is an effect, and refrain-core has none"),
                "take the value as an argument, or do it in refrain-engine",
            ));
        }
    }
    Ok(findings)
}

/// Line and name of every effect in a text without comments.
fn effects(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for name in NAMES {
        found.extend(occurrences(text, name).map(|at| (line_of(text, at), (*name).to_owned())));
    }
    for at in occurrences(text, "std::") {
        let rest = &text[at + "std::".len()..];
        let items = match rest.trim_start().strip_prefix('{') {
            Some(group) => first_names(group),
            None => vec![first_name(rest)],
        };
        for module in MODULES.iter().filter(|module| items.contains(*module)) {
            found.push((line_of(text, at), format!("std::{module}")));
        }
    }
    found.sort();
    found
}

/// The places where `name` is a whole name, not a part of another one.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::source::without_comments;

    fn found(source: &str) -> Vec<(usize, String)> {
        effects(&without_comments(source))
    }

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
            let names: Vec<String> = found(source).into_iter().map(|(_, what)| what).collect();
            assert_eq!(names, [expected], "{source}");
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
            assert_eq!(found(source), [], "{source}");
        }
    }

    #[test]
    fn the_line_is_that_of_the_source() {
        assert_eq!(found("/* one\ntwo */\n// three\nstd::net::x"), [(4, "std::net".to_owned())]);
    }
}
