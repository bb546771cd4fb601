//! Gemini's transcript: one message per line, repeated as it grows, between lines that set other things (0.61.0,
//! seen).

use std::collections::BTreeSet;

use refrain_core::agent::Tokens;
use serde::Deserialize;
use serde_json::Value;

use super::{Tail, add, blocks};
use crate::wire::lax;

#[serde_with::apply(Option => #[serde(default, deserialize_with = "lax")])]
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    #[serde(rename = "type")]
    kind: String,
    content: Value,
    #[serde(default)]
    tool_calls: Vec<Value>,
    id: Option<String>,
    model: Option<String>,
    tokens: Option<Usage>,
}

/// The tokens of one message. `input` includes the cached ones, `output` excludes the reasoning, which is in the total.
#[derive(Deserialize)]
struct Usage {
    input: u64,
    output: u64,
    #[serde(default)]
    cached: u64,
    #[serde(default)]
    total: u64,
}

impl Usage {
    fn tokens(&self) -> Tokens {
        let output = self.output.max(self.total.saturating_sub(self.input));
        Tokens { input: Some(self.input), cached_input: Some(self.cached), output: Some(output) }
    }
}

/// The end of a transcript, from the bytes of its end; `is_cut` if more precedes them.
pub(in crate::hook) fn tail(bytes: &[u8], is_cut: bool) -> Option<Tail> {
    let (mut tail, mut seen, mut counted) = (Tail::default(), false, BTreeSet::new());
    for line in bytes.rsplit(|byte| *byte == b'\n') {
        let Ok(line) = serde_json::from_slice::<Line>(line) else { continue };
        match line.kind.as_str() {
            "gemini" => {
                seen = true;
                tail.has_worked |= !line.tool_calls.is_empty();
                let text = line.content.as_str().filter(|text| !text.is_empty());
                tail.message = tail.message.or_else(|| text.map(str::to_owned));
                tail.model = tail.model.or(line.model);
                // The last line of a message has the whole of its tokens.
                if let (Some(usage), Some(id)) = (&line.tokens, line.id)
                    && counted.insert(id)
                {
                    tail.tokens = Some(add(tail.tokens.unwrap_or_default(), usage.tokens()));
                }
            }
            // Results of its tools have the same role as prompts.
            "user" if blocks(&line.content).any(|block| block.get("functionResponse").is_some()) => {
                tail.has_worked = true;
            }
            "user" => return Some(tail),
            _ => {}
        }
    }
    tail.has_worked |= is_cut;
    // What lies before is not counted.
    tail.tokens = tail.tokens.filter(|_| !is_cut);
    seen.then_some(tail)
}
