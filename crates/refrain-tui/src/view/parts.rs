//! Parts that every view draws with: rows, titles, bars, amounts.

use jiff::Timestamp;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style, Stylize};
use ratatui::text::{Line, Span};
use refrain_core::agent::Usd;
use refrain_core::spec::Millis;
use refrain_core::view::Tone;
use unicode_width::UnicodeWidthStr;

use crate::text::cut;

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
    let seconds = u64::try_from(to.duration_since(from).as_secs()).unwrap_or_default();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h {:02}m", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{}d {:02}h", seconds / 86_400, seconds % 86_400 / 3600),
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

/// A large number, short.
pub(super) fn thousands(count: u64) -> String {
    match count {
        0..1_000 => count.to_string(),
        1_000..1_000_000 => format!("{}.{}k", count / 1_000, count % 1_000 / 100),
        _ => format!("{}.{}M", count / 1_000_000, count % 1_000_000 / 100_000),
    }
}

/// Gates, each with how it went, in at most so many columns.
pub(super) fn gates(gates: &[(&str, bool)], columns: usize) -> Vec<Span<'static>> {
    let mut spans = Vec::new();
    let mut left = columns;
    for (name, passed) in gates {
        let mark = if *passed { "✓" } else { "✗" };
        let text = format!("{mark}{}", crate::text::flat(name));
        let text = cut(&text, left).into_owned();
        left = left.saturating_sub(Line::from(text.as_str()).width() + 1);
        let span = Span::from(text);
        spans.push(if *passed { span.green() } else { span.red() });
        spans.push(Span::from(" "));
        if left < 3 {
            break;
        }
    }
    spans
}

/// The first visible row: the previous one, moved as far as the cursor needs.
pub(super) fn top(was: usize, cursor: usize, rows: usize, all: usize) -> usize {
    let lowest = (cursor + 1).saturating_sub(rows);
    was.min(all.saturating_sub(rows)).clamp(lowest, cursor.max(lowest))
}
