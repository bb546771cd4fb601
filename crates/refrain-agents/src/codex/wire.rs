//! The JSON of Codex's output: every kind of event with a catch-all, every field may be missing or malformed.

use serde::Deserialize;
use serde_json::Value;

use crate::wire::lax;

#[serde_with::apply(Option => #[serde(default, deserialize_with = "lax")])]
#[derive(Debug, Deserialize)]
#[serde(tag = "type")]
pub(super) enum Event {
    #[serde(rename = "thread.started")]
    ThreadStarted { thread_id: Option<String> },
    #[serde(rename = "turn.started")]
    TurnStarted,
    #[serde(rename = "turn.completed")]
    TurnCompleted { usage: Option<Usage> },
    #[serde(rename = "turn.failed")]
    TurnFailed { error: Option<Error> },
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
#[serde_with::apply(Option => #[serde(default, deserialize_with = "lax")])]
#[derive(Debug, Deserialize)]
pub(super) struct Usage {
    /// Cached ones included.
    pub(super) input_tokens: Option<u64>,
    pub(super) cached_input_tokens: Option<u64>,
    /// Reasoning included.
    pub(super) output_tokens: Option<u64>,
}

#[serde_with::apply(Option => #[serde(default, deserialize_with = "lax")])]
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
        command: Option<String>,
        aggregated_output: Option<String>,
        exit_code: Option<i64>,
    },
    FileChange {
        changes: Option<Vec<Change>>,
        status: Option<String>,
    },
    McpToolCall {
        server: Option<String>,
        tool: Option<String>,
        #[serde(default)]
        arguments: Value,
        #[serde(default)]
        result: Value,
        error: Option<Error>,
        status: Option<String>,
    },
    WebSearch {
        query: Option<String>,
    },
    TodoList,
    Error(Error),
    #[serde(other)]
    Unknown,
}

#[serde_with::apply(Option => #[serde(default, deserialize_with = "lax")])]
#[derive(Debug, Deserialize)]
pub(super) struct Change {
    pub(super) path: Option<String>,
    pub(super) kind: Option<String>,
}
