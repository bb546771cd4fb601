//! A turn of a live session, which our plugin passes on: OpenCode keeps its sessions in a database of its own.

use refrain_core::agent::Usd;
use serde::Deserialize;

use super::reader::add_usage;
use super::wire::Usage;
use crate::hook::Tail;
use crate::wire::lax;

#[serde_with::apply(Option => #[serde(default, deserialize_with = "lax")])]
#[derive(Debug, Deserialize)]
pub(crate) struct MessageUsage {
    tokens: Option<Usage>,
    cost: Option<f64>,
    model: Option<String>,
    #[serde(default)]
    worked: bool,
}

pub(crate) fn turn(answers: Vec<MessageUsage>) -> Tail {
    let mut tail = Tail::default();
    for answer in answers {
        tail.has_worked |= answer.worked;
        tail.model = answer.model.or(tail.model);
        if let Some(usage) = &answer.tokens {
            tail.tokens = Some(add_usage(tail.tokens.unwrap_or_default(), usage));
        }
        // A model without a price reports a cost of 0: unknown, not free.
        if let Some(more) = answer.cost.filter(|cost| *cost > 0.0) {
            tail.cost = Some(Usd(tail.cost.unwrap_or_default().0.saturating_add(Usd::from(more).0)));
        }
    }
    tail
}
