//! The routes of the API in one table, from which both the router and `openapi.json` are made.

use std::sync::Arc;

use axum::extract::State;
use axum::routing::{MethodRouter, get, post};
use axum::{Json, Router};
use refrain_app::plan::edit_tasks::NamedTask;
use refrain_app::verbs::{AnyStatus, Urgent};
use refrain_core::plan::TaskEdit;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::api::{self, At, JsonBody, JsonResult, Shared, Wants};
use super::app_state::AppState;
use super::openapi;
use crate::requests::{Activity, Difference, LogPart, LoopAddress, ProjectView, Refusal, RequestHandler};

/// The prefix of every path.
pub(super) const BASE: &str = "/api/v1";

/// Makes a schema.
type Make = fn(&mut SchemaGenerator) -> Schema;

/// The type of a response.
pub(super) enum ResponseKind {
    /// JSON of this schema.
    Json(Make),
    /// Text of this type.
    Text(&'static str),
}

/// One thing that can be asked.
pub(super) struct Route {
    pub(super) method: &'static str,
    pub(super) path: String,
    /// Its description, in one line.
    pub(super) says: &'static str,
    /// The parameters of the query string.
    pub(super) query: Option<Make>,
    /// The request body.
    pub(super) body: Option<Make>,
    pub(super) answer: ResponseKind,
    handler: MethodRouter<Arc<AppState>>,
}

fn schema<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// What comes with a request: the fields of its body or of its query string.
trait Input: DeserializeOwned + JsonSchema + Send + Sync + 'static {}
impl<T: DeserializeOwned + JsonSchema + Send + Sync + 'static> Input for T {}

/// What a request is answered with.
trait Output: Serialize + JsonSchema + Send + 'static {}
impl<T: Serialize + JsonSchema + Send + 'static> Output for T {}

/// What the request handler makes of an input.
type Call<B, T> = fn(&RequestHandler, &B) -> Result<T, Refusal>;
/// The same for a loop, which the path names.
type LoopCall<B, T> = fn(&RequestHandler, &LoopAddress, &B) -> Result<T, Refusal>;

impl Route {
    fn get<T: JsonSchema>(
        path: impl Into<String>,
        says: &'static str,
        handler: MethodRouter<Arc<AppState>>,
    ) -> Self {
        let answer = ResponseKind::Json(schema::<T>);
        Self { method: "get", path: path.into(), says, query: None, body: None, answer, handler }
    }

    fn text(
        path: impl Into<String>,
        mime: &'static str,
        says: &'static str,
        handler: MethodRouter<Arc<AppState>>,
    ) -> Self {
        Self { answer: ResponseKind::Text(mime), ..Self::get::<String>(path, says, handler) }
    }

    fn post<B: JsonSchema, T: JsonSchema>(
        path: impl Into<String>,
        says: &'static str,
        handler: MethodRouter<Arc<AppState>>,
    ) -> Self {
        Self { method: "post", body: Some(schema::<B>), ..Self::get::<T>(path, says, handler) }
    }

    fn asks<Q: JsonSchema>(self) -> Self {
        Self { query: Some(schema::<Q>), ..self }
    }

    /// A question whose query string is `Q`.
    fn question<Q: Input, T: Output>(path: &'static str, says: &'static str, call: Call<Q, T>) -> Self {
        let handler = get(async move |State(state): Shared, Wants(asked): Wants<Q>| -> JsonResult<T> {
            state.run_blocking(move |handler| call(handler, &asked)).await.map(Json)
        });
        Self::get::<T>(path, says, handler).asks::<Q>()
    }

    /// A request whose body is `B`.
    fn request<B: Input, T: Output>(path: &'static str, says: &'static str, call: Call<B, T>) -> Self {
        let handler =
            post(async move |State(state): Shared, JsonBody(asked): JsonBody<B>| -> JsonResult<T> {
                state.run_blocking(move |handler| call(handler, &asked)).await.map(Json)
            });
        Self::post::<B, T>(path, says, handler)
    }

    /// Something about one loop.
    fn about<T: Output>(
        what: &'static str,
        says: &'static str,
        call: fn(&RequestHandler, &LoopAddress) -> Result<T, Refusal>,
    ) -> Self {
        let handler = get(async move |State(state): Shared, At(place): At<LoopAddress>| -> JsonResult<T> {
            state.run_blocking(move |handler| call(handler, &place)).await.map(Json)
        });
        Self::get::<T>(format!("{LOOP}{what}"), says, handler)
    }

