//! Stored texts: prompts, logs, notes, diffs.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Deserialize;

use super::frame::{Frame, page, shown};
use crate::desk::Place;
use crate::http::api::{At, Attempt, Wants};
use crate::http::app_state::AppState;

/// How much of a log a page shows, in bytes.
const PART: u64 = 128 << 10;

#[derive(Template)]
#[template(path = "text.html")]
struct Page {
    frame: Frame,
    title: String,
    back: String,
    note: String,
    part: Option<Part>,
    lines: Vec<Line>,
}

/// Which part of a log it is.
struct Part {
    from: u64,
    before: u64,
    next: u64,
    total: u64,
}

/// A line of a diff and its class.
struct Line {
    class: &'static str,
    text: String,
}

/// From which byte on.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct From {
    from: Option<u64>,
}

pub(super) async fn difference(State(door): State<Arc<AppState>>, At(place): At<Place>) -> Response {
    let of = place.clone();
    let found = door.at_desk(move |desk| desk.difference(&of)).await;
    shown(&door, found, |found| {
        let stat = found.stat.lines().map(|line| Line { class: "", text: line.to_owned() });
        let diff = found.diff.lines().map(|line| Line { class: class(line), text: line.to_owned() });
        let title = "What it has changed so far".to_owned();
        let between = (!found.diff.is_empty()).then(|| Line { class: "", text: String::new() });
        let lines = stat.chain(between).chain(diff).collect::<Vec<_>>();
        let note = match lines.is_empty() && found.is_shown {
            true => format!("{} Nothing is different.", found.note),
            false => found.note,
        };
        page(&Page { note, ..Page::of(&door, &place, title, lines) })
    })
}

pub(super) async fn notes(State(door): State<Arc<AppState>>, At(place): At<Place>) -> Response {
    let of = place.clone();
    let found = door.at_desk(move |desk| desk.notes(&of)).await;
    shown(&door, found, |text| page(&Page::of(&door, &place, "Notes".to_owned(), lines(&text))))
}

pub(super) async fn told(State(door): State<Arc<AppState>>, At(of): At<Attempt>) -> Response {
    let (place, title) = (of.place(), format!("Prompt of iteration {}", of.attempt));
    let found = door.at_desk(move |desk| desk.told(&of.place(), &of.attempt)).await;
    shown(&door, found, |text| page(&Page::of(&door, &place, title, lines(&text))))
}

pub(super) async fn log(
    State(door): State<Arc<AppState>>,
    At(of): At<Attempt>,
    Wants(From { from }): Wants<From>,
) -> Response {
    let (place, title) = (of.place(), format!("{} of iteration {}", of.log, of.attempt));
    let found =
        door.at_desk(move |desk| desk.log(&of.place(), (&of.attempt, &of.log), from, Some(PART))).await;
    shown(&door, found, |found| {
        let before = found.from.saturating_sub(PART);
        let part = Some(Part { from: found.from, before, next: found.next, total: found.total });
        page(&Page { part, ..Page::of(&door, &place, title, lines(&found.text)) })
    })
}

impl Page {
    fn of(door: &AppState, place: &Place, title: String, lines: Vec<Line>) -> Self {
        let back = format!("/p/{}/{}", place.project, place.id);
        Self { frame: Frame::of(door, place), title, back, note: String::new(), part: None, lines }
    }
}

fn lines(text: &str) -> Vec<Line> {
    text.lines().map(|line| Line { class: "", text: line.to_owned() }).collect()
}

/// The class of a diff line.
fn class(line: &str) -> &'static str {
    match line.as_bytes().first() {
        Some(b'd') if line.starts_with("diff --git ") => "file",
        Some(b'+') => "add",
        Some(b'-') => "del",
        Some(b'@') => "at",
        _ => "",
    }
}
