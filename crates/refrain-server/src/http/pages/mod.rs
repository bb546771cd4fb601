//! What a person sees: pages that are whole without a script, and keep themselves as things are with one. Everything in them is
//! escaped when it is put there.

mod act;
mod assets;
mod chart;
mod found;
mod graph;
mod list;
mod one;
mod plan;
mod start;
mod text;

use std::sync::Arc;

use askama::Template;
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Router, middleware};
use jiff::Timestamp;
use refrain_core::spec::Millis;
use refrain_core::view::sum;

use super::copies;
use super::door::Door;
use super::failure::Failure;
use crate::desk::Place;

/// The pages.
pub(super) fn router(door: &Arc<Door>) -> Router<Arc<Door>> {
    Router::new()
        .route("/", get(list::show))
        .route("/p/{project}/{id}", get(one::show))
        // What is read anew with the news.
        .layer(middleware::from_fn_with_state(Arc::clone(door), copies::share))
        .route("/start", get(start::show).post(start::start))
        .route("/p/{project}/{id}/diff", get(text::difference))
        .route("/p/{project}/{id}/notes", get(text::notes))
        .route("/p/{project}/{id}/attempts/{attempt}/prompt", get(text::told))
        .route("/p/{project}/{id}/attempts/{attempt}/activity", get(found::show))
        .route("/p/{project}/{id}/attempts/{attempt}/logs/{log}", get(text::log))
        .route("/p/{project}/{id}/{action}", post(act::act))
}

/// The stylesheet and the script, which are nobody's secret.
pub(super) fn assets() -> Router<Arc<Door>> {
    Router::new().route("/style.css", get(assets::style)).route("/live.js", get(assets::script))
}

/// What every page has.
struct Frame {
    /// Behind which event it is to be kept as things are.
    mark: String,
    /// Whose page it is; empty where it is of all.
    project: String,
    id: String,
}

impl Frame {
    fn of_all(door: &Door) -> Self {
        Self { mark: door.hub.mark(), project: String::new(), id: String::new() }
    }

    fn of(door: &Door, place: &Place) -> Self {
        Self { mark: door.hub.mark(), project: place.project.clone(), id: place.id.clone() }
    }
}

/// How a loop, or a plan, stands, and what can be done with it.
struct Head {
    id: String,
    status: &'static str,
    reason: String,
    needs: String,
    /// Of a task of a plan: the plan, and the task in words.
    task: Option<(String, String)>,
    progress: Option<Progress>,
    facts: Vec<(&'static str, String)>,
    /// The tree that waits for approval, where one does; empty where it has no name.
    approves: Option<String>,
    can_stop: bool,
    can_cancel: bool,
    can_resume: bool,
    can_steer: bool,
    can_archive: bool,
}

/// How far it is.
struct Progress {
    label: &'static str,
    done: u64,
    /// None where there is no end to it.
    most: Option<u64>,
    says: String,
}

/// A page that failed, as a page.
#[derive(Template)]
#[template(path = "failed.html")]
struct Failed {
    frame: Frame,
    error: String,
}

fn page(page: &impl Template) -> Response {
    match page.render() {
        Ok(page) => Html(page).into_response(),
        Err(error) => Failure::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

fn failed(door: &Door, failure: &Failure) -> Response {
    let shown = page(&Failed { frame: Frame::of_all(door), error: failure.error.clone() });
    (failure.status(), shown).into_response()
}

/// Makes a page of what was found, or of why it was not.
fn shown<T>(door: &Door, found: Result<T, Failure>, show: impl FnOnce(T) -> Response) -> Response {
    match found {
        Ok(found) => show(found),
        Err(failure) => failed(door, &failure),
    }
}

/// When it was: to the second, and how long ago.
fn at(then: Timestamp, now: Timestamp) -> String {
    format!("{} ({})", then.strftime("%Y-%m-%d %H:%M:%S UTC"), ago(then, now))
}

fn ago(then: Timestamp, now: Timestamp) -> String {
    format!("{} ago", Millis::from(now.duration_since(then).unsigned_abs()))
}

fn money(usd: Option<f64>, at_least: bool) -> String {
    usd.map_or_else(|| "–".to_owned(), |usd| sum(&format!("${usd:.2}"), at_least))
}
