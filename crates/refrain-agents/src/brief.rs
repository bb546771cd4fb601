//! What an agent says at length, said briefly: a line for the screen, an excerpt of an output.

use refrain_core::text::{clip, cut_middle, printable, squeeze};
use serde_json::{Map, Value};

/// The longest line that is shown of anything.
const LINE: usize = 300;
/// What is kept of a tool's output.
const OUTPUT: usize = 4 << 10;
/// What tells most about a tool call, the most telling first: the names that agents give to their tools' parameters.
const TELLING: [&str; 12] = [
    "command",
    "filePath",
    "file_path",
    "path",
    "dir_path",
    "pattern",
    "query",
    "url",
    "name",
    "description",
    "prompt",
    "text",
];

/// Any text as one line.
pub(crate) fn line(text: &str) -> String {
    clip(&squeeze(&printable(text)), LINE).into_owned()
}

/// A line that is no event.
pub(crate) fn raw(text: &[u8]) -> String {
    line(&String::from_utf8_lossy(&text[..text.len().min(4 * LINE)]))
}

/// Both ends of a tool's output.
pub(crate) fn output(text: &str) -> String {
    cut_middle(&printable(text), OUTPUT).into_owned()
}

/// What a tool is called for: its most telling parameter, else its first that is a text.
pub(crate) fn about(parameters: &Map<String, Value>) -> String {
    let text = |value: &Value| value.as_str().map(line);
    TELLING
        .iter()
        .find_map(|name| parameters.get(*name).and_then(text))
        .or_else(|| parameters.values().find_map(text))
        .unwrap_or_default()
}

/// The line of a standard error that tells most: the last that speaks of an error, else the last one.
pub(crate) fn last_words(stderr: &str) -> String {
    let speaks = |line: &&str| ["error", "failed", "not found", "cannot"].iter().any(|word| has(line, word));
    let mut lines = stderr.lines().rev().filter(|line| !line.trim().is_empty());
    lines.clone().find(speaks).or_else(|| lines.next()).map(line).unwrap_or_default()
}

/// Whether a program's text holds some words, whatever their case.
pub(crate) fn has(text: &str, words: &str) -> bool {
    text.to_ascii_lowercase().contains(words)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case::a_command(json!({"description": "lists", "command": "ls\n-l"}), "ls -l")]
    #[case::another_parameter(json!({"depth": 3, "where": "here"}), "here")]
    #[case::no_text(json!({"depth": 3}), "")]
    fn a_tool_call_is_one_line(#[case] parameters: Value, #[case] about_it: &str) {
        assert_eq!(about(parameters.as_object().unwrap()), about_it);
    }

    #[rstest]
    #[case::an_error_before_noise("Error: no key\nby the way\n", "Error: no key")]
    #[case::noise("by the way\nsomething\n\n", "something")]
    #[case::nothing("", "")]
    fn the_telling_line_is_found(#[case] stderr: &str, #[case] line: &str) {
        assert_eq!(last_words(stderr), line);
    }
}
