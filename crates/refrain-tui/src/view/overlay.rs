//! The overlays: the bottom line with keys or results, and the help.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Modifier, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Clear, Widget};
use refrain_core::view::{Kind, WaitsFor};
use unicode_width::UnicodeWidthStr;

use super::forms;
use super::parts::put;
use crate::model::{Dialog, InputPurpose, Model, OpenView, seen};
use crate::text::{cut, fill, flat, wrapped};
use crate::update::named;

/// Draws it; returns the cursor's place in an input line.
pub(super) fn draw(model: &Model, buffer: &mut Buffer, area: Rect) -> Option<Position> {
    let last = Rect { y: area.bottom().saturating_sub(1), height: 1, ..area };
    match &model.asking {
        Some(Dialog::Help(top)) => {
            help(model, *top, buffer, area);
            let keys = match help_last(area) {
                0 => "any key goes back",
                _ => "up down space scroll  any other key goes back",
            };
            put(buffer, last, 0, &Line::from(keys).dim());
        }
        Some(Dialog::New(form)) => {
            let keys = "enter starts  tab next  space and arrows choose  esc back";
            bottom(model, keys, buffer, area);
            return forms::new_loop(form, buffer, area);
        }
        Some(Dialog::Palette(line, at)) => {
            bottom(model, "enter does it  up down choose  esc back", buffer, area);
            return forms::palette(model, (line, *at), buffer, area);
        }
        Some(Dialog::Cancel(keys)) => {
            let what = format!("cancel {}? y after its iteration, a at once, any other key no", named(keys));
            put(buffer, last, 0, &Line::from(cut(&what, area.width.into()).into_owned()).yellow().bold());
        }
        Some(Dialog::Merge(key)) => {
            let what = format!(
                "merge {} into what is checked out? y yes, s as one commit, any other key no",
                key.id
            );
            put(buffer, last, 0, &Line::from(cut(&what, area.width.into()).into_owned()).yellow().bold());
        }
        Some(Dialog::Archive(keys)) => {
            let what = format!("archive {}? y yes, any other key no", named(keys));
            put(buffer, last, 0, &Line::from(cut(&what, area.width.into()).into_owned()).yellow().bold());
        }
        Some(Dialog::Approve(key, _)) => {
            let what = format!("approve {}? y it is good, b sends it back, any other key no", key.id);
            put(buffer, last, 0, &Line::from(cut(&what, area.width.into()).into_owned()).yellow().bold());
        }
        Some(Dialog::Line(wanted, line)) => {
            let what = match wanted {
                InputPurpose::Filter => "filter: ".to_owned(),
                InputPurpose::Search => "search: ".to_owned(),
                InputPurpose::Steer(key) => format!("tell {}: ", key.id),
                InputPurpose::Answer(key) => format!("answer {}: ", key.id),
                InputPurpose::SendBack(key) => format!("send {} back, and tell it: ", key.id),
                InputPurpose::Grant(key, used) => format!("{}; resume {} with: ", flat(used), key.id),
            };
            let (before, behind) = line.parts();
            // The user types at its end: of what does not fit, the beginning is omitted.
            let room = usize::from(area.width).saturating_sub(behind.width().min(8) + 1);
            let text = format!("{what}{before}");
            let from = text.char_indices().map(|(at, _)| at).find(|at| text[*at..].width() <= room);
            let text = &text[from.unwrap_or(text.len())..];
            let at = u16::try_from(text.width()).unwrap_or(area.width).min(area.width.saturating_sub(1));
            let style = Style::new().add_modifier(Modifier::BOLD);
            put(buffer, last, 0, &Line::from(Span::styled(format!("{text}{behind}"), style)));
            return Some(Position { x: area.x + at, y: last.y });
        }
        None => match &model.said {
            // An error's end says what to do, so it gets as many lines as it needs, if available.
            Some((words, is_refused)) => {
                let line = Line::from(flat(words));
                let line = if *is_refused { line.red() } else { line };
                let lines = wrapped(&line, area.width.into());
                let most = usize::from(area.height).div_ceil(2);
                let rows = u16::try_from(lines.len().min(most)).unwrap_or(1);
                let place = Rect { y: area.bottom().saturating_sub(rows), height: rows, ..area };
                Clear.render(place, buffer);
                (0..rows).zip(&lines).for_each(|(row, line)| put(buffer, place, row, line));
            }
            None => put(buffer, last, 0, &Line::from(keys(model, area.width.into())).dim()),
        },
    }
    None
}

/// The bottom line of a form: why it was refused, else its keys.
fn bottom(model: &Model, keys: &str, buffer: &mut Buffer, area: Rect) {
    let last = Rect { y: area.bottom().saturating_sub(1), height: 1, ..area };
    let line = match &model.said {
        Some((why, true)) => Line::from(flat(why)).red(),
        Some(_) | None => Line::from(keys.to_owned()).dim(),
    };
    put(buffer, last, 0, &line);
}

