//! Gemini's transcript: one message per line, repeated as it grows, between lines that set other things (0.61.0,
//! seen).

use serde::Deserialize;
use serde_json::Value;

use super::{Tail, blocks};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    #[serde(rename = "type")]
    kind: String,
    content: Value,
    #[serde(default)]
    tool_calls: Vec<Value>,
}

/// The end of a transcript, from the bytes of its end; `is_cut` if more precedes them.
pub(in crate::hook) fn tail(bytes: &[u8], is_cut: bool) -> Option<Tail> {
    let (mut tail, mut seen) = (Tail::default(), false);
    for line in bytes.rsplit(|byte| *byte == b'\n') {
        let Ok(line) = serde_json::from_slice::<Line>(line) else { continue };
        match line.kind.as_str() {
            "gemini" => {
                seen = true;
                tail.has_worked |= !line.tool_calls.is_empty();
                let text = line.content.as_str().filter(|text| !text.is_empty());
                tail.message = tail.message.or_else(|| text.map(str::to_owned));
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
    seen.then_some(tail)
}
