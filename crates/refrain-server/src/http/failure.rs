//! Error responses: one line, and a code that programs can rely on; a page for clients that accept HTML.

use askama::Template;
use axum::Json;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{Html, IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;

use crate::requests::{Refusal, RefusalKind};

/// What failed, on what, and what to do next.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct Failure {
    /// In one line.
    pub(super) error: String,
    /// Which kind: the same for all failures of a status.
    pub(super) code: &'static str,
    #[serde(skip)]
    #[schemars(skip)]
    status: StatusCode,
    /// The parameter that it is about, if it names one.
    #[serde(skip)]
    #[schemars(skip)]
    pub(super) parameter: Option<&'static str>,
    /// The error without what to type next, and what to type next.
    #[serde(skip)]
    #[schemars(skip)]
    pub(super) apart: (String, Vec<String>),
    /// The error with the labels of the start form.
    #[serde(skip)]
    #[schemars(skip)]
    pub(super) on_form: String,
}

/// A failure, as a page.
#[derive(Template)]
#[template(path = "refused.html")]
struct Page<'a> {
    error: &'a str,
}

/// The statuses of failures with their codes; every other one is an internal error.
pub(super) const CODES: [(u16, &str); 12] = [
    (400, "bad-request"),
    (401, "unauthorized"),
    (403, "forbidden"),
    (404, "not-found"),
    (405, "method-not-allowed"),
    (406, "not-acceptable"),
    (408, "too-slow"),
    (409, "conflict"),
    (413, "too-large"),
    (415, "unsupported-type"),
    (429, "too-many"),
    (500, "failed"),
];

impl Failure {
    pub(super) fn new(status: StatusCode, error: impl Into<String>) -> Self {
        let code = CODES.iter().find(|(known, _)| *known == status.as_u16());
        let code = code.map_or("failed", |(_, code)| code);
        let error = error.into();
        let apart = (error.clone(), Vec::new());
        Self { on_form: error.clone(), apart, error, code, status, parameter: None }
    }

    pub(super) fn status(&self) -> StatusCode {
        self.status
    }

    pub(super) fn nothing() -> Self {
        Self::new(StatusCode::NOT_FOUND, "nothing is there; /api/v1/openapi.json lists what is")
    }

    /// An error of a library, in Refrain's words.
    fn of_library(status: StatusCode, is_tools: bool) -> Self {
        let error = match status {
            StatusCode::NOT_FOUND if is_tools => {
                "the session is not known here; begin another with initialize"
            }
            StatusCode::NOT_FOUND => return Self::nothing(),
            StatusCode::METHOD_NOT_ALLOWED => "that method is not accepted here; Allow says which are",
            StatusCode::NOT_ACCEPTABLE => "accepted: Accept: application/json, text/event-stream",
            StatusCode::UNSUPPORTED_MEDIA_TYPE if is_tools => "accepted: Content-Type: application/json",
            StatusCode::UNSUPPORTED_MEDIA_TYPE => "accepted: Content-Type: application/x-www-form-urlencoded",
            StatusCode::PAYLOAD_TOO_LARGE => "the request is too large",
            _ if status.is_server_error() => "refrain broke off in the middle of this",
            _ if is_tools => "what was sent is no message of the protocol, or its session is missing",
            _ => {
                return Self::new(
                    StatusCode::BAD_REQUEST,
                    "the form cannot be read: accepted: each field once, in UTF-8",
                );
            }
        };
        Self::new(status, error)
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        let status = match refusal.kind() {
            RefusalKind::Asked => StatusCode::BAD_REQUEST,
            RefusalKind::NotFound => StatusCode::NOT_FOUND,
            RefusalKind::Conflict => StatusCode::CONFLICT,
            RefusalKind::Failed => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let error = refusal.without_tools();
        let apart = (refusal.text().to_owned(), refusal.commands().to_vec());
        Self { parameter: refusal.parameter(), on_form: refusal.on_form(), apart, ..Self::new(status, error) }
    }
}

impl IntoResponse for Failure {
    /// A JSON response; [`speak`] turns it into a page if one is wanted.
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(&self)).into_response();
        response.extensions_mut().insert(self);
        response
    }
}

/// Nothing is done by that method.
pub(super) async fn no_method(method: Method) -> Failure {
    Failure::new(StatusCode::METHOD_NOT_ALLOWED, format!("{method} is not accepted here; Allow says what is"))
}

pub(super) fn wants_page(headers: &HeaderMap) -> bool {
    let accepts = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    accepts.is_some_and(|accepts| accepts.contains("text/html"))
}

/// Renders every error, also those of other layers: a page for browsers, JSON for programs.
pub(super) async fn speak(request: Request, next: Next) -> Response {
    let wants_page = wants_page(request.headers());
    let is_tools = request.uri().path().starts_with("/mcp");
    let response = next.run(request).await;
    let status = response.status();
    if !(status.is_client_error() || status.is_server_error()) {
        return response;
    }
    let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let is_said =
        kind.is_some_and(|kind| kind.starts_with("text/html") || kind.starts_with("application/json"));
    let failure = match response.extensions().get::<Failure>() {
        Some(failure) => failure.clone(),
        // It is a page already, or a message of the protocol of tools.
        None if is_said => return response,
        None => Failure::of_library(status, is_tools),
    };
    let said = match (Page { error: &failure.error }).render() {
        Ok(page) if wants_page => Html(page).into_response(),
        Ok(_) | Err(_) => Json(&failure).into_response(),
    };
    // Keep the headers: when to retry, which methods are allowed.
    let (mut parts, _) = response.into_parts();
    parts.status = failure.status;
    parts.headers.remove(header::CONTENT_LENGTH);
    let (as_is, body): (_, Body) = said.into_parts();
    parts.headers.extend(as_is.headers);
    Response::from_parts(parts, body)
}
