//! Parts that every view draws with: rows, titles, bars, amounts.

use std::time::Duration;

use jiff::Timestamp;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style, Stylize};
use ratatui::text::{Line, Span};
use refrain_core::agent::Usd;
use refrain_core::spec::Millis;
use refrain_core::view::{Tone, active_by};
use refrain_engine::ListRow;
use unicode_width::UnicodeWidthStr;

use crate::model::Art;
use crate::text::cut;

/// How many columns the number of gates that do not fit needs.
const MORE_GATES: usize = 4;
/// A screen with fewer rows shows one part at a time.
pub(super) const LOW: u16 = 16;

/// Writes a line into a row, as much of it as fits.
pub(super) fn put(buffer: &mut Buffer, area: Rect, row: u16, line: &Line<'_>) {
    if row < area.height {
        buffer.set_line(area.x, area.y + row, line, area.width);
    }
}

/// Joins as many parts of a line as fit whole: half a number is another number.
pub(super) fn fitting(parts: impl IntoIterator<Item = Span<'static>>, columns: usize) -> Line<'static> {
    let mut line = Line::default();
    for part in parts {
        if line.width() + part.content.trim_end().width() > columns && !line.spans.is_empty() {
            break;
        }
        line.push_span(part);
    }
    line
}

/// The first row of a part, for its title, and the rest.
pub(super) fn split(area: Rect) -> (Rect, Rect) {
    let first = Rect { height: area.height.min(1), ..area };
    (first, Rect { y: area.y + first.height, height: area.height - first.height, ..area })
}

/// A part's title, followed by a rule.
pub(super) fn title(text: &str, columns: u16, has_keys: bool) -> Line<'static> {
    let columns = usize::from(columns);
    let text = cut(text, columns.saturating_sub(4)).into_owned();
    let rule = "─".repeat(columns.saturating_sub(Line::from(text.as_str()).width() + 4));
    let style = if has_keys { Style::new().add_modifier(Modifier::BOLD) } else { Style::new().dim() };
    Line::from(vec![Span::from("─ ").dim(), Span::styled(text, style), Span::from(format!(" {rule}─")).dim()])
}

/// Marks the row of the cursor: one background behind its colours.
pub(super) fn select(art: Art, buffer: &mut Buffer, row: Rect) {
    let style = match art.colour {
        true => Style::new().bg(Color::Indexed(if art.light { 254 } else { 236 })).bold(),
        false => Style::new().reversed(),
    };
    buffer.set_style(row, style);
}

pub(super) fn of_tone(tone: Tone) -> Style {
    match tone {
        Tone::Good => Style::new().green().bold(),
        Tone::Active => Style::new().cyan(),
        Tone::Bad => Style::new().red().bold(),
        Tone::Attention => Style::new().yellow().bold(),
    }
}

/// A progress bar of so many cells; empty without a limit.
pub(super) fn bar(done: u64, all: Option<u64>, cells: usize) -> String {
    let Some(all) = all.filter(|all| *all > 0) else { return " ".repeat(cells) };
    let full = usize::try_from(done.min(all) * cells as u64 / all).unwrap_or(cells);
    format!("{}{}", "█".repeat(full), "░".repeat(cells - full))
}

/// How long something took, or takes: whole seconds.
pub(super) fn took(from: Timestamp, to: Timestamp) -> String {
    length(Millis::from(Duration::try_from(to.duration_since(from)).unwrap_or_default()))
}

pub(super) fn length(time: Millis) -> String {
    match time.0 / 1000 {
        seconds @ 0..60 => format!("{seconds}s"),
        seconds @ 60..3600 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        seconds @ 3600..86_400 => format!("{}h {:02}m", seconds / 3600, seconds % 3600 / 60),
        seconds => format!("{}d {:02}h", seconds / 86_400, seconds % 86_400 / 3600),
    }
}

/// How long a row's loop or plan has worked.
pub(super) fn worked(seen: &ListRow, now: Timestamp) -> String {
    let ListRow { brief, facts, .. } = seen;
    match facts.active_ms {
        Some(active) => length(active_by(now, brief.status, (active, brief.updated_at))),
        None => took(facts.started_at, if brief.has_stopped() { brief.updated_at } else { now }),
    }
}

pub(super) fn duration(ms: u64) -> String {
    Millis(ms).to_string()
}

/// An amount of money in a narrow column, followed by `+` if it is a lower bound.
pub(super) fn money(dollars: Option<f64>, at_least: bool) -> String {
    let mark = if at_least { "+" } else { "" };
    dollars.map(|dollars| format!("{}{mark}", Usd::from(dollars))).unwrap_or_default()
}

/// Gates, each with how it went, in at most so many columns. If not all fit, those that failed come first, and it is said
/// how many more there are.
pub(super) fn gates(gates: &[(&str, bool)], columns: usize) -> Vec<Span<'static>> {
    let text = |(name, passed): &(&str, bool)| {
        (format!("{}{}", if *passed { "✓" } else { "✗" }, crate::text::flat(name)), *passed)
    };
    let mut all: Vec<_> = gates.iter().map(text).collect();
    if all.iter().map(|(text, _)| text.width() + 1).sum::<usize>() > columns + 1 {
        all.sort_by_key(|(_, passed)| *passed);
    }
    let (mut spans, mut left) = (Vec::new(), columns);
    for (at, (text, passed)) in all.iter().enumerate() {
        let room = if at + 1 < all.len() { left.saturating_sub(MORE_GATES) } else { left };
        if at > 0 && text.width() > room {
            spans.extend([Span::from(format!("+{}", all.len() - at)).dim(), Span::from(" ")]);
            break;
        }
        let text = cut(text, room).into_owned();
        left = left.saturating_sub(text.width() + 1);
        let span = Span::from(text);
        spans.extend([if *passed { span.green() } else { span.red() }, Span::from(" ")]);
    }
    spans
}

/// The first visible row: the previous one, moved as far as the cursor needs.
pub(super) fn top(was: usize, cursor: usize, rows: usize, all: usize) -> usize {
    let lowest = (cursor + 1).saturating_sub(rows);
    was.min(all.saturating_sub(rows)).clamp(lowest, cursor.max(lowest))
}
