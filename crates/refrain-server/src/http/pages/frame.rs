//! The frame of every page, and the page for errors.

use std::collections::HashMap;

use askama::Template;
use axum::extract::Query;
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};

use super::parts::sentence;
use crate::http::app_state::AppState;
use crate::http::failure::Failure;
use crate::requests::LoopAddress;

/// The parameters of a page; unknown ones are ignored.
pub(super) type PageQuery = Query<HashMap<String, String>>;

/// The pages of the head, with their addresses and names.
pub(super) const SECTIONS: [(&str, &str, &str); 7] = [
    ("loops", "/", "Loops"),
    ("usage", "/usage", "Usage"),
    ("memory", "/memory", "Memory"),
    ("doctor", "/doctor", "Doctor"),
    ("settings", "/settings", "Settings"),
    ("search", "/search", "Search"),
    ("docs", "/docs", "Docs"),
];

/// The parts that every page has.
pub(super) struct Frame {
    /// The event id after which the page updates itself.
    pub(super) mark: String,
    /// The page's project; empty for a page of all projects.
    pub(super) project: String,
    pub(super) id: String,
    /// The name of the page's icon.
    pub(super) icon: &'static str,
    /// Which of the pages of the head it is; empty for a loop.
    pub(super) section: &'static str,
    /// What the last form did; empty if there was none.
    pub(super) notice: &'static str,
    /// Why the last form did nothing.
    pub(super) refused: Option<RefusedAction>,
}

/// An action that was refused, as the page of its loop shows it.
pub(super) struct RefusedAction {
    pub(super) why: String,
    /// What to type next.
    pub(super) commands: Vec<String>,
    /// The form for a loop that mends it.
    pub(super) start: Option<String>,
}

impl Frame {
    pub(super) fn of_all(state: &AppState) -> Self {
        let (project, id) = (String::new(), String::new());
        Self {
            mark: state.broadcaster.mark(),
            project,
            id,
            icon: "idle",
            section: "",
            notice: "",
            refused: None,
        }
    }

    pub(super) fn of(state: &AppState, place: &LoopAddress) -> Self {
        Self { project: place.project.clone(), id: place.id.clone(), ..Self::of_all(state) }
    }

    /// The same as one of the pages of the head.
    pub(super) fn in_section(self, section: &'static str) -> Self {
        Self { section, ..self }
    }

    /// The same with the notice that the parameters ask for.
    pub(super) fn after(self, Query(asked): &PageQuery) -> Self {
        let notice = asked.get("did").map_or("", |verb| notice(verb));
        Self { notice, ..self }
    }
}

/// What a form did, in a sentence.
fn notice(verb: &str) -> &'static str {
    match verb {
        "pause" => "Asked to pause.",
        "cancel" => "It was asked to stop.",
        "resume" => "It continues.",
        "approve" => "Approved. It finishes now.",
        "answer" => "Sent. The agent gets your answer with its next attempt.",
        "comment" => "Sent. The agent gets your comment with its next attempt.",
        "steer" => "Sent. The agent gets your text with its next attempt.",
        "add" => "Added to the task file.",
        "retry" => "Saved in the task file: the task is tried again.",
        "block" => "Saved in the task file: the plan does not start the task.",
        "take-back" => "Taken back.",
        "tune" => "Saved. The plan continues once no other task needs you.",
        "archive" => "Archived. Its name is free again.",
        "discard" => "Discarded. Its branch is kept for 30 days.",
        "merge" => "Merged into the branch that is checked out.",
        _ => "",
    }
}

/// A page that failed, as a page.
#[derive(Template)]
#[template(path = "failed.html")]
struct FailurePage {
    frame: Frame,
    error: String,
    is_missing: bool,
}

pub(super) fn page(page: &impl Template) -> Response {
    match page.render() {
        Ok(page) => Html(page).into_response(),
        Err(error) => Failure::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

pub(super) fn failed(state: &AppState, failure: &Failure) -> Response {
    let is_missing = failure.status() == StatusCode::NOT_FOUND;
    let error = sentence(&failure.error);
    let shown = page(&FailurePage { frame: Frame::of_all(state), error, is_missing });
    (failure.status(), shown).into_response()
}

/// Renders a page from the result, or from the error.
pub(super) fn shown<T>(
    state: &AppState,
    found: Result<T, Failure>,
    show: impl FnOnce(T) -> Response,
) -> Response {
    match found {
        Ok(found) => show(found),
        Err(failure) => failed(state, &failure),
    }
}
