//! Tables for terminals: as many columns as fit, from the left, without borders, so that a screen reader can read them.
//! Without a terminal nothing is cut.

use std::borrow::Cow;

use owo_colors::OwoColorize;
use unicode_width::UnicodeWidthStr;

use crate::render::phrase::in_charset;

/// A column: its title, and the text of each row.
pub(crate) struct Column<'a> {
    pub(crate) title: &'a str,
    pub(crate) cells: Vec<Cow<'a, str>>,
    pub(crate) cut: CutPosition,
    pub(crate) right: bool,
    /// The cell of a row as it is shown: coloured, or as it is.
    pub(crate) paint: &'a dyn Fn(usize, &str) -> String,
}

/// Where a text that is too long may be cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CutPosition {
    /// Nowhere: a part of it is useless.
    No,
    Begin,
    End,
}

pub(crate) fn plain(_: usize, cell: &str) -> String {
    cell.to_owned()
}

/// The narrowest that a column is cut to, in characters.
const NARROWEST: usize = 10;

/// The lines of a table, its header first. With `width`, they are at most so wide; the first column is always shown,
/// and cut if the terminal is narrower than it.
pub(crate) fn lines(columns: &[Column<'_>], width: Option<usize>) -> Vec<String> {
    let rows = columns.first().map_or(0, |column| column.cells.len());
    let mut lines = vec![String::new(); rows + 1];
    let mut left = width.unwrap_or(usize::MAX);
    for (k, column) in columns.iter().enumerate() {
        let gap = if k == 0 { 0 } else { 2 };
        let longest = column.cells.iter().map(|cell| cell.width()).chain([column.title.width()]).max();
        let wanted = longest.unwrap_or_default();
        let room = left.saturating_sub(gap);
        if wanted > room && k > 0 && (column.cut == CutPosition::No || room < NARROWEST) {
            break;
        }
        let wide = wanted.min(room);
        left = room - wide;
        let how = if column.cut == CutPosition::No { CutPosition::End } else { column.cut };
        for (k, line) in lines.iter_mut().enumerate() {
            let row = k.checked_sub(1);
            let cell = row.map_or(column.title, |row| &column.cells[row]);
            let cell = cut(cell, wide, how);
            let room = " ".repeat(wide - cell.width());
            let cell = if column.right { format!("{room}{cell}") } else { format!("{cell}{room}") };
            let cell = row.map_or_else(|| cell.bold().to_string(), |row| (column.paint)(row, &cell));
            line.push_str(&" ".repeat(gap));
            line.push_str(&cell);
        }
    }
    lines.into_iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// The text, at most `wide` columns of a terminal, with an ellipsis if it is cut.
pub(crate) fn cut(text: &str, wide: usize, how: CutPosition) -> Cow<'_, str> {
    if how == CutPosition::No || text.width() <= wide {
        return Cow::Borrowed(text);
    }
    if wide == 0 {
        return Cow::Borrowed("");
    }
    // Joined characters may have another width than single ones, so the rest is measured as a whole.
    let dots = Some(in_charset("…")).filter(|dots| dots.width() < wide).unwrap_or_default();
    let fits = |part: &&str| part.width() + dots.width() <= wide;
    let ends = || text.char_indices().map(|(at, _)| at);
    Cow::Owned(match how {
        CutPosition::Begin => {
            let rest = ends().map(|at| &text[at..]).find(fits).unwrap_or_default();
            format!("{dots}{rest}")
        }
        CutPosition::End | CutPosition::No => {
            let rest = ends().rev().map(|at| &text[..at]).find(fits).unwrap_or_default();
            format!("{rest}{dots}")
        }
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("whole", 5, CutPosition::End, "whole")]
    #[case("a sentence", 6, CutPosition::End, "a sen…")]
    #[case("/home/you/project", 9, CutPosition::Begin, "…/project")]
    #[case("日本語です", 6, CutPosition::End, "日本…")]
    #[case("日本語です", 6, CutPosition::Begin, "…です")]
    #[case("e\u{301}te\u{301}s", 3, CutPosition::End, "e\u{301}t…")]
    #[case("❤\u{fe0f}❤\u{fe0f}❤\u{fe0f}", 4, CutPosition::End, "❤\u{fe0f}❤…")]
    #[case("anything", 0, CutPosition::End, "")]
    fn a_text_is_cut_by_its_terminal_width(
        #[case] text: &str,
        #[case] wide: usize,
        #[case] how: CutPosition,
        #[case] expected: &str,
    ) {
        assert_eq!(cut(text, wide, how), expected);
    }

    #[test]
    fn a_column_is_as_wide_as_it_was_cut_to_whatever_is_in_it() {
        let hearts = "❤\u{fe0f}".repeat(20);
        let column = |title| Column {
            title,
            cells: vec![Cow::Borrowed(hearts.as_str())],
            cut: CutPosition::End,
            right: false,
            paint: &plain,
        };
        for width in 0..60 {
            for line in lines(&[column("A"), column("B")], Some(width)) {
                let line = anstream::adapter::strip_str(line.trim_end()).to_string();
                assert!(line.width() <= width, "{width}: {line}");
            }
        }
    }

    #[test]
    fn wide_characters_do_not_move_the_next_column() {
        let column = |title, cells: [&'static str; 2]| Column {
            title,
            cells: cells.map(Cow::Borrowed).to_vec(),
            cut: CutPosition::End,
            right: false,
            paint: &plain,
        };
        let lines = lines(&[column("A", ["日本", "ab"]), column("B", ["x", "y"])], Some(20));
        let text = anstream::adapter::strip_str(&lines.concat()).to_string();
        assert_eq!(text, "A     B\n日本  x\nab    y\n");
    }
}
