//! The dashboard: pages that are complete without a script, and update themselves with one. Templates escape every
//! text.

mod act;
mod assets;
mod chart;
mod figures;
mod found;
mod frame;
mod graph;
mod head;
mod list;
mod one;
mod plan;
mod start;
mod text;

use std::sync::Arc;

use axum::routing::{get, post};
use axum::{Router, middleware};

use super::app_state::AppState;
use super::coalesce::{self, Copies};

/// The pages.
pub(super) fn router() -> Router<Arc<AppState>> {
    Router::new()
        .route("/", get(list::show))
        .route("/p/{project}/{id}", get(one::show))
        // What is read anew with the news.
        .layer(middleware::from_fn_with_state(Arc::<Copies>::default(), coalesce::share))
        .route("/start", get(start::show).post(start::start))
        .route("/p/{project}/{id}/diff", get(text::difference))
        .route("/p/{project}/{id}/notes", get(text::notes))
        .route("/p/{project}/{id}/attempts/{attempt}/prompt", get(text::told))
        .route("/p/{project}/{id}/attempts/{attempt}/activity", get(found::show))
        .route("/p/{project}/{id}/attempts/{attempt}/logs/{log}", get(text::log))
        .route("/p/{project}/{id}/{action}", post(act::act))
}

/// The stylesheet and the script: served without authentication.
pub(super) fn assets() -> Router<Arc<AppState>> {
    Router::new().route("/style.css", get(assets::style)).route("/live.js", get(assets::script))
}
