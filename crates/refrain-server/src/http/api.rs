//! The parts of a request as the API's routes read them, and the handlers of the routes that are more than one call
//! of the request handler.

use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use refrain_app::verbs::AnyStatus;
use refrain_core::text::{clip, printable};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::app_state::AppState;
use super::failure::Failure;
use super::parameters::{of_body, of_query};
use crate::http::listener::stop::Stop;
use crate::requests::{Activity, Difference, LogPart, LoopAddress, ProjectView, Refusal};

pub(super) type Shared = State<Arc<AppState>>;
pub(super) type JsonResult<T> = Result<Json<T>, Failure>;

/// A page of a journal.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Page {
    /// The first event, by its number [default: the last ones].
    from: Option<u64>,
    /// How many, at most 1000 [default: 100].
    limit: Option<usize>,
}

/// A part of a log.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Range {
    /// The first byte [default: the end of the log].
    from: Option<u64>,
    /// How many bytes, at most 1048576 [default: 65536].
    limit: Option<u64>,
}

/// Which changes of a loop.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DiffQuery {
    /// Only what this iteration changed [default: all changes so far].
    #[schemars(range(min = 1))]
    iteration: Option<u32>,
}

/// As whose a loop is exported.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Export {
    /// json (the default), synthex, descartes, ralph or randroid.
    format: Option<String>,
}

/// Nothing needs to be said.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EmptyResponse {}

/// A part of what an agent did, or what of it has some words in it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ActivityQuery {
    /// The first byte [default: the end of the stream; with find, its beginning].
    pub(super) from: Option<u64>,
    /// How many bytes, at most 1048576 [default: 65536]. Left out with find.
    pub(super) limit: Option<u64>,
    /// Only what has this in it, in whatever case: at most some 200 lines; next is where to look on.
    pub(super) find: Option<String>,
}

/// A search result has its own limit.
pub(super) fn unlimited(limit: Option<u64>) -> Result<(), Refusal> {
    match limit {
        Some(_) => Err(Refusal::new("limit: accepted: none beside find")),
        None => Ok(()),
    }
}

/// Where a listener left off.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct After {
    /// The id of the last event that was heard, as the header Last-Event-ID says it too.
    after: Option<String>,
}

/// What stands in the path.
pub(super) struct At<T>(pub(super) T);

impl<T: DeserializeOwned + Send> FromRequestParts<Arc<AppState>> for At<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &Arc<AppState>) -> Result<Self, Failure> {
        let Path(found) =
            Path::<T>::from_request_parts(parts, state).await.map_err(|_| bad("the path is no UTF-8"))?;
        Ok(Self(found))
    }
}

/// The parameters of the query string.
pub(super) struct Wants<T>(pub(super) T);

impl<T: DeserializeOwned + JsonSchema + Send> FromRequestParts<Arc<AppState>> for Wants<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<AppState>) -> Result<Self, Failure> {
        let said = Query::try_from_uri(&parts.uri).map_err(|_| bad("what stands after ? is no UTF-8"))?;
        of_query(said.0).map(Self).map_err(|error| bad(&error))
    }
}

/// What was sent: a JSON object, or nothing where nothing needs to be said.
pub(super) struct JsonBody<T>(pub(super) T);

impl<T: DeserializeOwned + JsonSchema + Send> FromRequest<Arc<AppState>> for JsonBody<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, state: &Arc<AppState>) -> Result<Self, Failure> {
        let bytes = Bytes::from_request(request, state).await.map_err(|_| bad("the body broke off"))?;
        of_body(&bytes).map(Self).map_err(|error| bad(&error))
    }
}

fn bad(error: &str) -> Failure {
    let line = printable(error).split_whitespace().collect::<Vec<_>>().join(" ");
    Failure::new(StatusCode::BAD_REQUEST, clip(&line, 500))
}

pub(super) async fn projects(State(state): Shared) -> JsonResult<Vec<ProjectView>> {
    state.run_blocking(|handler| Ok(handler.projects())).await.map(Json)
}

pub(super) async fn events(
    State(state): Shared,
    axum::Extension(stop): axum::Extension<Stop>,
    headers: HeaderMap,
    Wants(After { after }): Wants<After>,
) -> Response {
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()).map(str::to_owned);
    state.broadcaster.listen(last.or(after), stop).await
}

pub(super) async fn metrics(State(state): Shared) -> Result<impl IntoResponse, Failure> {
    let text = state.run_blocking(|handler| handler.metrics()).await?;
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text))
}

pub(super) async fn journal(
    State(state): Shared,
    At(place): At<LoopAddress>,
    Wants(page): Wants<Page>,
) -> Result<Response, Failure> {
    let lines = state.run_blocking(move |handler| handler.journal(&place, page.from, page.limit)).await?;
    Ok(text("application/x-ndjson", lines))
}

pub(super) async fn notes(State(state): Shared, At(place): At<LoopAddress>) -> Result<Response, Failure> {
    Ok(text(MARKDOWN, state.run_blocking(move |handler| handler.notes(&place)).await?))
}

pub(super) async fn export(
    State(state): Shared,
    At(place): At<LoopAddress>,
    Wants(Export { format }): Wants<Export>,
) -> Result<Response, Failure> {
    let exported = state.run_blocking(move |handler| handler.export(&place, format.as_deref())).await?;
    Ok(text("text/plain; charset=utf-8", exported))
}

pub(super) async fn difference(
    State(state): Shared,
    At(place): At<LoopAddress>,
    Wants(DiffQuery { iteration }): Wants<DiffQuery>,
) -> JsonResult<Difference> {
    state.run_blocking(move |handler| handler.difference(&place, iteration)).await.map(Json)
}

/// An attempt of a loop, and which of its logs.
#[derive(Debug, Deserialize)]
pub(super) struct Attempt {
    project: String,
    id: String,
    pub(super) attempt: String,
    #[serde(default)]
    pub(super) log: String,
}

impl Attempt {
    pub(super) fn place(&self) -> LoopAddress {
        LoopAddress { project: self.project.clone(), id: self.id.clone() }
    }
}

pub(super) async fn told(State(state): Shared, At(of): At<Attempt>) -> Result<Response, Failure> {
    Ok(text(MARKDOWN, state.run_blocking(move |handler| handler.told(&of.place(), &of.attempt)).await?))
}

pub(super) async fn log(
    State(state): Shared,
    At(of): At<Attempt>,
    Wants(range): Wants<Range>,
) -> JsonResult<LogPart> {
    let read = state.run_blocking(move |handler| {
        handler.log(&of.place(), (&of.attempt, &of.log), range.from, range.limit)
    });
    read.await.map(Json)
}

pub(super) async fn activity(
    State(state): Shared,
    At(of): At<Attempt>,
    Wants(ActivityQuery { from, limit, find }): Wants<ActivityQuery>,
) -> JsonResult<Activity> {
    let read = state.run_blocking(move |handler| match find {
        Some(find) => {
            unlimited(limit)?;
            handler.search(&of.place(), &of.attempt, &find, from)
        }
        None => handler.activity(&of.place(), &of.attempt, from, limit),
    });
    read.await.map(Json)
}

pub(super) async fn archive(State(state): Shared, At(place): At<LoopAddress>) -> JsonResult<AnyStatus> {
    state.run_blocking(move |handler| handler.archive(&place)).await.map(Json)
}

/// The type of Markdown, which no browser makes anything of.
const MARKDOWN: &str = "text/markdown; charset=utf-8";

fn text(mime: &'static str, text: String) -> Response {
    ([(header::CONTENT_TYPE, mime)], text).into_response()
}
