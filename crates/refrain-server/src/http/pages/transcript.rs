//! What an agent did, in order, with each tool's result folded below its call.

use crate::desk::Line;

/// A line of a transcript.
pub(super) struct Item {
    pub(super) kind: &'static str,
    pub(super) text: String,
    /// Of a call of a tool.
    pub(super) results: Vec<Line>,
}

impl Item {
    pub(super) fn is_tool(&self) -> bool {
        self.kind == "tool"
    }
}

/// Puts results below the call before them.
pub(super) fn transcript(lines: Vec<Line>) -> Vec<Item> {
    let mut items: Vec<Item> = Vec::new();
    for line in lines {
        match items.last_mut() {
            Some(last) if last.is_tool() && matches!(line.kind, "result" | "failed") => {
                last.results.push(line);
            }
            _ => items.push(Item { kind: line.kind, text: line.text, results: Vec::new() }),
        }
    }
    items
}
