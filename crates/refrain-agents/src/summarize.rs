//! Shortens an agent's output: a line for the screen, an excerpt of an output. No part is longer than a few
//! kilobytes, and no control sequence reaches a terminal.

use refrain_core::text::{clip, cut_middle, printable, squeeze};
use serde_json::Value;

/// The longest displayed line, in bytes.
const LINE: usize = 300;
const OUTPUT: usize = 4 << 10;
/// Names of tool parameters, the most informative first.
const TELLING: [&str; 14] = [
    "command",
    "filePath",
    "file_path",
    "path",
    "dir_path",
    "notebook_path",
    "pattern",
    "url",
    "query",
    "description",
    "prompt",
    "text",
    "name",
    "message",
];

pub(crate) fn line(text: &str) -> String {
    // Only as much as can be shown is examined, apart from white space.
    let head = clip(text.trim_start(), 8 * LINE);
    clip(&squeeze(&printable(&head)), LINE).into_owned()
}

/// A line that is no event.
pub(crate) fn raw(text: &[u8]) -> String {
    let text = text.trim_ascii();
    line(&String::from_utf8_lossy(&text[..text.len().min(4 * LINE)]))
}

pub(crate) fn output(text: &str) -> String {
    cut_middle(printable(text).trim_end(), OUTPUT).into_owned()
}

/// A summary of a tool call in one line: its most informative parameter, else its only text, else all of them.
pub(crate) fn about(input: &Value) -> String {
    let telling = TELLING.iter().find_map(|name| input.get(name)?.as_str());
    match (input, telling) {
        (_, Some(text)) => line(text),
        (Value::Null, None) => String::new(),
        (Value::String(text), None) => line(text),
        (Value::Object(fields), None) if fields.is_empty() => String::new(),
        (Value::Object(fields), None) => {
            let mut texts = fields.values().filter_map(Value::as_str);
            match (texts.next(), texts.next()) {
                (Some(text), None) => line(text),
                _ => line(&input.to_string()),
            }
        }
        (Value::Array(_) | Value::Number(_) | Value::Bool(_), None) => line(&input.to_string()),
    }
}

/// The text of a content that is a string, or a list with some text parts.
pub(crate) fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|part| part.get("text")?.as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

/// The most informative line of a standard error: the last one about an error, else the last one; `otherwise` if it
/// is empty.
pub(crate) fn last_words(stderr: &str, otherwise: &str) -> String {
    let speaks = |line: &&str| ["error", "failed", "not found", "cannot"].iter().any(|word| has(line, word));
    let mut lines = stderr.lines().rev().filter(|line| !line.trim().is_empty());
    line(lines.clone().find(speaks).or_else(|| lines.next()).unwrap_or(otherwise))
}

/// Whether a program's text contains some words, in any case.
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
    #[case::several(json!({"what": "it", "where": "here"}), r#"{"what":"it","where":"here"}"#)]
    #[case::no_text(json!({"depth": 3}), r#"{"depth":3}"#)]
    #[case::a_text(json!("it  is"), "it is")]
    #[case::a_list(json!([1, 2]), "[1,2]")]
    #[case::nothing(json!({}), "")]
    #[case::none(json!(null), "")]
    fn a_tool_call_is_one_line(#[case] parameters: Value, #[case] about_it: &str) {
        assert_eq!(about(&parameters), about_it);
    }

    #[rstest]
    #[case::an_error_before_noise("Error: no key\nby the way\n", "Error: no key")]
    #[case::noise("by the way\nsomething\n\n", "something")]
    #[case::colours("\u{1b}[91mError: \u{1b}[0mgone\n", "Error: gone")]
    #[case::nothing("", "it said nothing")]
    fn the_telling_line_is_found(#[case] stderr: &str, #[case] line: &str) {
        assert_eq!(last_words(stderr, "it said nothing"), line);
    }

    #[test]
    fn summarized_lines_are_short() {
        for long in ["x".repeat(1 << 20), "\u{1b}[1m ä\n".repeat(1 << 17), " ".repeat(1 << 20) + "end"] {
            assert!(line(&long).len() <= LINE && !line(&long).contains('\n'));
            assert!(raw(long.as_bytes()).len() <= LINE);
            assert!(output(&long).len() <= OUTPUT + 64);
        }
        assert_eq!(line(&(" ".repeat(1 << 20) + "end")), "end");
    }
}
