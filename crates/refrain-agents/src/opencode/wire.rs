//! The JSON of OpenCode's output: one object per line, every field may be missing or malformed. Nothing here is
//! interpreted.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::wire::lax;

#[serde_with::apply(Option => #[serde(default, deserialize_with = "lax")])]
#[derive(Debug, Deserialize)]
pub(super) struct Event {
    #[serde(rename = "type")]
    pub(super) kind: EventKind,
    #[serde(rename = "sessionID")]
    pub(super) session: Option<String>,
    #[serde(default)]
    pub(super) part: Part,
    pub(super) error: Option<Failure>,
}

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
#[serde_with::apply(Option => #[serde(default, deserialize_with = "lax")])]
#[derive(Debug, Default, Deserialize)]
pub(super) struct Part {
    pub(super) text: Option<String>,
    /// Inserted by the program, not written by the model.
    #[serde(default)]
    pub(super) synthetic: bool,
    pub(super) tool: Option<String>,
    pub(super) state: Option<ToolState>,
    pub(super) reason: Option<Reason>,
    pub(super) tokens: Option<Usage>,
    pub(super) cost: Option<f64>,
}

#[serde_with::apply(Option => #[serde(default, deserialize_with = "lax")])]
#[derive(Debug, Deserialize)]
pub(super) struct ToolState {
    pub(super) status: ToolStatus,
    #[serde(default)]
    pub(super) input: Value,
    pub(super) output: Option<String>,
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
#[serde_with::apply(Option => #[serde(default, deserialize_with = "lax")])]
#[derive(Debug, Deserialize)]
pub(super) struct Usage {
    pub(super) input: Option<u64>,
    pub(super) output: Option<u64>,
    pub(super) reasoning: Option<u64>,
    #[serde(default)]
    pub(super) cache: Cache,
}

#[serde_with::apply(Option => #[serde(default, deserialize_with = "lax")])]
#[derive(Debug, Default, Deserialize)]
pub(super) struct Cache {
    pub(super) read: Option<u64>,
    pub(super) write: Option<u64>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Failure {
    #[serde(default)]
    pub(super) name: String,
    #[serde(default)]
    pub(super) data: FailureData,
}

#[serde_with::apply(Option => #[serde(default, deserialize_with = "lax")])]
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FailureData {
    #[serde(default)]
    pub(super) message: String,
    pub(super) status_code: Option<u16>,
    #[serde(default)]
    pub(super) is_retryable: bool,
    #[serde(default)]
    pub(super) response_headers: Map<String, Value>,
    pub(super) response_body: Option<String>,
}
