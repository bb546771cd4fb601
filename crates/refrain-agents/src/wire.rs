//! What the readers of all streams share: lenient fields, lines that are no events, and texts cut to what is shown.

use refrain_core::agent::{AgentEvent, FaultKind};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// The most characters of a line that is shown: a notice, a tool call.
const LINE: usize = 240;
/// The most lines and characters of a tool's output that are shown.
const EXCERPT: (usize, usize) = (12, 2_000);

/// A field that is none where it is absent, null or not what was expected: one odd field must not hide an event.
pub(crate) fn lax<'de, D: Deserializer<'de>, T: DeserializeOwned>(input: D) -> Result<Option<T>, D::Error> {
    let value = Value::deserialize(input)?;
    Ok(serde_json::from_value(value).ok())
}

/// The event in a line. What is no event is said as it should be: nothing for an empty line, a notice for what is not
/// JSON, else that it is unknown.
pub(crate) fn event<T: DeserializeOwned>(line: &[u8], say: &mut dyn FnMut(AgentEvent)) -> Option<T> {
    if line.trim_ascii().is_empty() {
        return None;
    }
    if let Ok(event) = serde_json::from_slice(line) {
        return Some(event);
    }
    match serde_json::from_slice::<IgnoredAny>(line) {
        Ok(_) => say(AgentEvent::Unknown),
        Err(_) => say(AgentEvent::Notice(one_line(&String::from_utf8_lossy(line)))),
    }
    None
}

/// A text as one line: white space squeezed, cut where it is long.
pub(crate) fn one_line(text: &str) -> String {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > 4 * LINE {
            break;
        }
    }
    cut(line, LINE)
}

/// The first lines of an output.
pub(crate) fn excerpt(text: &str) -> String {
    let text = text.trim_end();
    let (lines, chars) = EXCERPT;
    let end = text.match_indices('\n').nth(lines - 1).map(|(index, _)| index);
    let head = &text[..end.unwrap_or(text.len())];
    match end {
        Some(_) => cut(format!("{head}\n…"), chars),
        None => cut(head.to_owned(), chars),
    }
}

fn cut(mut text: String, chars: usize) -> String {
    if let Some((end, _)) = text.char_indices().nth(chars) {
        text.truncate(end);
        text.push('…');
    }
    text
}

/// What a tool is used with, in one line: the argument that says most, else all of them.
pub(crate) fn about(input: &Value) -> String {
    const TELLING: [&str; 10] = [
        "command",
        "file_path",
        "path",
        "notebook_path",
        "pattern",
        "url",
        "query",
        "description",
        "prompt",
        "text",
    ];
    let telling = TELLING.iter().find_map(|key| match input.get(key)? {
        Value::String(text) => Some(one_line(text)),
        _ => None,
    });
    telling.unwrap_or_else(|| match input {
        Value::Null => String::new(),
        Value::String(text) => one_line(text),
        Value::Object(fields) if fields.is_empty() => String::new(),
        Value::Object(_) | Value::Array(_) | Value::Number(_) | Value::Bool(_) => {
            one_line(&input.to_string())
        }
    })
}

/// The text of a content that is a string, or a list of parts some of which are text.
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

/// What an HTTP status of a provider means; none for one that is no error, or says nothing.
pub(crate) fn of_status(status: u16) -> Option<FaultKind> {
    Some(match status {
        401 | 403 => FaultKind::Login,
        402 => FaultKind::Credit,
        404 => FaultKind::Model,
        408 => FaultKind::Connection,
        413 => FaultKind::Context,
        429 => FaultKind::RateLimit,
        400..500 => FaultKind::Refused,
        500..600 => FaultKind::Overloaded,
        _ => return None,
    })
}

/// The last thing that was said on standard error.
pub(crate) fn last_line<'a>(stderr: &'a str, otherwise: &'a str) -> &'a str {
    let mut lines = stderr.lines().rev().filter(|line| !line.trim().is_empty());
    lines.next().unwrap_or(otherwise)
}
