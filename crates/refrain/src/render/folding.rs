//! Folds a long output on a terminal: its first and its last lines are shown, and how many more there are.

use std::collections::VecDeque;

use owo_colors::OwoColorize;

use crate::render::phrase;

/// How many lines are shown before, and after, those that are left out.
const FIRST: usize = 10;
const LAST: usize = 15;
/// How much of a line that is held back is kept, in bytes.
const LONGEST: usize = 16 << 10;

/// One output, with its last lines if it is too long to be shown whole.
#[derive(Debug, Default)]
pub(crate) struct FoldedOutput {
    shown: usize,
    held: VecDeque<String>,
    left_out: usize,
}

impl FoldedOutput {
    /// Adds a part of the output; returns the text that is shown now.
    pub(crate) fn push(&mut self, text: &str) -> String {
        let mut now = String::new();
        for piece in text.split_inclusive('\n') {
            if self.shown < FIRST {
                now.push_str(piece);
                self.shown += usize::from(piece.ends_with('\n'));
            } else {
                self.hold(piece);
            }
        }
        now
    }

    fn hold(&mut self, piece: &str) {
        match self.held.back_mut().filter(|line| !line.ends_with('\n')) {
            Some(line) if line.len() < LONGEST => line.push_str(piece),
            Some(line) if piece.ends_with('\n') => line.push('\n'),
            Some(_) => {}
            None => self.held.push_back(piece.to_owned()),
        }
        if self.held.len() > LAST {
            self.held.pop_front();
            self.left_out += 1;
        }
    }

    pub(crate) fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }

    /// Ends the output: the text that was held back. `command` prints what is omitted.
    pub(crate) fn end(&mut self, command: &str) -> String {
        let Self { held, left_out, .. } = std::mem::take(self);
        let last: String = held.into_iter().collect();
        match u32::try_from(left_out).unwrap_or(u32::MAX) {
            0 => last,
            count => {
                let more = phrase::counted(count, "more line", "more lines");
                format!("{}\n{last}", format!("{} {more}: {command}", phrase::in_charset("…")).dimmed())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is shown of so many lines that come in chunks of `size` bytes.
    fn shown(count: usize, size: usize) -> String {
        let text: String = (1..=count).map(|n| format!("line {n}\n")).collect();
        let mut folding = FoldedOutput::default();
        let mut shown = String::new();
        for chunk in text.as_bytes().chunks(size) {
            shown.push_str(&folding.push(std::str::from_utf8(chunk).unwrap()));
        }
        shown.push_str(&folding.end("refrain logs job"));
        anstream::adapter::strip_str(&shown).to_string()
    }

    #[test]
    fn a_long_output_is_folded_and_a_short_one_is_whole() {
        for size in [1, 3, 64, 10_000] {
            for count in [0, 1, FIRST, FIRST + LAST] {
                assert_eq!(shown(count, size).lines().count(), count, "{size}");
            }
            let folded = shown(237, size);
            let lines: Vec<_> = folded.lines().collect();
            assert_eq!(lines.len(), FIRST + 1 + LAST, "{folded}");
            assert_eq!(lines[FIRST], "… 212 more lines: refrain logs job", "{folded}");
            assert_eq!((lines[FIRST - 1], lines[FIRST + 1]), ("line 10", "line 223"), "{folded}");
            assert_eq!(lines.last(), Some(&"line 237"));
        }
    }

    #[test]
    fn a_line_without_an_end_needs_no_more_than_so_much() {
        let mut folding = FoldedOutput::default();
        let _ = folding.push(&"x\n".repeat(FIRST));
        assert_eq!((0..10_000).map(|_| folding.push("0123456789").len()).sum::<usize>(), 0);
        assert!(folding.is_holding());
        assert!(folding.end("").len() < LONGEST + 11);
    }
}
