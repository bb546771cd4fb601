//! Stored texts: prompts, logs, notes.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;

use super::frame::{Frame, PageQuery, page, shown};
use super::parts::sentence;
use crate::http::api::{At, Attempt};
use crate::http::app_state::AppState;
use crate::requests::LoopAddress;

/// How much of a log a page shows, in bytes.
const PART: u64 = 128 << 10;

#[derive(Template)]
#[template(path = "text.html")]
struct Page {
    frame: Frame,
    title: String,
    back: String,
    part: Option<Part>,
    text: String,
}

/// Which part of a log it is.
struct Part {
    from: u64,
    before: u64,
    next: u64,
    total: u64,
}

pub(super) async fn notes(State(state): State<Arc<AppState>>, At(place): At<LoopAddress>) -> Response {
    let of = place.clone();
    let found = state.run_blocking(move |handler| handler.notes(&of)).await;
    shown(&state, found, |text| page(&Page::of(&state, &place, "Notes".to_owned(), text)))
}

pub(super) async fn told(State(state): State<Arc<AppState>>, At(of): At<Attempt>) -> Response {
    let (place, title) = (of.place(), format!("Prompt of iteration {}", of.attempt));
    let found = state.run_blocking(move |handler| handler.told(&of.place(), &of.attempt)).await;
    shown(&state, found, |text| page(&Page::of(&state, &place, title, text)))
}

pub(super) async fn log(
    State(state): State<Arc<AppState>>,
    At(of): At<Attempt>,
    asked: PageQuery,
) -> Response {
    let from = asked.get("from").and_then(|from| from.parse().ok());
    let (place, title) = (of.place(), sentence(&format!("{} of iteration {}", of.log, of.attempt)));
    let found = state
        .run_blocking(move |handler| handler.log(&of.place(), (&of.attempt, &of.log), from, Some(PART)))
        .await;
    shown(&state, found, |found| {
        let before = found.from.saturating_sub(PART);
        let part = Some(Part { from: found.from, before, next: found.next, total: found.total });
        page(&Page { part, ..Page::of(&state, &place, title, found.text) })
    })
}

impl Page {
    fn of(state: &AppState, place: &LoopAddress, title: String, text: String) -> Self {
        let back = place.path();
        Self { frame: Frame::of(state, place), title, back, part: None, text }
    }
}
