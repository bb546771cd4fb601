//! The stylesheet and the script: embedded in the program, and cached by browsers until they change.

use axum::extract::Path;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};

const STYLE: &str = include_str!("../../../templates/style.css");
const SCRIPT: &str = include_str!("../../../templates/live.js");
const ICON: &str = include_str!("../../../templates/icon.svg");

pub(super) async fn style(headers: HeaderMap) -> Response {
    asset(&headers, "text/css; charset=utf-8", STYLE)
}

pub(super) async fn script(headers: HeaderMap) -> Response {
    asset(&headers, "text/javascript; charset=utf-8", SCRIPT)
}

/// The icon of a page, in the colour of what it shows.
pub(super) async fn icon(Path(name): Path<String>) -> Response {
    let colour = match name.as_str() {
        "needs-you" => "#c2410c",
        "running" => "#3b5bdb",
        "verified" => "#15803d",
        _ => "#64748b",
    };
    let svg = ICON.replace("currentColor", colour);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_loads_at_most_60_kb_beside_a_page() {
        let size = [STYLE, SCRIPT, ICON].map(str::len).iter().sum::<usize>();
        assert!(size <= 60_000, "{size} bytes");
    }
}
