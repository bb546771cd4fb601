//! The messages of an ACP agent, only the fields that are used. Nothing here is interpreted.
//!
//! The protocol crate's own types would refuse a whole message for one field of a later version, and omit fields that
//! are not in the protocol yet, like the usage of a prompt.

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// A field that is none if it has an unexpected form.
fn lenient<'de, D: Deserializer<'de>, T: serde::de::DeserializeOwned>(
    from: D,
) -> Result<Option<T>, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(from)?).ok())
}

/// The answer to `initialize`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct InitializeResult {
    pub(super) protocol_version: Value,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) agent_info: Option<AgentInfo>,
}

#[derive(Debug, Deserialize)]
pub(super) struct AgentInfo {
    pub(super) name: String,
    pub(super) version: Option<String>,
}

/// The answer to `session/new`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NewSession {
    pub(super) session_id: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) modes: Option<Modes>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) models: Option<Models>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) config_options: Option<Vec<ConfigOption>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Modes {
    pub(super) available_modes: Vec<Mode>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Mode {
    pub(super) id: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Models {
    pub(super) available_models: Vec<Model>,
    pub(super) current_model_id: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Model {
    pub(super) model_id: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ConfigOption {
    pub(super) id: String,
    pub(super) category: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) current_value: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) options: Option<Vec<ConfigValue>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ConfigValue {
    pub(super) value: String,
}

/// The parameters of `session/update`. An update is parsed according to its kind.
#[derive(Debug, Deserialize)]
pub(super) struct Notification {
    pub(super) update: Value,
}

/// An update other than a tool call; its kind determines its fields.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Update {
    #[serde(rename = "sessionUpdate")]
    pub(super) kind: UpdateKind,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) content: Option<Block>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) message_id: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) entries: Option<Vec<PlanEntry>>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) cost: Option<Cost>,
}

/// A block of content. Only text is read.
#[derive(Debug, Deserialize)]
pub(super) struct Block {
    pub(super) text: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum UpdateKind {
    UserMessageChunk,
    AgentMessageChunk,
    AgentThoughtChunk,
    ToolCall,
    ToolCallUpdate,
    Plan,
    UsageUpdate,
    AvailableCommandsUpdate,
    CurrentModeUpdate,
    ConfigOptionUpdate,
    SessionInfoUpdate,
    #[serde(other)]
    Unknown,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolCall {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) tool_call_id: Option<String>,
    /// In no version of the protocol, but codex-acp sends it.
    #[serde(default, deserialize_with = "lenient")]
    pub(super) name: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) title: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) kind: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) status: Option<ToolStatus>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) raw_input: Option<Map<String, Value>>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) content: Option<Vec<Value>>,
    #[serde(default)]
    pub(super) raw_output: Value,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) locations: Option<Vec<Location>>,
    #[serde(default, rename = "_meta")]
    pub(super) meta: Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ToolStatus {
    Pending,
    InProgress,
    Completed,
    Failed,
    #[serde(other)]
    Unknown,
}

#[derive(Debug, Deserialize)]
pub(super) struct Location {
    pub(super) path: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct PlanEntry {
    pub(super) content: String,
    pub(super) status: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Cost {
    pub(super) amount: f64,
    pub(super) currency: String,
}

/// The parameters of `session/request_permission`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Question {
    #[serde(default)]
    pub(super) tool_call: ToolCall,
    pub(super) options: Vec<Choice>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Choice {
    pub(super) option_id: String,
    pub(super) kind: ChoiceKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ChoiceKind {
    AllowOnce,
    AllowAlways,
    RejectOnce,
    RejectAlways,
    #[serde(other)]
    Unknown,
}

/// The answer to `session/prompt`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PromptResult {
    pub(super) stop_reason: StopReason,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) usage: Option<Usage>,
    #[serde(default, rename = "_meta")]
    pub(super) meta: Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum StopReason {
    EndTurn,
    MaxTokens,
    MaxTurnRequests,
    Refusal,
    Cancelled,
    #[serde(other)]
    Unknown,
}

/// The usage of a prompt. The total shows whether the input includes the cached tokens.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Usage {
    pub(super) input_tokens: Option<u64>,
    pub(super) output_tokens: Option<u64>,
    pub(super) cached_read_tokens: Option<u64>,
    pub(super) cached_write_tokens: Option<u64>,
    pub(super) thought_tokens: Option<u64>,
    pub(super) total_tokens: Option<u64>,
}
