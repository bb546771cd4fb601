//! What is answered where something is not done: one line, and a code that programs can rely on.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;

use crate::desk::{Refusal, RefusalKind};

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
}

impl Failure {
    pub(super) fn new(status: StatusCode, error: impl Into<String>) -> Self {
        let code = match status.as_u16() {
            400 => "bad-request",
            401 => "unauthorized",
            403 => "forbidden",
            404 => "not-found",
            405 => "method-not-allowed",
            408 => "too-slow",
            409 => "conflict",
            413 => "too-large",
            429 => "too-many",
            _ => "failed",
        };
        Self { error: error.into(), code, status }
    }

    pub(super) fn status(&self) -> StatusCode {
        self.status
    }

    /// Nothing is there.
    pub(super) fn nothing() -> Self {
        Self::new(StatusCode::NOT_FOUND, "nothing is there; /api/v1/openapi.json lists what is")
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
        Self::new(status, refusal.to_string().replace("; loop_list shows what there is", ""))
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        (self.status, Json(self)).into_response()
    }
}
