//! What the author of a whole message says in it: its lines without code, quotations and comments.

use super::block::{Block, LineKind};
use super::line::visible;
use crate::text::printable;

/// The lines in plain text, in their order. `\u{fffc}` replaces inline code.
pub(crate) fn plain_lines(message: &str) -> Vec<String> {
    let (mut block, mut in_comment) = (Block::new(), false);
    let message = printable(message);
    let lines = message.trim_start_matches('\u{feff}').lines();
    let plain = |line: &str| match block.enter(line.as_bytes()) {
        LineKind::Text => Some(visible(line, &mut in_comment).text),
        LineKind::Blank | LineKind::Code | LineKind::Quote => None,
    };
    lines.filter_map(plain).collect()
}
