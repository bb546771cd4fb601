//! Converts this program's styled text into lines of a given width.

use std::borrow::Cow;

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use refrain_core::text::{printable, visible};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Untrusted text in one line.
pub(crate) fn flat(text: &str) -> String {
    visible(&printable(text)).replace(['\n', '\t'], " ")
}

/// The text, at most so many columns wide, with an ellipsis if it is cut.
pub(crate) fn cut(text: &str, columns: usize) -> Cow<'_, str> {
    if text.width() <= columns {
        return Cow::Borrowed(text);
    }
    let ends = text.char_indices().map(|(at, _)| at).rev();
    let begin = ends.map(|at| &text[..at]).find(|begin| begin.width() < columns);
    Cow::Owned(begin.map_or_else(String::new, |begin| format!("{begin}…")))
}

/// The text in exactly so many columns.
pub(crate) fn fill(text: &str, columns: usize) -> String {
    let text = cut(text, columns);
    let rest = columns.saturating_sub(text.width());
    format!("{text}{}", " ".repeat(rest))
}

/// Parses style sequences in a line. All other control characters are removed.
pub(crate) fn styled(line: &str) -> Line<'static> {
    let (mut spans, mut style, mut rest) = (Vec::new(), Style::new(), line);
    while let Some(at) = rest.find("\u{1b}[") {
        push(&mut spans, &rest[..at], style);
        let sequence = &rest[at + 2..];
        let length = sequence.find(|c: char| !c.is_ascii_digit() && c != ';').unwrap_or(sequence.len());
        let (codes, end) = sequence.split_at(length);
        rest = end;
        if let Some(end) = end.strip_prefix('m') {
            rest = end;
            style = codes.split(';').fold(style, |style, code| applied(style, code.parse().unwrap_or(0)));
        }
    }
    push(&mut spans, rest, style);
    Line::from(spans)
}

fn push(spans: &mut Vec<Span<'static>>, text: &str, style: Style) {
    let text = visible(&printable(text)).replace('\t', "    ");
    if !text.is_empty() {
        spans.push(Span::styled(text, style));
    }
}

/// The style after an SGR code; only colours that every terminal has.
fn applied(style: Style, code: u8) -> Style {
    const COLOURS: [Color; 8] = [
        Color::Black,
        Color::Red,
        Color::Green,
        Color::Yellow,
        Color::Blue,
        Color::Magenta,
        Color::Cyan,
        Color::Gray,
    ];
    match code {
        0 => Style::new(),
        1 => style.add_modifier(Modifier::BOLD),
        2 => style.add_modifier(Modifier::DIM),
        22 => style.remove_modifier(Modifier::BOLD | Modifier::DIM),
        30..=37 => style.fg(COLOURS[usize::from(code - 30)]),
        39 => Style { fg: None, ..style },
        _ => style,
    }
}

/// The line wrapped to so many columns, between words if possible.
pub(crate) fn wrapped(line: &Line<'static>, columns: usize) -> Vec<Line<'static>> {
    if line.width() <= columns || columns == 0 {
        return vec![line.clone()];
    }
    let cells: Vec<(char, Style)> = line
        .spans
        .iter()
        .flat_map(|span| span.content.chars().map(|c| (c, span.style)).collect::<Vec<_>>())
        .collect();
    let (mut lines, mut from) = (Vec::new(), 0);
    while from < cells.len() {
        let (mut to, mut width) = (from, 0);
        while to < cells.len() {
            let wide = cells[to].0.width().unwrap_or(0);
            if width + wide > columns && to > from {
                break;
            }
            width += wide;
            to += 1;
        }
        let space = cells[from..to].iter().rposition(|(c, _)| *c == ' ').filter(|at| *at > 0);
        let is_whole = cells.get(to).is_none_or(|(c, _)| *c == ' ');
        let end = if is_whole { to } else { space.map_or(to, |at| from + at) };
        lines.push(joined(&cells[from..end]));
        // The space at which it was broken is seen as the break.
        from = if end < cells.len() && cells[end].0 == ' ' { end + 1 } else { end };
    }
    lines
}

fn joined(cells: &[(char, Style)]) -> Line<'static> {
    let same = cells.chunk_by(|(_, a), (_, b)| a == b);
    let spans = same.map(|part| {
        let text: String = part.iter().map(|(c, _)| c).collect();
        Span::styled(text, part.first().map_or_else(Style::new, |(_, style)| *style))
    });
    Line::from(spans.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn shown(lines: &[Line<'_>]) -> Vec<String> {
        lines.iter().map(ToString::to_string).collect()
    }

    #[rstest]
    #[case("one two three", 7, &["one two", "three"])]
    #[case("one two three", 6, &["one", "two", "three"])]
    #[case("aaaaaaaa b", 3, &["aaa", "aaa", "aa", "b"])]
    #[case("日本語です", 4, &["日本", "語で", "す"])]
    #[case("日", 1, &["日"])]
    #[case("", 5, &[""])]
    fn lines_are_broken_between_words_where_that_is_possible(
        #[case] text: &str,
        #[case] columns: usize,
        #[case] expected: &[&str],
    ) {
        assert_eq!(shown(&wrapped(&Line::from(text.to_owned()), columns)), expected);
    }

    #[test]
    fn styles_are_read_and_everything_else_is_gone() {
        let line =
            styled("\u{1b}[1m\u{1b}[31mred\u{1b}[39m bold\u{1b}[0m \u{1b}[2;Jand\u{7}\u{1b}]0;title\u{7} on");
        assert_eq!(line.to_string(), "red bold Jand on");
        assert_eq!(line.spans[0].style, Style::new().fg(Color::Red).add_modifier(Modifier::BOLD));
        assert_eq!(line.spans[1].style, Style::new().add_modifier(Modifier::BOLD));
        assert_eq!(line.spans[2].style, Style::new());
    }

    #[test]
    fn a_cut_text_ends_with_an_ellipsis() {
        assert_eq!((cut("a sentence", 6), cut("日本語", 4)), ("a sen…".into(), "日…".into()));
        assert_eq!((fill("ab", 4), cut("ab", 0)), ("ab  ".to_owned(), "".into()));
    }
}
