//! The JSON of Claude Code's output: every kind of event with a catch-all, every field may be missing or malformed.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::wire::lax;

/// A line. With `--output-format json --verbose` all events are in one list.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Event {
    System(System),
    Assistant(Assistant),
    User(User),
    #[serde(rename = "stream_event")]
    Stream(StreamEvent),
    #[serde(rename = "rate_limit_event")]
    RateLimit {
        rate_limit_info: RateLimit,
    },
    Result(Box<Outcome>),
    /// The answer to a request on its standard input.
    ControlResponse,
    #[serde(other)]
    Unknown,
}

#[serde_with::apply(Option => #[serde(default, deserialize_with = "lax")])]
#[derive(Debug, Deserialize)]
#[serde(tag = "subtype", rename_all = "snake_case")]
pub(super) enum System {
    Init {
        session_id: Option<String>,
        model: Option<String>,
        claude_code_version: Option<String>,
        plugin_errors: Option<Vec<Value>>,
    },
    ApiRetry {
        retry_delay_ms: Option<u64>,
        error_status: Option<u16>,
        error: Option<String>,
    },
    ModelFallback {
        fallback_model: Option<String>,
        content: Option<String>,
    },
    PermissionDenied {
        message: Option<String>,
    },
    Informational {
        content: Option<String>,
    },
    Notification {
        text: Option<String>,
    },
    CompactBoundary,
    Status,
    ThinkingTokens,
    HookStarted,
    HookResponse,
    TaskStarted,
    TaskUpdated,
    TaskNotification,
    BackgroundTasksChanged,
    #[serde(other)]
    Unknown,
}

/// A message of the model, one event per block of it, grouped by id. Or a synthetic one: an error of the API.
#[serde_with::apply(Option => #[serde(default, deserialize_with = "lax")])]
#[derive(Debug, Deserialize)]
pub(super) struct Assistant {
    pub(super) message: Message,
    pub(super) parent_tool_use_id: Option<String>,
    pub(super) is_api_error_message: Option<bool>,
    #[serde(flatten)]
    pub(super) error: ApiError,
}

#[serde_with::apply(Option => #[serde(default, deserialize_with = "lax")])]
#[derive(Debug, Deserialize)]
pub(super) struct Message {
    pub(super) id: Option<String>,
    #[serde(default)]
    pub(super) content: Value,
    pub(super) usage: Option<Usage>,
}

/// The codes of an error, on a synthetic message and on a result.
#[serde_with::apply(Option => #[serde(default, deserialize_with = "lax")])]
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct ApiError {
    pub(super) error: Option<String>,
    pub(super) api_error: Option<String>,
    pub(super) api_error_status: Option<u16>,
    pub(super) api_error_params: Option<ErrorParams>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct ErrorParams {
    #[serde(default, deserialize_with = "lax")]
    pub(super) rate_limit_info: Option<RateLimit>,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Block {
    Text {
        text: String,
    },
    Thinking {
        thinking: String,
    },
    ToolUse {
        name: String,
        #[serde(default)]
        input: Value,
    },
    ToolResult {
        #[serde(default)]
        content: Value,
        #[serde(default, deserialize_with = "lax")]
        is_error: Option<bool>,
    },
    #[serde(other)]
    Other,
}

/// Input of the model: results of tools, and texts of the program itself.
#[derive(Debug, Deserialize)]
pub(super) struct User {
    pub(super) message: Message,
    #[serde(default, rename = "isSynthetic", deserialize_with = "lax")]
    pub(super) is_synthetic: Option<bool>,
}

/// A raw event of the API: used for its usage, which is final for one message only here.
#[derive(Debug, Deserialize)]
pub(super) struct StreamEvent {
    pub(super) event: Raw,
    #[serde(default, deserialize_with = "lax")]
    pub(super) api_message_id: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Raw {
    MessageStart {
        message: Message,
    },
    MessageDelta {
        #[serde(default, deserialize_with = "lax")]
        usage: Option<Usage>,
    },
    #[serde(other)]
    Other,
}

#[serde_with::apply(Option => #[serde(default, deserialize_with = "lax")])]
#[derive(Clone, Debug, Deserialize)]
pub(super) struct RateLimit {
    pub(super) status: Option<String>,
    #[serde(rename = "resetsAt")]
    pub(super) resets_at: Option<i64>,
    #[serde(rename = "rateLimitType")]
    pub(super) kind: Option<String>,
}

/// Tokens of one message, or of the turns of one result.
#[serde_with::apply(Option => #[serde(default, deserialize_with = "lax")])]
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(super) struct Usage {
    pub(super) input_tokens: Option<u64>,
    pub(super) cache_creation_input_tokens: Option<u64>,
    pub(super) cache_read_input_tokens: Option<u64>,
    pub(super) output_tokens: Option<u64>,
}

#[serde_with::apply(Option => #[serde(default, deserialize_with = "lax")])]
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ModelUsage {
    pub(super) input_tokens: Option<u64>,
    pub(super) cache_creation_input_tokens: Option<u64>,
    pub(super) cache_read_input_tokens: Option<u64>,
    pub(super) output_tokens: Option<u64>,
    #[serde(rename = "costUSD")]
    pub(super) cost_usd: Option<f64>,
}

/// The result of a run, or of a part of it. `success` with `is_error` is a failure of the API.
#[serde_with::apply(Option => #[serde(default, deserialize_with = "lax")])]
#[derive(Debug, Deserialize)]
pub(super) struct Outcome {
    pub(super) subtype: Option<String>,
    pub(super) is_error: Option<bool>,
    pub(super) result: Option<String>,
    pub(super) errors: Option<Vec<String>>,
    pub(super) session_id: Option<String>,
    pub(super) num_turns: Option<u64>,
    pub(super) terminal_reason: Option<String>,
    /// Of the whole session, sub-agents included.
    pub(super) total_cost_usd: Option<f64>,
    /// Of this result's turns, without sub-agents.
    pub(super) usage: Option<Usage>,
    /// All usage since the last result of this run, sub-agents included.
    pub(super) model_usage_since_last_result: Option<BTreeMap<String, ModelUsage>>,
    #[serde(flatten)]
    pub(super) error: ApiError,
}
