//! What work may cost, and what models do: `[budget]` and `[prices]`.

use refrain_core::agent::Usd;
use refrain_core::budget::Caps;
use refrain_core::price::Price;
use refrain_core::values::Limit;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::config::value_text::{self, ValueText};

/// `[budget]`: caps that loops share. Of the user's file and a project's the lower value holds.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub struct Budget {
    /// How much money all loops of the user may cost in one day, in US dollars; or "none". Days are those of the machine's
    /// time zone.
    #[serde(deserialize_with = "value_text::cost_limit")]
    #[schemars(with = "Option<ValueText>", extend("default" = "none"))]
    pub max_cost_per_day: Option<Limit<Usd>>,
    /// How much all loops of one project may cost in one day; or "none".
    #[serde(deserialize_with = "value_text::cost_limit")]
    #[schemars(with = "Option<ValueText>", extend("default" = "none"))]
    pub project_max_cost_per_day: Option<Limit<Usd>>,
    /// How much all loops of one project may cost in all; or "none".
    #[serde(deserialize_with = "value_text::cost_limit")]
    #[schemars(with = "Option<ValueText>", extend("default" = "none"))]
    pub project_max_cost: Option<Limit<Usd>>,
}

/// `[prices."MODEL"]`: US dollars for a million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub struct ModelPrice {
    /// In.
    #[serde(deserialize_with = "value_text::price")]
    #[schemars(with = "ValueText")]
    pub input: Usd,
    /// In, read from a cache; without it as dear as any.
    #[serde(default, deserialize_with = "value_text::some_price")]
    #[schemars(with = "Option<ValueText>")]
    pub cached_input: Option<Usd>,
    /// Out.
    #[serde(deserialize_with = "value_text::price")]
    #[schemars(with = "ValueText")]
    pub output: Usd,
}

impl From<&Budget> for Caps {
    fn from(budget: &Budget) -> Self {
        let cap = |limit: Option<Limit<Usd>>| limit.and_then(Option::from);
        Self {
            day: cap(budget.max_cost_per_day),
            project_day: cap(budget.project_max_cost_per_day),
            project: cap(budget.project_max_cost),
        }
    }
}

impl From<ModelPrice> for Price {
    fn from(price: ModelPrice) -> Self {
        let ModelPrice { input, cached_input, output } = price;
        Self { input, cached_input: cached_input.unwrap_or(input), output }
    }
}
