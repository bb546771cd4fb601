//! The frame of every page, and the page for errors.

use askama::Template;
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};

use crate::desk::Place;
use crate::http::app_state::AppState;
use crate::http::failure::Failure;

/// The parts that every page has.
pub(super) struct Frame {
    /// The event id after which the page updates itself.
    pub(super) mark: String,
    /// The page's project; empty for a page of all projects.
    pub(super) project: String,
    pub(super) id: String,
}

impl Frame {
    pub(super) fn of_all(door: &AppState) -> Self {
        Self { mark: door.hub.mark(), project: String::new(), id: String::new() }
    }

    pub(super) fn of(door: &AppState, place: &Place) -> Self {
        Self { mark: door.hub.mark(), project: place.project.clone(), id: place.id.clone() }
    }
}

/// A page that failed, as a page.
#[derive(Template)]
#[template(path = "failed.html")]
struct Failed {
    frame: Frame,
    error: String,
}

pub(super) fn page(page: &impl Template) -> Response {
    match page.render() {
        Ok(page) => Html(page).into_response(),
        Err(error) => Failure::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

pub(super) fn failed(door: &AppState, failure: &Failure) -> Response {
    let shown = page(&Failed { frame: Frame::of_all(door), error: failure.error.clone() });
    (failure.status(), shown).into_response()
}

/// Renders a page from the result, or from the error.
pub(super) fn shown<T>(
    door: &AppState,
    found: Result<T, Failure>,
    show: impl FnOnce(T) -> Response,
) -> Response {
    match found {
        Ok(found) => show(found),
        Err(failure) => failed(door, &failure),
    }
}
