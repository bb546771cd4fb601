//! How a browser comes by its cookie: by a code that is good once, or by a token that the person shows.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Form, State};
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Redirect, Response};
use serde::Deserialize;

use super::api::Wants;
use super::door::Door;
use super::failure::Failure;
use super::guard::{set_cookie, too_many};

/// Where a token is shown.
#[derive(Template)]
#[template(path = "login.html")]
struct Page<'a> {
    wrong: Option<&'a str>,
}

/// A code.
#[derive(Deserialize)]
pub(super) struct Code {
    #[serde(default)]
    code: String,
}

/// A token.
#[derive(Deserialize)]
pub(super) struct Token {
    #[serde(default)]
    token: String,
}

/// Lets the browser in that has the code, and leads it on, so that no code stays in an address.
pub(super) async fn open(State(door): State<Arc<Door>>, Wants(Code { code }): Wants<Code>) -> Response {
    match door.exchange(&code).await {
        Some(token) => let_in(&door, &token),
        None if door.was_wrong() => too_many(),
        None => page(Some("that link was used already, or is old")),
    }
}

pub(super) async fn show() -> Response {
    page(None)
}

/// Lets the browser in whose person shows a token.
pub(super) async fn login(State(door): State<Arc<Door>>, Form(Token { token }): Form<Token>) -> Response {
    let token = token.trim();
    if door.knows(token).await {
        return match door.give_token().await {
            Some(own) => let_in(&door, &own),
            None => Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "a token cannot be kept").into_response(),
        };
    }
    if door.was_wrong() { too_many() } else { page(Some("that token is not known here")) }
}

fn let_in(door: &Door, token: &str) -> Response {
    ([(header::SET_COOKIE, set_cookie(door, token))], Redirect::to("/")).into_response()
}

fn page(wrong: Option<&str>) -> Response {
    let status = if wrong.is_some() { StatusCode::UNAUTHORIZED } else { StatusCode::OK };
    match (Page { wrong }).render() {
        Ok(page) => (status, Html(page)).into_response(),
        Err(error) => Failure::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}
