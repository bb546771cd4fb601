//! The documentation: the pages that `refrain docs` prints.

mod html;

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use refrain_app::book::{INDEX, PAGES, Page, find};
use refrain_core::text::printable;

use super::frame::{Frame, failed, page};
use crate::http::api::At;
use crate::http::app_state::AppState;
use crate::http::failure::Failure;

#[derive(Template)]
#[template(path = "book.html")]
struct BookPage {
    frame: Frame,
    title: &'static str,
    /// The page's topic; empty for the first page.
    topic: &'static str,
    /// The parts of the book with their pages.
    parts: Vec<(&'static str, &'static [Page])>,
    html: String,
}

impl BookPage {
    fn new(state: &AppState, (title, topic): (&'static str, &'static str), html: String) -> Self {
        let parts = PAGES.chunk_by(|a, b| a.part == b.part);
        let parts = parts.filter_map(|pages| Some((pages.first()?.part, pages))).collect();
        Self { frame: Frame::of_all(state).in_section("docs"), title, topic, parts, html }
    }
}

pub(super) async fn index(State(state): State<Arc<AppState>>) -> Response {
    page(&BookPage::new(&state, ("Where to begin", ""), html::render("", INDEX)))
}

pub(super) async fn show(State(state): State<Arc<AppState>>, At(topic): At<String>) -> Response {
    let Ok(found) = find(&topic) else {
        let error = format!("the documentation has no page {}; /docs lists them", printable(&topic));
        return failed(&state, &Failure::new(StatusCode::NOT_FOUND, error));
    };
    page(&BookPage::new(&state, (found.title(), found.topic), html::render(found.part, found.text)))
}
