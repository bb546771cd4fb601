//! The pages about more than one loop: usage, memories, settings, the checkup, search, and two loops beside each other.

mod compare;
pub(super) mod links;
mod machine;
mod search;
mod usage;

use std::sync::Arc;

use axum::Router;
use axum::routing::get;

use crate::http::app_state::AppState;

pub(super) fn router() -> Router<Arc<AppState>> {
    Router::new()
        .route("/usage", get(usage::show))
        .route("/memory", get(machine::memories))
        .route("/settings", get(machine::settings))
        .route("/doctor", get(machine::checkup))
        .route("/search", get(search::show))
        .route("/compare", get(compare::show))
}
