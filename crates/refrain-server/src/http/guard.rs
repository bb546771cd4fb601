//! Authentication and request checks. Every request passes here first: its host name, its origin if it changes
//! something, its size and pace, and its token.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};

use super::app_state::AppState;
use super::connections::{ConnectionSlot, MOST_OF_ONE};
use super::failure::{Failure, wants_page};
use crate::http::listener::address::Under;

/// How large a request may be, in bytes.
pub(super) const LARGEST: usize = 1 << 20;
/// The same for a client that is not authenticated.
pub(super) const LARGEST_OUTSIDE: usize = 4 << 10;
/// How long it may take to arrive.
const SLOWEST: Duration = Duration::from_secs(20);
/// Only resources from this server, no frame around it, and no inline script or style.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Accepts only requests under a name of this server, against DNS rebinding. A browser that came under a name for
/// programs is redirected to the one for browsers, as it would send its cookie to every server at this one.
pub(super) async fn check_host(
    State(state): State<Arc<AppState>>,
    mut request: Request,
    next: Next,
) -> Response {
    // A browser sends neither, and a proxy in between may take the other one for the name.
    if request.uri().authority().is_some() || request.headers().get_all(header::HOST).iter().nth(1).is_some()
    {
        let error = "the request names more than one host; accepted: a path, and one Host";
        return Failure::new(StatusCode::BAD_REQUEST, error).into_response();
    }
    let said = request.headers().get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    if let Some(under) = state.names.whose(said) {
        if under == Under::Programs && is_browser(&request) {
            let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
            return Redirect::to(&format!("{}{path}", state.names.origin)).into_response();
        }
        request.extensions_mut().insert(under);
        return next.run(request).await;
    }
    let accepted = state.names.accepted();
    Failure::new(
        StatusCode::FORBIDDEN,
        format!("this server is not found under that name; accepted: {accepted}"),
    )
    .into_response()
}

/// Whether it is a request of a browser for a page, or for the login.
fn is_browser(request: &Request) -> bool {
    let is_door = matches!(request.uri().path(), "/login" | "/open");
    let is_program = request.headers().contains_key(header::AUTHORIZATION);
    is_door || (*request.method() == Method::GET && wants_page(request.headers()) && !is_program)
}

/// Reads the whole body, within limits, before the request is handled.
pub(super) async fn take_in(largest: usize, request: Request, next: Next) -> Response {
    if matches!(*request.method(), Method::GET | Method::HEAD) {
        return next.run(request).await;
    }
    let (head, body) = request.into_parts();
    let said = head.headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    let too_large = || {
        let error = format!("the request is too large; accepted: {largest} bytes");
        Failure::new(StatusCode::PAYLOAD_TOO_LARGE, error).into_response()
    };
    if said.is_some_and(|length: usize| length > largest) {
        return too_large();
    }
    match tokio::time::timeout(SLOWEST, to_bytes(body, largest)).await {
        Ok(Ok(bytes)) => next.run(Request::from_parts(head, Body::from(bytes))).await,
        Ok(Err(_)) => too_large(),
        Err(_) => {
            let error = format!("the request took longer than {} s to arrive", SLOWEST.as_secs());
            Failure::new(StatusCode::REQUEST_TIMEOUT, error).into_response()
        }
    }
}

/// Accepts only requests with a token or cookie; a browser is redirected to the login.
pub(super) async fn admit(State(state): State<Arc<AppState>>, request: Request, next: Next) -> Response {
    let headers = request.headers();
    let (token, cookie) = (bearer(headers), cookie(headers, &state.cookie));
    let is_known = match (token, request.extensions().get()) {
        (Some(token), _) => state.knows(token).await,
        (None, Some(Under::People(host))) => match cookie {
            Some(value) => state.knows_cookie(host.clone(), value.to_owned()).await,
            None => false,
        },
        (None, Some(Under::Programs) | None) => false,
    };
    if is_known {
        let slot = request.extensions().get::<Arc<ConnectionSlot>>();
        let has_room = slot.zip(token.or(cookie)).is_none_or(|(slot, pass)| slot.shows(pass));
        return if has_room { next.run(request).await } else { too_many_connections() };
    }
    let is_page = *request.method() == Method::GET && wants_page(headers) && token.is_none();
    if is_page {
        return Redirect::to("/login").into_response();
    }
    if (token.is_some() || cookie.is_some()) && state.was_wrong() {
        return too_many();
    }
    let error = match token {
        Some(_) => "the token is not known here; refrain serve token makes one",
        None => "a token is missing: Authorization: Bearer TOKEN; refrain serve token makes one",
    };
    let mut refused = Failure::new(StatusCode::UNAUTHORIZED, error).into_response();
    refused.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    refused
}

/// Too many wrong tokens.
pub(super) fn too_many() -> Response {
    let mut refused =
        Failure::new(StatusCode::TOO_MANY_REQUESTS, "too many wrong tokens; try again in a minute")
            .into_response();
    refused.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("60"));
    refused
}

fn too_many_connections() -> Response {
    let error = format!("too many connections with this token; accepted: {MOST_OF_ONE} at a time");
    let mut refused = Failure::new(StatusCode::TOO_MANY_REQUESTS, error).into_response();
    refused.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    refused
}

/// The cookie that lets a browser in.
pub(super) fn set_cookie(state: &AppState, value: &str) -> String {
    let secure = if state.names.is_secure() { "; Secure" } else { "" };
    format!("{}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age=2592000{secure}", state.cookie)
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let said = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = said.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let all = headers.get_all(header::COOKIE).iter().filter_map(|cookies| cookies.to_str().ok());
    let mut pairs = all.flat_map(|cookies| cookies.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(found, _)| *found == name).map(|(_, value)| value)
}

/// Sets the security headers of every response.
pub(super) async fn seal(mut response: Response) -> Response {
    let headers = response.headers_mut();
    let fixed = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    // The content is private, and changes.
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}
