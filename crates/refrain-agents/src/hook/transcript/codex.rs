//! Codex's transcript, its "rollout": one record per line, with the totals of the thread after each model call
//! (0.169.0, seen).

use refrain_core::agent::Tokens;
use serde::Deserialize;
use serde_json::Value;

use super::{Tail, blocks};
use crate::wire::lax;

#[derive(Deserialize)]
struct Line {
    #[serde(rename = "type")]
    kind: String,
    payload: Payload,
}

#[serde_with::apply(Option => #[serde(default, deserialize_with = "lax")])]
#[derive(Deserialize)]
struct Payload {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    role: String,
    #[serde(default)]
    content: Value,
    model: Option<String>,
    info: Option<Info>,
}

#[derive(Deserialize)]
struct Info {
    total_token_usage: Total,
}

/// The tokens of the whole thread so far. Input includes the cached ones, output the reasoning.
#[derive(Clone, Copy, Default, Deserialize)]
struct Total {
    #[serde(default)]
    input_tokens: u64,
    #[serde(default)]
    cached_input_tokens: u64,
    #[serde(default)]
    output_tokens: u64,
}

/// The end of a transcript, from the bytes of its end; `is_cut` if more precedes them.
pub(in crate::hook) fn tail(bytes: &[u8], is_cut: bool) -> Option<Tail> {
    let (mut tail, mut seen, mut is_before) = (Tail::default(), false, false);
    let (mut after, mut before) = (None, None);
    for line in bytes.rsplit(|byte| *byte == b'\n') {
        let Ok(Line { kind, payload }) = serde_json::from_slice::<Line>(line) else { continue };
        match (kind.as_str(), payload.kind.as_str()) {
            ("event_msg", "token_count") => {
                let total = payload.info.map(|info| info.total_token_usage);
                if is_before {
                    before = before.or(total);
                } else {
                    after = after.or(total);
                }
            }
            ("turn_context", _) => tail.model = tail.model.or(payload.model),
            // What follows happened before the turn: only the totals and the model count.
            ("response_item", _) if is_before => {}
            ("response_item", "message") if payload.role == "user" => is_before = true,
            ("response_item", "message") if payload.role == "assistant" => {
                seen = true;
                let mut texts = blocks(&payload.content).filter_map(|block| block.get("text")?.as_str());
                tail.message = tail.message.or_else(|| texts.next_back().map(str::to_owned));
            }
            ("response_item", called) if called.ends_with("_call") => (seen, tail.has_worked) = (true, true),
            _ => {}
        }
        if is_before && before.is_some() && tail.model.is_some() {
            break;
        }
    }
    tail.has_worked |= is_cut && !is_before;
    // The totals before the turn may lie before what was read.
    let before = before.or_else(|| (is_before && !is_cut).then(Total::default));
    tail.tokens = after.zip(before).map(|(after, before)| after.less(before));
    (seen || is_before).then_some(tail)
}

impl Total {
    fn less(self, before: Self) -> Tokens {
        Tokens {
            input: Some(self.input_tokens.saturating_sub(before.input_tokens)),
            cached_input: Some(self.cached_input_tokens.saturating_sub(before.cached_input_tokens)),
            output: Some(self.output_tokens.saturating_sub(before.output_tokens)),
        }
    }
}
