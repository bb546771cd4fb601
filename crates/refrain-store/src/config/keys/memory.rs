//! What is kept of loops that are over: `[memory]` and `[evolution]`.

use refrain_core::agent::Usd;
use refrain_core::memory;
use refrain_core::values::Limit;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::config::value_text::{self, ValueText};

/// `[memory]`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub struct Memory {
    /// Whether loops are told what is remembered of earlier ones, and are remembered themselves (`--memory`): "on" or "off";
    /// without it on for known agents, and off for commands.
    pub recall: Option<Switch>,
    /// How many tokens of memories a prompt has at most.
    #[schemars(range(min = 200, max = 50_000), extend("default" = memory::BUDGET))]
    pub budget: Option<u32>,
    /// What makes vectors of memories, so that those are found that say the same in other words. Only in the user's own file.
    pub embeddings: Option<Embeddings>,
    /// Which agent is asked, once a loop has ended, what there is to learn from it: an adapter, a named agent or a
    /// command; without it no agent is asked. It costs what it costs beside the loop. Only in the user's own file.
    pub judge: Option<String>,
}

/// On or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Switch {
    /// It is done.
    On,
    /// It is not.
    Off,
}

/// `[memory] embeddings`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub struct Embeddings {
    /// Where texts are posted to: a URL that ends in `/embeddings` (OpenAI's kind) or `/api/embed` (Ollama's). The key, where
    /// one is needed, stands elsewhere.
    pub url: String,
    /// Which model makes the vectors.
    pub model: String,
}

/// `[evolution]`, which only the user's own file may have: it spends their money.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub struct Evolution {
    /// Which agent: an adapter, a named agent or a command; without it no agent is asked.
    pub agent: Option<String>,
    /// Which model it uses.
    pub model: Option<String>,
    /// How much money it may spend on one loop, where it can be held to that.
    #[serde(deserialize_with = "value_text::cost_limit")]
    #[schemars(with = "Option<ValueText>", extend("default" = "none"))]
    pub max_cost: Option<Limit<Usd>>,
}
