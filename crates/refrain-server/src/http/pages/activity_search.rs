//! The search in an attempt's activity, of any size.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;

use super::frame::{Frame, PageQuery, page, shown};
use crate::http::api::{At, Attempt};
use crate::http::app_state::AppState;
use crate::requests::{Activity, RequestHandler};

#[derive(Template)]
#[template(path = "found.html")]
struct Page {
    frame: Frame,
    back: String,
    attempt: String,
    wanted: String,
    found: Activity,
}

pub(super) async fn show(
    State(state): State<Arc<AppState>>,
    At(of): At<Attempt>,
    asked: PageQuery,
) -> Response {
    let from = asked.get("from").and_then(|from| from.parse().ok());
    let find = asked.get("find").cloned().unwrap_or_default();
    let (place, attempt, wanted) = (of.place(), of.attempt.clone(), find.clone());
    let search = move |handler: &RequestHandler| handler.search(&of.place(), &of.attempt, &find, from);
    let found = state.run_blocking(search).await;
    shown(&state, found, |found| {
        let back = place.path();
        page(&Page { frame: Frame::of(&state, &place), back, attempt, wanted, found })
    })
}
