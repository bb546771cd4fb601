//! The JSON of Gemini CLI's output: one object per line, every field may be missing or malformed. Nothing here is
//! interpreted.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::wire::lax;

#[serde_with::apply(Option => #[serde(default, deserialize_with = "lax")])]
#[derive(Debug, Deserialize)]
pub(super) struct Event {
    #[serde(rename = "type")]
    pub(super) kind: EventKind,
    pub(super) session_id: Option<String>,
    pub(super) model: Option<String>,
    pub(super) role: Option<Role>,
    pub(super) content: Option<String>,
    #[serde(default)]
    pub(super) delta: bool,
    pub(super) tool_name: Option<String>,
    #[serde(default)]
    pub(super) parameters: Value,
    pub(super) status: Option<Status>,
    pub(super) output: Option<String>,
    pub(super) error: Option<Failure>,
    pub(super) severity: Option<Severity>,
    pub(super) message: Option<String>,
    pub(super) stats: Option<Stats>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum EventKind {
    Init,
    Message,
    ToolUse,
    ToolResult,
    Error,
    Result,
    #[serde(other)]
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Role {
    User,
    Assistant,
    #[serde(other)]
    Unknown,
}

/// How a tool call or the whole run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Status {
    Success,
    Error,
    #[serde(other)]
    Unknown,
}

/// The severity of an error. A warning can still be the reason for the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Severity {
    Warning,
    Error,
    #[serde(other)]
    Unknown,
}

/// Why the run, or a tool call, failed.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Failure {
    #[serde(default, rename = "type")]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) message: String,
}

/// The run's usage. `input_tokens` includes the cached ones, `output_tokens` excludes the reasoning: only the total
/// has it.
#[serde_with::apply(Option => #[serde(default, deserialize_with = "lax")])]
#[derive(Debug, Deserialize)]
pub(super) struct Stats {
    pub(super) total_tokens: Option<u64>,
    pub(super) input_tokens: Option<u64>,
    pub(super) output_tokens: Option<u64>,
    pub(super) cached: Option<u64>,
    #[serde(default)]
    pub(super) models: BTreeMap<String, IgnoredAny>,
}
