//! The mouse: a click selects and opens, the wheel scrolls.

use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::Position;

use super::{Effect, open, scroll};
use crate::model::{Model, OpenView};

pub(super) fn point(model: &mut Model, mouse: MouseEvent) -> Vec<Effect> {
    const WHEEL: isize = 3;
    if model.asking.is_some() {
        return Vec::new();
    }
    let at = Position { x: mouse.column, y: mouse.row };
    let places = model.places;
    let in_text = places.text.contains(at);
    match mouse.kind {
        MouseEventKind::ScrollUp => scroll(model, -WHEEL, in_text),
        MouseEventKind::ScrollDown => scroll(model, WHEEL, in_text),
        MouseEventKind::Down(MouseButton::Left) if places.attempts.contains(at) => {
            let row = usize::from(at.y - places.attempts.y);
            return click(model, row);
        }
        MouseEventKind::Down(MouseButton::Left) if places.rows.contains(at) => {
            let row = usize::from(at.y - places.rows.y);
            return click(model, row);
        }
        _ => {}
    }
    Vec::new()
}

/// A click selects a row; on the selected row it opens it.
fn click(model: &mut Model, row: usize) -> Vec<Effect> {
    let is_selected = match model.opened.last_mut() {
        None => {
            let at = model.list.top + row;
            let is_selected = at == model.list.at() && model.list.cursor.is_some();
            if at >= model.list.shown().len() {
                return Vec::new();
            }
            model.list.go(at);
            is_selected
        }
        Some(OpenView::Plan(one)) => {
            let at = one.top + row;
            let is_selected = at == one.cursor;
            if at >= one.tasks().len() {
                return Vec::new();
            }
            one.go(at);
            is_selected
        }
        Some(OpenView::Loop(one)) => {
            let at = one.top + row;
            if at >= one.attempts().len() {
                return Vec::new();
            }
            let is_selected = one.at_attempts && at == one.at();
            one.at_attempts = true;
            one.go(at);
            is_selected
        }
        Some(OpenView::Log(_)) => false,
    };
    if is_selected { open(model) } else { Vec::new() }
}
