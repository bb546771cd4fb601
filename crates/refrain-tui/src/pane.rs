//! A scrollable, searchable pane of growing text. It follows the end until the user scrolls away from it.

use std::collections::VecDeque;

use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use crate::text::{styled, wrapped};

/// So many lines are kept; `refrain logs` has all.
const KEPT: usize = 5_000;

/// The text.
#[derive(Debug, Default)]
pub(crate) struct Pane {
    lines: VecDeque<Line<'static>>,
    /// The last line has not come to its end.
    begun: Option<String>,
    /// The first line that is shown; none while the end is followed.
    top: Option<usize>,
    /// The search text.
    pub(crate) search: String,
}

impl Pane {
    /// Clears everything but the search text.
    pub(crate) fn clear(&mut self) {
        *self = Self { search: std::mem::take(&mut self.search), ..Self::default() };
    }

    /// More text: whole lines, or the next part of one.
    pub(crate) fn push(&mut self, text: &str) {
        for part in text.split_inclusive('\n') {
            let whole = self.begun.take().map_or_else(
                || part.to_owned(),
                |begun| {
                    self.lines.pop_back();
                    begun + part
                },
            );
            let line = whole.trim_end_matches('\n');
            self.lines.push_back(styled(line));
            if line.len() == whole.len() {
                self.begun = Some(whole);
            }
        }
        while self.lines.len() > KEPT {
            self.lines.pop_front();
            self.top = self.top.map(|top| top.saturating_sub(1));
        }
    }

    pub(crate) fn follows(&self) -> bool {
        self.top.is_none()
    }

    /// Follows the end, or stays where it is.
    pub(crate) fn follow(&mut self, follows: bool, rows: usize) {
        self.top = (!follows).then(|| self.last_top(rows));
    }

    /// Scrolls by so many lines; at the end it follows again.
    pub(crate) fn scroll(&mut self, by: isize, rows: usize) {
        let last = self.last_top(rows);
        let top = self.top.unwrap_or(last).saturating_add_signed(by);
        self.top = (top < last).then_some(top);
    }

    pub(crate) fn show_beginning(&mut self) {
        self.top = Some(0);
    }

    fn last_top(&self, rows: usize) -> usize {
        self.lines.len().saturating_sub(rows)
    }

    /// Goes to the next or previous line that matches the search; returns whether there is any.
    pub(crate) fn find(&mut self, forward: bool, rows: usize) -> bool {
        let wanted = self.search.to_lowercase();
        let has = |place: &usize| self.lines[*place].to_string().to_lowercase().contains(&wanted);
        let here = self.top.unwrap_or(self.last_top(rows));
        let found = if forward {
            (here + 1..self.lines.len()).find(has).or_else(|| (0..self.lines.len()).find(has))
        } else {
            (0..here.min(self.lines.len())).rev().find(has).or_else(|| (0..self.lines.len()).rev().find(has))
        };
        self.top = found.or(self.top);
        found.is_some()
    }

    /// The visible lines, for so many columns and rows.
    pub(crate) fn shown(&self, columns: usize, rows: usize) -> Vec<Line<'static>> {
        let wrap = |line: &Line<'static>| wrapped(&self.marked(line), columns);
        match self.top {
            Some(top) => self.lines.iter().skip(top).flat_map(wrap).take(rows).collect(),
            None => {
                let mut shown = VecDeque::new();
                for line in self.lines.iter().rev() {
                    wrap(line).into_iter().rev().for_each(|line| shown.push_front(line));
                    if shown.len() >= rows {
                        break;
                    }
                }
                let over = shown.len().saturating_sub(rows);
                shown.into_iter().skip(over).collect()
            }
        }
    }

    /// The line, with matches marked.
    fn marked(&self, line: &Line<'static>) -> Line<'static> {
        let wanted = self.search.to_lowercase();
        let text = line.to_string();
        // If lower case has another length than upper case, offsets differ: such a line is not marked.
        let lower = text.to_lowercase();
        if wanted.is_empty() || lower.len() != text.len() || !lower.contains(&wanted) {
            return line.clone();
        }
        let marks: Vec<_> =
            lower.match_indices(&wanted).map(|(from, found)| from..from + found.len()).collect();
        let is_marked = |at: usize| marks.iter().any(|mark| mark.contains(&at));
        let mut at = 0;
        let mut spans = Vec::new();
        for span in &line.spans {
            for c in span.content.chars() {
                let mark =
                    if is_marked(at) { span.style.add_modifier(Modifier::REVERSED) } else { span.style };
                push(&mut spans, c, mark);
                at += c.len_utf8();
            }
        }
        Line::from(spans)
    }
}

fn push(spans: &mut Vec<Span<'static>>, c: char, style: Style) {
    match spans.last_mut() {
        Some(last) if last.style == style => last.content.to_mut().push(c),
        _ => spans.push(Span::styled(c.to_string(), style)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(pane: &Pane, rows: usize) -> Vec<String> {
        pane.shown(20, rows).iter().map(ToString::to_string).collect()
    }

    fn pane(text: &str) -> Pane {
        let mut pane = Pane::default();
        pane.push(text);
        pane
    }

    #[test]
    fn parts_of_a_line_are_one_line() {
        let mut pane = pane("one\ntw");
        pane.push("o");
        assert_eq!(shown(&pane, 5), ["one", "two"]);
        pane.push("\nthree\n");
        assert_eq!(shown(&pane, 5), ["one", "two", "three"]);
    }

    #[test]
    fn a_pane_follows_its_end_until_scrolled_and_again_at_the_end() {
        let mut pane = pane("1\n2\n3\n4\n");
        assert_eq!(shown(&pane, 2), ["3", "4"]);
        pane.scroll(-1, 2);
        pane.push("5\n");
        assert_eq!((shown(&pane, 2), pane.follows()), (vec!["2".to_owned(), "3".to_owned()], false));
        pane.scroll(9, 2);
        assert_eq!((shown(&pane, 2), pane.follows()), (vec!["4".to_owned(), "5".to_owned()], true));
    }

    #[test]
    fn a_search_wraps_around_in_both_directions() {
        let mut pane = pane("needle\nhay\nmore Needles\nhay\n");
        pane.search = "needle".into();
        assert!(pane.find(false, 1));
        assert_eq!(shown(&pane, 1), ["more Needles"]);
        assert!(pane.find(false, 1));
        assert_eq!(shown(&pane, 1), ["needle"]);
        assert!(pane.find(true, 1) && pane.find(true, 1));
        assert_eq!(shown(&pane, 1), ["needle"]);
        let marked = &pane.shown(20, 1)[0];
        assert!(marked.spans[0].style.add_modifier.contains(Modifier::REVERSED));
        pane.search = "thread".into();
        assert!(!pane.find(true, 1));
    }

    #[test]
    fn a_pane_keeps_a_bounded_number_of_lines() {
        let mut pane = Pane::default();
        for n in 0..KEPT + 10 {
            pane.push(&format!("{n}\n"));
        }
        pane.scroll(isize::MIN / 2, 1);
        assert_eq!(shown(&pane, 1), ["10"]);
    }
}
