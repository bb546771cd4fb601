//! The JSON of Codex's output: every kind of event with a catch-all, every field may be missing or malformed.

use serde::Deserialize;
use serde_json::Value;

use crate::wire::lax;

#[derive(Debug, Deserialize)]
#[serde(tag = "type")]
pub(super) enum Event {
    #[serde(rename = "thread.started")]
    ThreadStarted {
        #[serde(default, deserialize_with = "lax")]
        thread_id: Option<String>,
    },
    #[serde(rename = "turn.started")]
    TurnStarted,
    #[serde(rename = "turn.completed")]
    TurnCompleted {
        #[serde(default, deserialize_with = "lax")]
        usage: Option<Usage>,
    },
    #[serde(rename = "turn.failed")]
    TurnFailed {
        #[serde(default, deserialize_with = "lax")]
        error: Option<Error>,
    },
    #[serde(rename = "item.started")]
    ItemStarted { item: Item },
    #[serde(rename = "item.updated")]
    ItemUpdated {
        #[serde(rename = "item")]
        _item: Value,
    },
    #[serde(rename = "item.completed")]
    ItemCompleted { item: Item },
    /// An error of the turn: it retries, or is about to fail.
    #[serde(rename = "error")]
    Error(Error),
    #[serde(other)]
    Unknown,
}

#[derive(Debug, Deserialize)]
pub(super) struct Error {
    #[serde(default, deserialize_with = "lax")]
    pub(super) message: Option<String>,
}

/// Tokens of the whole thread from its start: a resumed one continues to count.
#[derive(Debug, Deserialize)]
pub(super) struct Usage {
    /// Cached ones included.
    #[serde(default, deserialize_with = "lax")]
    pub(super) input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lax")]
    pub(super) cached_input_tokens: Option<u64>,
    /// Reasoning included.
    #[serde(default, deserialize_with = "lax")]
    pub(super) output_tokens: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Item {
    AgentMessage {
        text: String,
    },
    Reasoning {
        text: String,
    },
    CommandExecution {
        #[serde(default, deserialize_with = "lax")]
        command: Option<String>,
        #[serde(default, deserialize_with = "lax")]
        aggregated_output: Option<String>,
        #[serde(default, deserialize_with = "lax")]
        exit_code: Option<i64>,
    },
    FileChange {
        #[serde(default, deserialize_with = "lax")]
        changes: Option<Vec<Change>>,
        #[serde(default, deserialize_with = "lax")]
        status: Option<String>,
    },
    McpToolCall {
        #[serde(default, deserialize_with = "lax")]
        server: Option<String>,
        #[serde(default, deserialize_with = "lax")]
        tool: Option<String>,
        #[serde(default)]
        arguments: Value,
        #[serde(default)]
        result: Value,
        #[serde(default, deserialize_with = "lax")]
        error: Option<Error>,
        #[serde(default, deserialize_with = "lax")]
        status: Option<String>,
    },
    WebSearch {
        #[serde(default, deserialize_with = "lax")]
        query: Option<String>,
    },
    TodoList,
    Error(Error),
    #[serde(other)]
    Unknown,
}

#[derive(Debug, Deserialize)]
pub(super) struct Change {
    #[serde(default, deserialize_with = "lax")]
    pub(super) path: Option<String>,
    #[serde(default, deserialize_with = "lax")]
    pub(super) kind: Option<String>,
}
