//! The JSON of OpenCode's output: one object per line, every field may be missing or malformed. Nothing here is
//! interpreted.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::wire::lax;

#[derive(Debug, Deserialize)]
pub(super) struct Event {
    #[serde(rename = "type")]
    pub(super) kind: EventKind,
    #[serde(rename = "sessionID")]
    #[serde(default, deserialize_with = "lax")]
    pub(super) session: Option<String>,
    #[serde(default)]
    pub(super) part: Part,
    #[serde(default, deserialize_with = "lax")]
    pub(super) error: Option<Failure>,
}

/// The kind of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum EventKind {
    StepStart,
    Text,
    Reasoning,
    ToolUse,
    StepFinish,
    Error,
    #[serde(other)]
    Unknown,
}

/// A part of a message; the event determines its fields.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Part {
    #[serde(default, deserialize_with = "lax")]
    pub(super) text: Option<String>,
    /// Inserted by the program, not written by the model.
    #[serde(default)]
    pub(super) synthetic: bool,
    #[serde(default, deserialize_with = "lax")]
    pub(super) tool: Option<String>,
    #[serde(default, deserialize_with = "lax")]
    pub(super) state: Option<ToolState>,
    #[serde(default, deserialize_with = "lax")]
    pub(super) reason: Option<Reason>,
    #[serde(default, deserialize_with = "lax")]
    pub(super) tokens: Option<Usage>,
    #[serde(default, deserialize_with = "lax")]
    pub(super) cost: Option<f64>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ToolState {
    pub(super) status: ToolStatus,
    #[serde(default)]
    pub(super) input: Value,
    #[serde(default, deserialize_with = "lax")]
    pub(super) output: Option<String>,
    #[serde(default, deserialize_with = "lax")]
    pub(super) error: Option<String>,
    #[serde(default)]
    pub(super) metadata: Map<String, Value>,
}

/// How a tool call ended. A command that failed is `completed` too: its exit code is in the metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ToolStatus {
    Completed,
    Error,
    #[serde(other)]
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Reason {
    Stop,
    ToolCalls,
    Length,
    ContentFilter,
    /// The answer ended without a reason: OpenCode's own word for it.
    Unknown,
    #[serde(other)]
    Other,
}

/// The usage of a model call. `input` excludes the cached tokens, `output` excludes the reasoning.
#[derive(Debug, Deserialize)]
pub(super) struct Usage {
    #[serde(default, deserialize_with = "lax")]
    pub(super) input: Option<u64>,
    #[serde(default, deserialize_with = "lax")]
    pub(super) output: Option<u64>,
    #[serde(default, deserialize_with = "lax")]
    pub(super) reasoning: Option<u64>,
    #[serde(default)]
    pub(super) cache: Cache,
}

/// The cached part of the input.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Cache {
    #[serde(default, deserialize_with = "lax")]
    pub(super) read: Option<u64>,
    #[serde(default, deserialize_with = "lax")]
    pub(super) write: Option<u64>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Failure {
    #[serde(default)]
    pub(super) name: String,
    #[serde(default)]
    pub(super) data: FailureData,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FailureData {
    #[serde(default)]
    pub(super) message: String,
    #[serde(default, deserialize_with = "lax")]
    pub(super) status_code: Option<u16>,
    #[serde(default)]
    pub(super) is_retryable: bool,
    #[serde(default)]
    pub(super) response_headers: Map<String, Value>,
    #[serde(default, deserialize_with = "lax")]
    pub(super) response_body: Option<String>,
}
