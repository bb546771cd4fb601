//! Changes of a text that leave every other byte as it was, and its lines with their places.

use std::ops::Range;

/// Parts of a text that are to be replaced, made in one pass.
#[derive(Debug, Default)]
pub(super) struct Edits(Vec<(Range<usize>, String)>);

impl Edits {
    pub(super) fn replace(&mut self, range: Range<usize>, text: impl Into<String>) {
        self.0.push((range, text.into()));
    }

    /// Inserts `text`. Of several at one place the first comes first.
    pub(super) fn insert(&mut self, at: usize, text: impl Into<String>) {
        self.replace(at..at, text);
    }

    /// The text with all of it done. Ranges do not overlap.
    pub(super) fn apply(mut self, text: &str) -> String {
        // Stable: insertions at one place keep their order.
        self.0.sort_by_key(|(range, _)| range.start);
        let added: usize = self.0.iter().map(|(_, with)| with.len()).sum();
        let mut out = String::with_capacity(text.len() + added);
        let mut from = 0;
        for (range, with) in self.0 {
            out.push_str(&text[from..range.start]);
            out.push_str(&with);
            from = range.end;
        }
        out.push_str(&text[from..]);
        out
    }
}

/// Lines without what ends them.
pub(super) fn lines(text: &str, part: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    text[part.clone()].split_inclusive('\n').scan(part.start, |at, line| {
        let begin = *at;
        *at += line.len();
        Some(begin..begin + line.trim_end_matches(['\n', '\r']).len())
    })
}
