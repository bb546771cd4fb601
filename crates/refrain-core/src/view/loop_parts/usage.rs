//! What was used, as JSON and people read it.

use schemars::JsonSchema;
use serde::Serialize;

use crate::agent;

/// What was used. Unknown is null, never 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Usage {
    /// Tokens in, cached ones included.
    pub input_tokens: Option<u64>,
    /// Of those, the cached ones.
    pub cached_input_tokens: Option<u64>,
    /// Tokens out.
    pub output_tokens: Option<u64>,
    /// Money, in US dollars.
    pub cost_usd: Option<f64>,
    /// A number here is less than what was used: an agent was cut off before it said how much, or never said.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_least: bool,
    /// More tokens were used than these.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tokens_at_least: bool,
    /// More money was spent than this.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cost_at_least: bool,
    /// An agent ran that did not report all that it used: also if nothing is known.
    #[serde(skip)]
    pub is_incomplete: bool,
}

impl From<agent::Usage> for Usage {
    /// An unknown value is never marked.
    fn from(usage: agent::Usage) -> Self {
        let agent::Usage { tokens, cost, at_least, cost_at_least } = usage;
        let is_incomplete = at_least || cost_at_least;
        let tokens_at_least = at_least && (tokens.input.is_some() || tokens.output.is_some());
        let cost_at_least = cost_at_least && cost.is_some();
        Self {
            input_tokens: tokens.input,
            cached_input_tokens: tokens.cached_input,
            output_tokens: tokens.output,
            cost_usd: cost.map(f64::from),
            at_least: tokens_at_least || cost_at_least,
            tokens_at_least,
            cost_at_least,
            is_incomplete,
        }
    }
}

impl Usage {
    /// What it cost, in words; none if unknown.
    pub fn cost(&self) -> Option<String> {
        money(self.cost_usd, self.cost_at_least)
    }
}

/// A sum in words: `at least 12k` if it is incomplete.
pub fn sum(words: &str, at_least: bool) -> String {
    format!("{}{words}", if at_least { "at least " } else { "" })
}

/// An amount of money in words; none if it is unknown.
pub fn money(usd: Option<f64>, at_least: bool) -> Option<String> {
    usd.map(|usd| sum(&agent::Usd::from(usd).to_string(), at_least))
}
