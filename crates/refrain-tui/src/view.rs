//! Draws the model at the screen's size. What does not fit is omitted, the most useful parts last.

mod forms;
mod list;
mod log;
mod loop_page;
mod overlay;
mod parts;
mod plan;
mod preview;

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Color;

use crate::model::{Art, Model, OpenView, Places};

/// Draws the model; returns the places of widgets.
pub(crate) fn view(model: &Model, frame: &mut Frame<'_>) -> Places {
    let area = frame.area();
    let Some(body) = body(area) else { return Places::default() };
    let buffer = frame.buffer_mut();
    let places = match model.opened.last() {
        None => list::draw(model, buffer, body),
        Some(OpenView::Loop(one)) => loop_page::draw(model, one, buffer, body),
        Some(OpenView::Plan(one)) => plan::draw(model, one, buffer, body),
        Some(OpenView::Log(one)) => log::draw(one, buffer, body),
    };
    let cursor = overlay::draw(model, buffer, area);
    plain(model.art, buffer);
    if let Some(cursor) = cursor {
        frame.set_cursor_position(cursor);
    }
    Places { help: overlay::help_last(area), ..places }
}

/// The area above the bottom line; none if the screen is too small.
fn body(area: Rect) -> Option<Rect> {
    let rows = area.height.checked_sub(1).filter(|rows| *rows > 0 && area.width >= 4)?;
    Some(Rect { height: rows, ..area })
}

/// Replaces characters that the terminal cannot show, and colours that a light background swallows.
fn plain(art: Art, buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        if art.light {
            cell.fg = match cell.fg {
                Color::Yellow => Color::Magenta,
                Color::Cyan => Color::Blue,
                other => other,
            };
        }
        if !art.colour {
            (cell.fg, cell.bg) = (Color::Reset, Color::Reset);
        }
        if !art.blocks && !cell.symbol().is_ascii() {
            let ascii = match cell.symbol() {
                "█" | "▌" => "#",
                "░" => ".",
                "─" => "-",
                "│" => "|",
                "┌" | "┐" | "└" | "┘" | "├" | "┤" => "+",
                "…" => "~",
                "·" => "-",
                "✓" => "+",
                "✗" => "x",
                "→" | "▸" | "›" => ">",
                "●" => "*",
                "∞" => "-",
                _ => "?",
            };
            cell.set_symbol(ascii);
        }
    }
}
