//! The dashboard: pages that are complete without a script, and update themselves with one. Templates escape every
//! text.

mod activity_search;
mod assets;
mod book;
#[cfg(debug_assertions)]
mod design;
mod figures;
mod forms;
mod frame;
mod head;
mod list;
mod loop_page;
mod overall;
mod parts;
mod plan;
mod start;
mod tabs;
mod text;

use std::sync::Arc;

use axum::routing::get;
use axum::{Router, middleware};

use super::app_state::AppState;
use super::coalesce::{self, Copies};

/// The pages.
pub(super) fn router() -> Router<Arc<AppState>> {
    let router = Router::new()
        .route("/", get(list::show))
        .route("/p/{project}/{id}", get(loop_page::show))
        // What is read anew with the news.
        .layer(middleware::from_fn_with_state(Arc::<Copies>::default(), coalesce::share))
        .route("/start", get(start::show).post(start::start))
        .route("/docs", get(book::index))
        .route("/docs/{topic}", get(book::show))
        .route("/p/{project}/{id}/diff", get(tabs::changes))
        .route("/p/{project}/{id}/gates", get(tabs::gates))
        .route("/p/{project}/{id}/prompt", get(tabs::prompt))
        .route("/p/{project}/{id}/report", get(tabs::report))
        .merge(overall::router())
        .route("/p/{project}/{id}/notes", get(text::notes))
        .route("/p/{project}/{id}/attempts/{attempt}/prompt", get(text::told))
        .route("/p/{project}/{id}/attempts/{attempt}/activity", get(activity_search::show))
        .route("/p/{project}/{id}/attempts/{attempt}/logs/{log}", get(text::log))
        .route("/p/{project}/{id}/{action}", get(forms::ask).post(forms::act));
    #[cfg(debug_assertions)]
    let router = router.route("/_design", get(design::show));
    router
}

/// The stylesheet and the script: served without authentication.
pub(super) fn assets() -> Router<Arc<AppState>> {
    Router::new()
        .route("/style.css", get(assets::style))
        .route("/live.js", get(assets::script))
        .route("/icon/{name}", get(assets::icon))
}
