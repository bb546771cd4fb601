//! Private words: a text names the caller, the runner or the user, and no pronoun that stands for one of them. Comments
//! and names of functions and test cases are read for the words, and what the user reads for the phrases too: every shipped
//! Rust file, as its texts are there (help, errors, descriptions of MCP tools), the book, the schemas, the pages of the
//! server, the plugins, the accepted snapshots, and the scenarios.

use std::path::Path;

use super::finding::Finding;
use crate::failure::Result;
use crate::files::{read, rust_files, tracked};

/// Words that are no subject of a sentence here.
const WORDS: [&str; 5] = ["whoever", "somebody", "nobody", "anybody", "everybody"];
/// Phrases of the house that a reader has to learn, and what to write.
const PHRASES: [(&str, &str); 8] = [
    ("accepted is", "accepted: …"),
    ("accepted are", "accepted: …"),
    ("goes on", "continues, resumes"),
    ("is told", "gets, receives, is notified"),
    ("is left out", "is omitted"),
    ("saw it end", "its end was not observed"),
    ("where it is left out", "[default: …]"),
    ("that did not go", "something went wrong"),
];
/// The ends of the names of files with texts for the user, by the folder.
const TEXTS: [(&str, &str); 9] = [
    ("CHANGELOG.md", ""),
    ("README.md", ""),
    ("docs/", ".md"),
    ("docs/schema/", ".json"),
    ("crates/refrain-server/templates/", ".html"),
    ("crates/refrain-engine/src/init/", ""),
    ("plugins/", ""),
    ("crates/", ".snap"),
    ("crates/refrain/tests/it/scenarios/", ".txt"),
];

/// Every comment and name of the repository's Rust files with a private word, every line of shipped Rust with a phrase,
/// and every text with such a word or phrase.
pub(crate) fn check(root: &Path) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for name in rust_files(root)? {
        let is_shipped = name.starts_with("crates/") && name.contains("/src/");
        for (at, line) in read(&root.join(&name))?.lines().enumerate() {
            let place = || format!("{name}:{}", at + 1);
            if let Some(word) = comment(line).and_then(private) {
                let remedy = "name the caller, the runner, the user, the other process";
                findings.push(Finding::error(place(), format!("says `{word}`"), remedy));
            }
            if let Some(word) = declared(line).and_then(private) {
                let remedy = "name it by its subject, condition and outcome";
                findings.push(Finding::error(place(), format!("a name says `{word}`"), remedy));
            }
            findings.extend(phrase(line).filter(|_| is_shipped).map(|phrase| of_house(place(), phrase)));
        }
    }
    for name in tracked(root, "*")?.iter().filter(|name| is_text(name)) {
        for (at, line) in read(&root.join(name))?.lines().enumerate() {
            let place = || format!("{name}:{}", at + 1);
            if let Some(word) = private(line.to_lowercase()) {
                findings.push(Finding::error(
                    place(),
                    format!("says `{word}`"),
                    "name the person or the program",
                ));
            }
            findings.extend(phrase(line).map(|phrase| of_house(place(), phrase)));
        }
    }
    Ok(findings)
}

fn of_house(place: String, (phrase, better): (&str, &str)) -> Finding {
    Finding::error(place, format!("says `{phrase}`"), format!("write: {better}"))
}

/// The first phrase of the house in a line, and what to write.
fn phrase(line: &str) -> Option<(&'static str, &'static str)> {
    let line = line.to_lowercase();
    PHRASES.into_iter().find(|(phrase, _)| line.contains(phrase))
}

/// Whether a file has a text for the user.
fn is_text(name: &str) -> bool {
    TEXTS.iter().any(|(folder, end)| name.starts_with(folder) && name.ends_with(end))
}

/// The comment of a line that is one, or ends with one, in lower case.
fn comment(line: &str) -> Option<String> {
    let trimmed = line.trim_start();
    Some(if trimmed.starts_with("//") { trimmed } else { line.split_once(" // ")?.1 }.to_lowercase())
}

/// The name of the function or test case that a line declares.
fn declared(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let is_qualifier = |c: char| c.is_alphanumeric() || " ():_".contains(c);
    let name = line.strip_prefix("#[case::").or_else(|| {
        let (before, name) = line.split_once("fn ")?;
        before.chars().all(is_qualifier).then_some(name)
    })?;
    name.split(|c: char| !c.is_alphanumeric() && c != '_').next()
}

/// The first private word of a text in lower case; in a name its genitive too.
fn private(text: impl AsRef<str>) -> Option<&'static str> {
    let mut parts = text.as_ref().split(|c: char| !c.is_alphanumeric());
    parts.find_map(|part| {
        let part = part.strip_suffix('s').unwrap_or(part);
        WORDS.into_iter().find(|word| part == *word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_comments_are_read_and_whole_words() {
        for (line, word) in [
            ("    /// Whoever asks.", Some("whoever")),
            (concat!("let a = b; /", "/ for somebody's sake"), Some("somebody")),
            ("let uri = \"https://nobody\";", None),
            ("/// The caller.", None),
            ("/// A busybody.", None),
            ("fn nobody() {}", None),
        ] {
            assert_eq!(comment(line).and_then(private), word, "{line}");
        }
    }

    #[test]
    fn names_of_functions_and_cases_are_read() {
        for (line, word) in [
            ("    pub(crate) async fn nobody_waits() {", Some("nobody")),
            ("fn a_lock_of_somebody_stays() {", Some("somebody")),
            ("#[case::anybodys(1)]", Some("anybody")),
            ("fn a_busybody_waits() {", None),
            ("let text = \"fn nobody() {}\";", None),
            ("/// Calls fn nobody.", None),
        ] {
            assert_eq!(declared(line).and_then(private), word, "{line}");
        }
    }

    #[test]
    fn phrases_are_found_in_any_case() {
        assert_eq!(
            phrase("description = \"Is Told with the next iteration.\"").map(|it| it.0),
            Some("is told")
        );
        assert_eq!(phrase("if is_told { None }"), None);
    }

    #[test]
    fn texts_for_the_user_are_recognised_by_path() {
        for (name, is) in [
            ("docs/how-to/add-gates.md", true),
            ("docs/schema/event.json", true),
            ("crates/refrain-tui/src/snapshots/list.snap", true),
            ("crates/refrain-core/src/prompt.rs", false),
            ("docs/architecture.svg", false),
        ] {
            assert_eq!(is_text(name), is, "{name}");
        }
    }
}