    /// An action on one loop.
    fn act<B: Input, T: Output>(verb: &'static str, says: &'static str, call: LoopCall<B, T>) -> Self {
        let handler = async move |State(state): Shared,
                                  At(place): At<LoopAddress>,
                                  JsonBody(asked): JsonBody<B>|
                    -> JsonResult<T> {
            state.run_blocking(move |handler| call(handler, &place, &asked)).await.map(Json)
        };
        Self::post::<B, T>(format!("{LOOP}/{verb}"), says, post(handler))
    }
}

/// All routes.
pub(super) fn table() -> Vec<Route> {
    vec![
        Route::get::<serde_json::Value>("/openapi.json", "This description", get(openapi::description)),
        Route::get::<Vec<ProjectView>>("/projects", "The projects that are open", get(api::projects)),
        Route::question("/loops", "Loops and plans, last touched first", RequestHandler::find),
        Route::request("/loops", "Start a loop, with a runner of its own", RequestHandler::start),
        Route::request(
            "/loops/preview",
            "The command line that a start comes to; nothing is started",
            RequestHandler::preview,
        ),
        Route::request("/plans", "Work on the tasks of a plan", RequestHandler::run_plan),
        Route::text("/events", "text/event-stream", "What happens, as it happens", get(api::events))
            .asks::<api::After>(),
        Route::text(
            "/metrics",
            "text/plain; version=0.0.4",
            "What loops cost and how they end, for Prometheus: of all projects, or of the first that is open",
            get(api::metrics),
        ),
        Route::question(
            "/usage",
            "What loops used, how many iterations they took and how they stopped: what refrain usage --json prints",
            RequestHandler::usage,
        ),
        Route::about("", "How a loop, or a plan, stands", RequestHandler::standing),
        Route::text(
            format!("{LOOP}/journal"),
            "application/x-ndjson",
            "The events of its journal: a page, or the last ones",
            get(api::journal),
        )
        .asks::<api::Page>(),
        Route::text(format!("{LOOP}/notes"), "text/markdown", "Its state.md", get(api::notes)),
        Route::about(
            "/report",
            "What was asked, claimed and proved: what refrain report --json prints",
            RequestHandler::report_of,
        ),
        Route::text(
            format!("{LOOP}/export"),
            "text/plain",
            "The loop as another system has it: what refrain export prints",
            get(api::export),
        )
        .asks::<api::Export>(),
        Route::about("/rounds", "The rounds of a plan's tasks, each a loop", RequestHandler::rounds),
        Route::act(
            "verify",
            "Check all that is kept of it to the byte; nothing is changed",
            |it, at, _: &api::EmptyResponse| it.verify(at),
        ),
        Route::get::<Difference>(
            format!("{LOOP}/diff"),
            "What it has changed: so far, or in one iteration",
            get(api::difference),
        )
        .asks::<api::DiffQuery>(),
        Route::text(
            format!("{ATTEMPT}/prompt"),
            "text/markdown",
            "What the agent of an attempt (3, or 3.2) was told",
            get(api::told),
        ),
        Route::get::<LogPart>(
            format!("{ATTEMPT}/logs/{{log}}"),
            "A part of a log: output, errors, critique, gate:NAME or gate:NAME:RUN; the end of it without from",
            get(api::log),
        )
        .asks::<api::Range>(),
        Route::get::<Activity>(
            format!("{ATTEMPT}/activity"),
            "What the agent of an attempt did: the last of it without from, or what of it has some words in it",
            get(api::activity),
        )
        .asks::<api::ActivityQuery>(),
        Route::act("pause", "Stop it for now: after its iteration, or at once", |it, at, how| {
            it.pause(at, *how)
        }),
        Route::act("cancel", "Stop it for good: after its iteration, or at once", |it, at, how| {
            it.cancel(at, *how)
        }),
        Route::act("resume", "Let it go on, with more where that is said", RequestHandler::resume),
        Route::act(
            "approve",
            "Say that what it waits with is good, and let it finish",
            RequestHandler::approve,
        ),
        Route::act("steer", "Tell its agent something with its next iteration", RequestHandler::say),
        Route::act(
            "take-back",
            "Take back a text, a pause or a cancel that has had no effect yet",
            RequestHandler::take_back,
        ),
        Route::act(
            "answer",
            "Answer its agent's question: a loop that has stopped continues with the text",
            RequestHandler::answer,
        ),
        Route::post::<Urgent, AnyStatus>(
            format!("{LOOP}/archive"),
            "Put it aside; its name is free again",
            post(api::archive),
        ),
        Route::act(
            "merge",
            "Merge its work into the branch that is checked out; required gates run on the merged work first",
            |it, at, how| it.merge(at, *how),
        ),
        Route::act(
            "discard",
            "Archive it, and keep its work for 30 days as a reference",
            |it, at, _: &api::EmptyResponse| it.discard(at),
        ),
        Route::act("tune", "Say how a task of a plan continues that waits for that", RequestHandler::tune),
        Route::act("tasks", "Add a task to a plan, at the end of its task file", RequestHandler::add_task),
        Route::act(
            "retry",
            "Try a task of a plan again that was given up or left out",
            |it, at, asked: &NamedTask| it.edit_task(at, &asked.task, TaskEdit::Retry),
        ),
        Route::act(
            "block",
            "Leave a task of a plan out that has not started",
            |it, at, asked: &NamedTask| it.edit_task(at, &asked.task, TaskEdit::Block),
        ),
    ]
}

/// The path of a loop.
const LOOP: &str = "/projects/{project}/loops/{id}";
/// The path of an attempt of a loop.
const ATTEMPT: &str = "/projects/{project}/loops/{id}/attempts/{attempt}";

/// The API.
pub(super) fn router() -> Router<Arc<AppState>> {
    table()
        .into_iter()
        .fold(Router::new(), |router, route| router.route(&format!("{BASE}{}", route.path), route.handler))
}
