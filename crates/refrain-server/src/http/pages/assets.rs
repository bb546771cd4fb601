//! The stylesheet and the script: embedded in the program, and cached by browsers until they change.

use axum::extract::Path;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};

pub(super) async fn style(headers: HeaderMap) -> Response {
    asset(&headers, "text/css; charset=utf-8", include_str!("../../../templates/style.css"))
}

pub(super) async fn script(headers: HeaderMap) -> Response {
    asset(&headers, "text/javascript; charset=utf-8", include_str!("../../../templates/live.js"))
}

/// The icon of a page, in the colour of what it shows.
pub(super) async fn icon(Path(name): Path<String>) -> Response {
    let colour = match name.as_str() {
        "needs-you" => "#c2410c",
        "running" => "#3b5bdb",
        "verified" => "#15803d",
        _ => "#64748b",
    };
    let svg = include_str!("../../../templates/icon.svg").replace("currentColor", colour);
    ([(header::CONTENT_TYPE, "image/svg+xml"), (header::CACHE_CONTROL, "max-age=86400")], svg).into_response()
}

fn asset(headers: &HeaderMap, mime: &'static str, text: &'static str) -> Response {
    let tag = format!("\"{}\"", &blake3::hash(text.as_bytes()).to_hex()[..16]);
    let is_known = headers.get(header::IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes());
    let fixed = [(header::ETAG, tag.as_str()), (header::CACHE_CONTROL, "no-cache")];
    match is_known {
        true => (StatusCode::NOT_MODIFIED, fixed).into_response(),
        false => (fixed, [(header::CONTENT_TYPE, mime)], text).into_response(),
    }
}
