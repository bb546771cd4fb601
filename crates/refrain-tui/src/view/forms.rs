//! The form of a new loop and the palette: boxes above the bottom line.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Stylize;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Clear, Widget};
use unicode_width::UnicodeWidthStr;

use super::parts::{put, select, title};
use crate::input::Input;
use crate::model::Model;
use crate::new_loop::{FormRow, LoopForm};
use crate::palette::{PaletteEntry, entries};
use crate::text::{cut, flat};

/// Where the text of a row begins.
const MARGIN: usize = 9;

/// An empty box of so many rows above the bottom line, under a title; as much of it as the screen has.
fn place(buffer: &mut Buffer, area: Rect, rows: usize, name: &str) -> Rect {
    let height = u16::try_from(rows).unwrap_or(u16::MAX).saturating_add(1).min(area.height.saturating_sub(1));
    let whole = Rect { y: area.bottom().saturating_sub(height + 1), height, ..area };
    Clear.render(whole, buffer);
    put(buffer, whole, 0, &title(name, whole.width, true));
    Rect { y: whole.y + height.min(1), height: height.saturating_sub(1), ..whole }
}

/// The end of an input line that fits, and the column of its cursor.
fn typed(line: &Input, columns: usize) -> (String, usize) {
    let (before, behind) = line.parts();
    let from = before.char_indices().map(|(at, _)| at).find(|at| before[*at..].width() < columns);
    let before = &before[from.unwrap_or(before.len())..];
    (format!("{before}{behind}"), before.width())
}

fn cursor(area: Rect, row: usize, column: usize) -> Option<Position> {
    let row = u16::try_from(row).ok().filter(|row| *row < area.height)?;
    let column = u16::try_from(column).unwrap_or(u16::MAX).min(area.width.saturating_sub(1));
    Some(Position { x: area.x + column, y: area.y + row })
}

pub(super) fn new_loop(form: &LoopForm, buffer: &mut Buffer, area: Rect) -> Option<Position> {
    let rows = form.rows();
    let name = form.project.rsplit('/').next().unwrap_or_default();
    let name = if name.is_empty() { "New loop".to_owned() } else { format!("New loop in {}", flat(name)) };
    let area = place(buffer, area, rows.len(), &name);
    let columns = usize::from(area.width);
    let at = rows.iter().position(|row| *row == form.row).unwrap_or_default();
    let top = (at + 1).saturating_sub(area.height.into());
    let choice = |options: &mut dyn Iterator<Item = &str>, chosen: usize| {
        let option = |(at, option): (usize, &str)| match at == chosen {
            true => Span::from(format!("[{}] ", flat(option))).bold(),
            false => Span::from(format!(" {}  ", flat(option))).dim(),
        };
        options.enumerate().map(option).collect::<Vec<_>>()
    };
    let (goal, column) = typed(&form.goal, columns.saturating_sub(MARGIN + 1));
    for (row, of) in (0..area.height).zip(rows.iter().skip(top)) {
        let (name, value) = match of {
            FormRow::Goal => ("Goal", vec![Span::from(flat(&goal)).bold()]),
            FormRow::Agent if form.agents.is_empty() => ("Agent", vec![Span::from("none is in PATH").red()]),
            FormRow::Agent => ("Agent", choice(&mut form.agents.iter().map(String::as_str), form.agent)),
            FormRow::Place => ("Place", choice(&mut form.places.iter().copied(), form.place)),
            FormRow::Gate(gate) => {
                let (command, is_taken) = &form.gates[*gate];
                let mark = if *is_taken { "[x]" } else { "[ ]" };
                let name = if *gate == 0 { "Gates" } else { "" };
                (name, vec![Span::from(format!("{mark} {}", flat(command)))])
            }
        };
        let mark = if *of == form.row { Span::from("› ").bold() } else { Span::from("  ") };
        let head = [mark, Span::from(format!("{name:<7}")).dim()];
        put(buffer, area, row, &Line::from([&head[..], &value[..]].concat()));
    }
    let is_goal = form.row == FormRow::Goal && top == 0;
    is_goal.then(|| cursor(area, 0, MARGIN + column)).flatten()
}

pub(super) fn palette(
    model: &Model,
    (line, at): (&Input, usize),
    buffer: &mut Buffer,
    area: Rect,
) -> Option<Position> {
    let found = entries(model, &line.text());
    let area = place(buffer, area, found.len() + 1, "Commands and loops");
    let (text, column) = typed(line, usize::from(area.width).saturating_sub(3));
    put(buffer, area, 0, &Line::from(vec![Span::from("› "), Span::from(flat(&text)).bold()]));
    let rows = area.height.saturating_sub(1);
    let top = (at + 1).saturating_sub(rows.into());
    for (row, (n, entry)) in (1..=rows).zip(found.iter().enumerate().skip(top)) {
        let (key, words) = match entry {
            PaletteEntry::Command(name, key) => (key.to_string(), (*name).to_owned()),
            PaletteEntry::Open(key, _) => ("".to_owned(), format!("open {}", key.id)),
        };
        let words = format!("  {key:<2} {words}");
        put(buffer, area, row, &Line::from(cut(&words, area.width.into()).into_owned()));
        if n == at {
            select(model.art, buffer, Rect { y: area.y + row, height: 1, ..area });
        }
    }
    cursor(area, 0, 2 + column)
}
