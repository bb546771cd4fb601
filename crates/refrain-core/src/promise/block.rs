//! The block that a line is in: plain text, or code or a quotation, where nothing counts. CommonMark's block rules as
//! far as they matter here, one line at a time, on bytes, because every line of a long message passes through.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineKind {
    Blank,
    Text,
    /// A fence, a line between fences, or indented code.
    Code,
    /// A quotation. A line without `>` right below one is taken as the agent's own again: CommonMark would let it
    /// belong to the quotation, but a missed claim costs a whole iteration.
    Quote,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block {
    /// The open fence: its character and its length.
    fence: Option<(u8, usize)>,
    /// The indent of the current list item's text.
    item: usize,
    /// A paragraph continues: an indented line is part of it, not code.
    in_paragraph: bool,
}

impl Block {
    pub(super) fn new() -> Self {
        Self { fence: None, item: 0, in_paragraph: false }
    }

    /// The place of the next line.
    pub(super) fn enter(&mut self, line: &[u8]) -> LineKind {
        let (indent, text) = indentation(line);
        if let Some((mark, length)) = self.fence {
            let run = text.iter().take_while(|byte| **byte == mark).count();
            if run >= length && text[run..].trim_ascii().is_empty() {
                self.fence = None;
            }
            return LineKind::Code;
        }
        let Some(&first) = text.first() else {
            self.in_paragraph = false;
            return LineKind::Blank;
        };
        if indent >= self.item + 4 && !self.in_paragraph {
            return LineKind::Code;
        }
        if indent < self.item && !self.in_paragraph {
            self.item = 0;
        }
        let (offset, text) = self.list_item(indent, text);
        match text.first().copied().unwrap_or(first) {
            mark @ (b'`' | b'~') => {
                let run = text.iter().take_while(|byte| **byte == mark).count();
                // A fence of backticks has none in its info string, else it is inline code.
                if run >= 3 && (mark == b'~' || !text[run..].contains(&b'`')) {
                    self.fence = Some((mark, run));
                    self.in_paragraph = false;
                    return LineKind::Code;
                }
            }
            b'>' => {
                self.in_paragraph = false;
                return LineKind::Quote;
            }
            // Text that follows a list mark so far right is code in the item.
            _ if offset >= 5 => return LineKind::Code,
            _ => {}
        }
        self.in_paragraph = true;
        LineKind::Text
    }

    /// Steps over the marks of list items; returns how far the text after the last one stands from it.
    fn list_item<'a>(&mut self, indent: usize, mut text: &'a [u8]) -> (usize, &'a [u8]) {
        let (mut column, mut offset) = (indent, 0);
        while let Some(mark) = list_mark(text) {
            let (space, rest) = indentation(&text[mark..]);
            if space == 0 && !rest.is_empty() {
                break;
            }
            offset = space;
            column += mark + space.clamp(1, 4);
            self.item = column;
            self.in_paragraph = false;
            text = rest;
        }
        (offset, text)
    }
}

/// The width of the white space at the beginning, tabs counting to the next multiple of four, and what follows.
fn indentation(line: &[u8]) -> (usize, &[u8]) {
    let mut width = 0;
    for (at, byte) in line.iter().enumerate() {
        match byte {
            b' ' => width += 1,
            b'\t' => width += 4 - width % 4,
            b'\r' if at + 1 == line.len() => {}
            _ => return (width, &line[at..]),
        }
    }
    (width, &[])
}

/// The length of a list mark: a bullet, or a number with a point or a parenthesis. A line of bullets alone is none.
pub(super) fn list_mark(text: &[u8]) -> Option<usize> {
    let digits = text.iter().take(9).take_while(|byte| byte.is_ascii_digit()).count();
    let length = match (digits, text.get(digits)?) {
        (0, b'-' | b'*' | b'+') => 1,
        (1.., b'.' | b')') => digits + 1,
        _ => return None,
    };
    matches!(text.get(length), None | Some(b' ' | b'\t')).then_some(length)
}
