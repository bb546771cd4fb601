//! Prepares an agent's output for display: joins chunks that are cut anywhere into whole lines, so that no character
//! and no escape sequence is judged by a part of it.

use refrain_core::text::printable;

/// The longest piece of a line that is held back, in bytes.
const LONGEST_PIECE: usize = 64 << 10;
/// How far before its end a piece may be cut, so that a sequence that begins there stays whole.
const LONGEST_ESCAPE: usize = 4 << 10;

/// One stream of an agent, with the begun line that has not come to its end.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    begun: Vec<u8>,
}

impl Lines {
    /// Adds bytes; returns the text that can be shown now, which may be empty.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> String {
        self.begun.extend_from_slice(bytes);
        let end = match self.begun.iter().rposition(|byte| *byte == b'\n') {
            Some(end) => end + 1,
            None if self.begun.len() > LONGEST_PIECE => seam(&self.begun),
            None => return String::new(),
        };
        let shown = printable(&String::from_utf8_lossy(&self.begun[..end])).into_owned();
        self.begun.drain(..end);
        shown
    }

    pub(crate) fn end(&mut self) -> String {
        if self.begun.is_empty() {
            return String::new();
        }
        let begun = std::mem::take(&mut self.begun);
        format!("{}\n", printable(&String::from_utf8_lossy(&begun)))
    }
}

/// Where an overlong piece can be cut: before a possible escape sequence, a line break, or an incomplete character.
fn seam(piece: &[u8]) -> usize {
    let far = piece.len() - LONGEST_ESCAPE;
    // ESC, the first byte of the control characters beyond ASCII, a carriage return that a line feed may follow.
    let begins = |byte: &u8| matches!(byte, 0x1b | 0xc2 | b'\r');
    if let Some(at) = piece[far..].iter().rposition(begins) {
        return far + at;
    }
    // A character is at most four bytes long.
    let last = piece.len() - 4;
    match piece[last..].iter().rposition(|byte| *byte >= 0xc0) {
        Some(at) => last + at,
        None => piece.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All text shown for `text` in chunks of `size` bytes.
    fn shown(text: &[u8], size: usize) -> String {
        let mut lines = Lines::default();
        let mut shown: String = text.chunks(size).map(|chunk| lines.push(chunk)).collect();
        shown.push_str(&lines.end());
        shown
    }

    #[test]
    fn output_does_not_depend_on_where_its_chunks_are_cut() {
        let text = "schöne \u{1b}[1;31mGrüße\u{1b}[0m \u{1b}]0;title\u{7}🎉\r\nand \u{9b}2Jon".as_bytes();
        for size in 1..=text.len() {
            assert_eq!(shown(text, size), "schöne Grüße 🎉\nand on\n", "{size}");
        }
    }

    #[test]
    fn an_overlong_line_comes_in_pieces_that_tear_nothing() {
        for unit in ["ü", "🎉", "x\u{1b}[31m", "a\r\n"] {
            let text = unit.repeat(200_000);
            let whole = printable(&text).into_owned();
            for size in [1000, 4093, 65_536, 65_537] {
                assert_eq!(shown(text.as_bytes(), size).trim_end(), whole.trim_end(), "{unit:?} {size}");
            }
        }
    }
}
