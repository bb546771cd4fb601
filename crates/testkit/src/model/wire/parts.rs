use serde_json::Value;

use super::super::script::{Stop, Usage};
use super::super::tools::{Call, Tool};

#[derive(Debug, Default)]
pub(in super::super) struct ModelRequest {
    pub(in super::super) model: String,
    pub(in super::super) system: String,
    /// The messages of the user's side, with the program's additions.
    pub(in super::super) user: Vec<String>,
    pub(in super::super) tool_results: Vec<String>,
    pub(in super::super) tools: Vec<Tool>,
    pub(in super::super) wants_stream: bool,
    pub(in super::super) schema: Option<Value>,
}

#[derive(Debug)]
pub(in super::super) struct Reply {
    pub(in super::super) model: String,
    pub(in super::super) text: String,
    pub(in super::super) thoughts: String,
    pub(in super::super) calls: Vec<Call>,
    pub(in super::super) usage: Usage,
    pub(in super::super) stop: Stop,
    /// Makes the ids of one answer unlike those of another.
    pub(in super::super) serial: usize,
}

impl Reply {
    /// Whether there is text to send: always, if no tool is called.
    pub(super) fn has_text(&self) -> bool {
        !self.text.is_empty() || self.calls.is_empty()
    }
}

#[derive(Debug)]
pub(in super::super) struct Event {
    name: Option<&'static str>,
    data: String,
}

impl Event {
    pub(super) fn named(name: &'static str, mut data: Value) -> Self {
        data["type"] = name.into();
        Self { name: Some(name), data: data.to_string() }
    }

    pub(super) fn plain(data: impl ToString) -> Self {
        Self { name: None, data: data.to_string() }
    }

    pub(in super::super) fn frame(&self) -> String {
        let name = self.name.map(|name| format!("event: {name}\n")).unwrap_or_default();
        format!("{name}data: {}\n\n", self.data)
    }
}

/// The text in a content, in any form: a string, a part, or a list of parts.
pub(super) fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let parts: Vec<String> = parts.iter().map(text_of).filter(|text| !text.is_empty()).collect();
            parts.join("\n")
        }
        Value::Object(part) => {
            let inner = ["text", "content", "output", "parts"].iter().find_map(|key| part.get(*key));
            inner.map(text_of).unwrap_or_default()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    }
}

/// The members of a list; none if it is no list.
pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A string; empty if it is none.
pub(super) fn word(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// A tool, from its name and the schema of its arguments.
pub(super) fn tool(name: &Value, schema: &Value, is_plain: bool) -> Tool {
    let arguments =
        schema["properties"].as_object().into_iter().flat_map(|all| all.keys().cloned()).collect();
    Tool { name: word(name), arguments, is_plain }
}

/// A text in pieces, as streams bring it.
pub(super) fn pieces(text: &str) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    letters.chunks(40).map(|piece| piece.iter().collect()).collect()
}
