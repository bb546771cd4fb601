//! How a browser gets its cookie: by a one-time code, or by a token that the user enters.

use std::sync::Arc;

use askama::Template;
use axum::Extension;
use axum::extract::{Form, State};
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Redirect, Response};
use schemars::JsonSchema;
use serde::Deserialize;

use super::api::Wants;
use super::app_state::AppState;
use super::failure::Failure;
use super::guard::{set_cookie, too_many};
use crate::http::listener::address::Under;

/// The login form.
#[derive(Template)]
#[template(path = "login.html")]
struct Page<'a> {
    wrong: Option<&'a str>,
}

/// A code.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Code {
    #[serde(default)]
    code: String,
}

#[derive(Deserialize)]
pub(super) struct Token {
    #[serde(default)]
    token: String,
}

/// Lets the browser in that has the code, and leads it on, so that no code stays in an address.
pub(super) async fn open(
    State(state): State<Arc<AppState>>,
    Extension(under): Extension<Under>,
    Wants(Code { code }): Wants<Code>,
) -> Response {
    match state.takes(&code) {
        true => let_in(&state, under).await,
        false if state.was_wrong() => too_many(),
        false => page(Some("that link was used already, or is old")),
    }
}

pub(super) async fn show() -> Response {
    page(None)
}

/// Lets the browser in whose person shows a token.
pub(super) async fn login(
    State(state): State<Arc<AppState>>,
    Extension(under): Extension<Under>,
    Form(Token { token }): Form<Token>,
) -> Response {
    if state.knows(token.trim()).await {
        return let_in(&state, under).await;
    }
    if state.was_wrong() { too_many() } else { page(Some("that token is not known here")) }
}

async fn let_in(state: &AppState, under: Under) -> Response {
    let baked = match under {
        Under::People(host) => state.bake(host).await,
        // They are sent on before they come here.
        Under::Programs => None,
    };
    match baked {
        Some(value) => ([(header::SET_COOKIE, set_cookie(state, &value))], Redirect::to("/")).into_response(),
        None => Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "a cookie cannot be kept").into_response(),
    }
}

fn page(wrong: Option<&str>) -> Response {
    let status = if wrong.is_some() { StatusCode::UNAUTHORIZED } else { StatusCode::OK };
    match (Page { wrong }).render() {
        Ok(page) => (status, Html(page)).into_response(),
        Err(error) => Failure::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}
