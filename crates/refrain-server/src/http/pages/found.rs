//! What of an attempt's activity has some words in it, however much activity there was.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Frame, page, shown};
use crate::desk::Activity;
use crate::http::api::{At, Attempt, Wants};
use crate::http::door::Door;

#[derive(Template)]
#[template(path = "found.html")]
struct Page {
    frame: Frame,
    back: String,
    attempt: String,
    wanted: String,
    found: Activity,
}

/// What is looked for, and from which byte on.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Sought {
    #[serde(default)]
    find: String,
    from: Option<u64>,
}

pub(super) async fn show(
    State(door): State<Arc<Door>>,
    At(of): At<Attempt>,
    Wants(Sought { find, from }): Wants<Sought>,
) -> Response {
    let (place, attempt, wanted) = (of.place(), of.attempt.clone(), find.clone());
    let found = door.at_desk(move |desk| desk.search(&of.place(), &of.attempt, &find, from)).await;
    shown(&door, found, |found| {
        let back = format!("/p/{}/{}", place.project, place.id);
        page(&Page { frame: Frame::of(&door, &place), back, attempt, wanted, found })
    })
}
