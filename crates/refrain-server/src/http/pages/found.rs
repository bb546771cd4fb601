//! What of an attempt's activity has some words in it, however much activity there was.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;

use super::text::Attempt;
use super::{Frame, page, shown};
use crate::desk::Activity;
use crate::http::api::{At, Wants};
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
#[derive(Deserialize)]
pub(super) struct Asked {
    #[serde(default)]
    find: String,
    from: Option<u64>,
}

pub(super) async fn show(
    State(door): State<Arc<Door>>,
    At(of): At<Attempt>,
    Wants(Asked { find, from }): Wants<Asked>,
) -> Response {
    let (place, attempt, wanted) = (of.place(), of.attempt.clone(), find.clone());
    let found = door.at_desk(move |desk| desk.search(&of.place(), &of.attempt, &find, from)).await;
    shown(&door, found, |found| {
        let back = format!("/p/{}/{}", place.project, place.id);
        page(&Page { frame: Frame::of(&door, &place), back, attempt, wanted, found })
    })
}
