//! The output of an attempt, or the changes of a loop.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Stylize;
use ratatui::text::Line;

use super::parts::{put, split, title};
use crate::model::{LoopText, OneLog, Places};
use crate::text::flat;

pub(super) fn draw(one: &OneLog, buffer: &mut Buffer, area: Rect) -> Places {
    let (first, text) = split(area);
    let Some(pane) = &one.text else {
        put(buffer, first, 0, &Line::from("reading …").dim());
        return Places::default();
    };
    let search = match pane.search.as_str() {
        "" => String::new(),
        search => format!(", /{}: n and N look on", flat(search)),
    };
    let id = &one.key.id;
    let words = match one.what {
        LoopText::Output(attempt) => format!("Log of {id}, iteration {attempt}{search}"),
        LoopText::LatestOutput => format!("Log of {id}{search}"),
        LoopText::Changes => format!("Changes of {id}{search}"),
    };
    put(buffer, first, 0, &title(&words, area.width, true));
    let lines = pane.shown(area.width.into(), text.height.into());
    (0..).zip(&lines).for_each(|(row, line)| put(buffer, text, row, line));
    Places { text, ..Places::default() }
}