/// As many whole key hints as there is room for, the most needed first.
fn keys(model: &Model, columns: usize) -> String {
    let of: &[&str] = match model.opened.last() {
        None => &[
            "enter opens",
            "/ filter",
            "n new",
            "d changes",
            "l log",
            "p pause",
            "r resume",
            "c cancel",
            "s steer",
            "m merge",
            "x archive",
            "o order",
            "space mark",
        ],
        Some(OpenView::Loop(one)) if one.at_attempts => &["enter opens its log", "tab"],
        Some(OpenView::Loop(_)) => &["tab", "f follow", "/ search"],
        Some(OpenView::Plan(_)) => &["enter opens a task", "tab", "p pause", "r resume", "c cancel"],
        Some(OpenView::Log(_)) => &["/ search", "g beginning", "G end"],
    };
    let back = if model.opened.is_empty() { "" } else { "  esc back" };
    let (is_plan, is_over) = match model.opened.last() {
        None => model
            .list
            .current()
            .and_then(seen)
            .map_or((false, false), |row| (row.brief.kind == Kind::Plan, row.brief.status.is_over())),
        Some(OpenView::Loop(one)) => (false, one.status.as_ref().is_some_and(|it| it.status.is_over())),
        Some(OpenView::Plan(one)) => (true, one.status.as_ref().is_some_and(|it| it.status.is_over())),
        Some(OpenView::Log(_)) => (false, false),
    };
    let of_loop: &[&str] = match model.opened.last() {
        Some(OpenView::Loop(_)) => &["p pause", "r resume", "c cancel", "s steer", "m merge", "d changes"],
        _ => &[],
    };
    let applies = |key: &&&str| match **key {
        "x archive" => !is_plan,
        "p pause" | "r resume" | "c cancel" | "s steer" => !is_over,
        _ => true,
    };
    let need = match model.opened.last() {
        None => model.list.current().and_then(seen).and_then(|row| row.facts.waits_for.as_deref()),
        Some(OpenView::Loop(one)) => one.status.as_ref().and_then(|it| it.waits_for).map(WaitsFor::as_str),
        Some(OpenView::Plan(_) | OpenView::Log(_)) => None,
    };
    let need = match need {
        Some("approval") => "  a approve",
        Some("answer") => "  a answer",
        _ => "",
    };
    let mut line = format!("? help{back}  q quit{need}");
    for key in of.iter().chain(of_loop).filter(applies) {
        if line.width() + 2 + key.width() > columns {
            break;
        }
        line.push_str("  ");
        line.push_str(key);
    }
    line
}

/// The most needed first: a low screen scrolls to the others.
const HELP: [(&str, &str); 24] = [
    ("q", "quit; loops go on"),
    ("esc", "back"),
    ("up down j k", "move, or scroll"),
    ("enter", "open a loop, a plan, a task, a log"),
    ("tab", "the other part of a loop or a plan"),
    ("/", "filter the list, search the text"),
    (": ctrl-k", "commands and loops by their names"),
    ("n", "a new loop, from the list"),
    ("space", "mark it: p r c x then act on all that are marked"),
    ("p P", "pause after the iteration, or at once"),
    ("r", "resume, in a process of its own"),
    ("c", "cancel, after asking"),
    ("s", "steer: tell the agent something"),
    ("a", "approve, send back, or answer"),
    ("d l", "its changes, its latest log, in $PAGER"),
    ("m", "merge, after asking"),
    ("x", "archive, after asking"),
    ("o", "the next order of the list"),
    ("f", "follow what happens, or stay here"),
    ("n N", "look on in a text, forth or back"),
    ("g G", "to the beginning, to the end"),
    ("page up, page down", "a screen at a time"),
    ("mouse", "click selects, again opens; the wheel scrolls"),
    ("ctrl-l", "draw the screen anew"),
];

/// How many rows of the help do not fit.
pub(super) fn help_last(area: Rect) -> usize {
    HELP.len().saturating_sub(area.height.saturating_sub(1).into())
}

fn help(model: &Model, top: usize, buffer: &mut Buffer, area: Rect) {
    let rows = u16::try_from(HELP.len()).unwrap_or(u16::MAX).min(area.height.saturating_sub(1));
    let columns = area.width.min(68);
    let from = (area.height.saturating_sub(1).saturating_sub(rows)) / 2;
    let place = Rect { x: (area.width - columns) / 2, y: area.y + from, width: columns, height: rows };
    let name = if area.width < 60 { 12 } else { 20 };
    let style = if model.art.colour { Style::new().on_blue().white() } else { Style::new().reversed() };
    Clear.render(place, buffer);
    let top = top.min(help_last(area));
    for (row, (key, what)) in (0..rows).zip(&HELP[top..]) {
        let text = format!(" {} {what}", fill(key, name));
        let text = fill(&text, columns.into());
        buffer.set_line(place.x, place.y + row, &Line::from(text).style(style), place.width);
    }
}
