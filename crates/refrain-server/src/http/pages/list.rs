//! The page of all loops.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use refrain_core::view::{Kind, progress};
use refrain_engine::now;
use serde::Deserialize;

use super::figures::{ago, money};
use super::frame::{Frame, page, shown};
use super::head::Label;
use crate::desk::{Filter, Row, STATUSES};
use crate::http::api::Wants;
use crate::http::app_state::AppState;

#[derive(Template)]
#[template(path = "list.html")]
struct Page {
    frame: Frame,
    text: String,
    status: String,
    words: &'static [&'static str],
    rows: Vec<Shown>,
    more: usize,
    unread: Vec<String>,
}

/// A row, in words.
struct Shown {
    project: String,
    id: String,
    href: String,
    status: Label,
    iterations: String,
    cost: String,
    at: String,
    ago: String,
    folder: String,
    reason: String,
}

/// The fields of the status object that the list entry lacks.
#[derive(Default, Deserialize)]
struct Object {
    #[serde(default)]
    usage: Used,
}

#[derive(Default, Deserialize)]
struct Used {
    #[serde(default)]
    cost_usd: Option<f64>,
    /// Of a plan: its cost is incomplete.
    #[serde(default)]
    at_least: bool,
    #[serde(default)]
    cost_at_least: bool,
}

pub(super) async fn show(State(door): State<Arc<AppState>>, Wants(mut filter): Wants<Filter>) -> Response {
    // A form sends empty fields.
    for said in [&mut filter.status, &mut filter.text, &mut filter.project] {
        *said = said.take().filter(|text| !text.is_empty());
    }
    let frame = Frame::of_all(&door);
    let (text, status) = (filter.text.clone().unwrap_or_default(), filter.status.clone().unwrap_or_default());
    let found = door.at_desk(move |desk| desk.find(&filter)).await;
    shown(&door, found, |found| {
        let rows = found.loops.into_iter().map(row).collect();
        page(&Page { frame, text, status, words: &STATUSES, rows, more: found.more, unread: found.unread })
    })
}

fn row(row: Row) -> Shown {
    let Row { project, object, brief } = row;
    let Object { usage } = serde_json::from_str(object.get()).unwrap_or_default();
    let is_incomplete = if brief.kind == Kind::Plan { usage.at_least } else { usage.cost_at_least };
    Shown {
        href: format!("/p/{project}/{}", brief.id),
        id: brief.id.to_string(),
        status: Label::of(brief.status, brief.verified),
        iterations: progress(brief.iteration, brief.max_iterations),
        cost: money(usage.cost_usd, is_incomplete),
        at: brief.updated_at.to_string(),
        ago: ago(brief.updated_at, now()),
        folder: brief.project.to_string(),
        reason: refrain_core::text::printable(&brief.reason).into_owned(),
        project,
    }
}
