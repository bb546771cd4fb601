//! The routes of the API in one table, from which both the router and `openapi.json` are made.

use std::sync::Arc;

use axum::Router;
use axum::routing::{MethodRouter, get, post};
use refrain_app::plan::edit_tasks::{AddTask, NamedTask};
use refrain_app::plan::tune::Tune;
use refrain_app::remote::{PlanRun, Start};
use refrain_app::verbs::approve::Approve;
use refrain_app::verbs::merge::Merge;
use refrain_app::verbs::resume::Resume;
use refrain_app::verbs::steer::Steering;
use refrain_app::verbs::take_back::TakeBack;
use refrain_app::verbs::{AnyStatus, Urgent};
use refrain_core::view::usage::Report;
use schemars::{JsonSchema, Schema, SchemaGenerator};

use super::app_state::AppState;
use super::{api, openapi};
use crate::requests::{
    Activity, Difference, DiscardSummary, Filter, LogPart, MergeSummary, ProjectView, Round, SearchPage,
    StartResult, UsageOf, VerifyResult,
};

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
    pub(super) path: &'static str,
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

impl Route {
    fn get<T: JsonSchema>(
        path: &'static str,
        says: &'static str,
        handler: MethodRouter<Arc<AppState>>,
    ) -> Self {
        let answer = ResponseKind::Json(schema::<T>);
        Self { method: "get", path, says, query: None, body: None, answer, handler }
    }

    fn text(
        path: &'static str,
        mime: &'static str,
        says: &'static str,
        handler: MethodRouter<Arc<AppState>>,
    ) -> Self {
        Self { method: "get", path, says, query: None, body: None, answer: ResponseKind::Text(mime), handler }
    }

    fn post<B: JsonSchema, T: JsonSchema>(
        path: &'static str,
        says: &'static str,
        handler: MethodRouter<Arc<AppState>>,
    ) -> Self {
        Self { method: "post", body: Some(schema::<B>), ..Self::get::<T>(path, says, handler) }
    }

    fn asks<Q: JsonSchema>(self) -> Self {
        Self { query: Some(schema::<Q>), ..self }
    }
}

/// All routes.
pub(super) fn table() -> Vec<Route> {
    vec![
        Route::get::<serde_json::Value>("/openapi.json", "This description", get(openapi::description)),
        Route::get::<Vec<ProjectView>>("/projects", "The projects that are open", get(api::projects)),
        Route::get::<SearchPage>("/loops", "Loops and plans, last touched first", get(api::find)).asks::<Filter>(),
        Route::post::<Start, StartResult>("/loops", "Start a loop, with a runner of its own", post(api::start)),
        Route::post::<Start, Vec<String>>(
            "/loops/preview",
            "The command line that a start comes to; nothing is started",
            post(api::preview),
        ),
        Route::post::<PlanRun, StartResult>("/plans", "Work on the tasks of a plan", post(api::run_plan)),
        Route::text("/events", "text/event-stream", "What happens, as it happens", get(api::events))
            .asks::<api::After>(),
        Route::text(
            "/metrics",
            "text/plain; version=0.0.4",
            "What loops cost and how they end, for Prometheus: of all projects, or of the first that is open",
            get(api::metrics),
        ),
        Route::get::<Report>(
            "/usage",
            "What loops used, how many iterations they took and how they stopped: what refrain usage --json prints",
            get(api::usage),
        )
        .asks::<UsageOf>(),
        Route::get::<AnyStatus>(LOOP, "How a loop, or a plan, stands", get(api::standing)),
        Route::text(
            "/projects/{project}/loops/{id}/journal",
            "application/x-ndjson",
            "The events of its journal: a page, or the last ones",
            get(api::journal),
        )
        .asks::<api::Page>(),
        Route::text("/projects/{project}/loops/{id}/notes", "text/markdown", "Its state.md", get(api::notes)),
        Route::get::<serde_json::Value>(
            "/projects/{project}/loops/{id}/report",
            "What was asked, claimed and proved: what refrain report --json prints",
            get(api::report),
        ),
        Route::text(
            "/projects/{project}/loops/{id}/export",
            "text/plain",
            "The loop as another system has it: what refrain export prints",
            get(api::export),
        )
        .asks::<api::Export>(),
        Route::get::<Vec<Round>>(
            "/projects/{project}/loops/{id}/rounds",
            "The rounds of a plan's tasks, each a loop",
            get(api::rounds),
        ),
        Route::post::<api::EmptyResponse, VerifyResult>(
            "/projects/{project}/loops/{id}/verify",
            "Check all that is kept of it to the byte; nothing is changed",
            post(api::verify),
        ),
        Route::get::<Difference>(
            "/projects/{project}/loops/{id}/diff",
            "What it has changed: so far, or in one iteration",
            get(api::difference),
        )
        .asks::<api::DiffQuery>(),
        Route::text(
            "/projects/{project}/loops/{id}/attempts/{attempt}/prompt",
            "text/markdown",
            "What the agent of an attempt (3, or 3.2) was told",
            get(api::told),
        ),
        Route::get::<LogPart>(
            "/projects/{project}/loops/{id}/attempts/{attempt}/logs/{log}",
            "A part of a log: output, errors, critique, gate:NAME or gate:NAME:RUN; the end of it without from",
            get(api::log),
        )
        .asks::<api::Range>(),
        Route::get::<Activity>(
            "/projects/{project}/loops/{id}/attempts/{attempt}/activity",
            "What the agent of an attempt did: the last of it without from, or what of it has some words in it",
            get(api::activity),
        )
        .asks::<api::ActivityQuery>(),
        Route::post::<Urgent, AnyStatus>(
            "/projects/{project}/loops/{id}/pause",
            "Stop it for now: after its iteration, or at once",
            post(api::pause),
        ),
        Route::post::<Urgent, AnyStatus>(
            "/projects/{project}/loops/{id}/cancel",
            "Stop it for good: after its iteration, or at once",
            post(api::cancel),
        ),
        Route::post::<Resume, AnyStatus>(
            "/projects/{project}/loops/{id}/resume",
            "Let it go on, with more where that is said",
            post(api::resume),
        ),
        Route::post::<Approve, AnyStatus>(
            "/projects/{project}/loops/{id}/approve",
            "Say that what it waits with is good, and let it finish",
            post(api::approve),
        ),
        Route::post::<Steering, AnyStatus>(
            "/projects/{project}/loops/{id}/steer",
            "Tell its agent something with its next iteration",
            post(api::steer),
        ),
        Route::post::<TakeBack, AnyStatus>(
            "/projects/{project}/loops/{id}/take-back",
            "Take back a text, a pause or a cancel that has had no effect yet",
            post(api::take_back),
        ),
        Route::post::<Steering, AnyStatus>(
            "/projects/{project}/loops/{id}/answer",
            "Answer its agent's question: a loop that has stopped continues with the text",
            post(api::answer),
        ),
        Route::post::<Urgent, AnyStatus>(
            "/projects/{project}/loops/{id}/archive",
            "Put it aside; its name is free again",
            post(api::archive),
        ),
        Route::post::<Merge, MergeSummary>(
            "/projects/{project}/loops/{id}/merge",
            "Merge its work into the branch that is checked out; required gates run on the merged work first",
            post(api::merge),
        ),
        Route::post::<api::EmptyResponse, DiscardSummary>(
            "/projects/{project}/loops/{id}/discard",
            "Archive it, and keep its work for 30 days as a reference",
            post(api::discard),
        ),
        Route::post::<Tune, AnyStatus>(
            "/projects/{project}/loops/{id}/tune",
            "Say how a task of a plan continues that waits for that",
            post(api::tune),
        ),
        Route::post::<AddTask, AnyStatus>(
            "/projects/{project}/loops/{id}/tasks",
            "Add a task to a plan, at the end of its task file",
            post(api::add_task),
        ),
        Route::post::<NamedTask, AnyStatus>(
            "/projects/{project}/loops/{id}/retry",
            "Try a task of a plan again that was given up or left out",
            post(api::retry_task),
        ),
        Route::post::<NamedTask, AnyStatus>(
            "/projects/{project}/loops/{id}/block",
            "Leave a task of a plan out that has not started",
            post(api::block_task),
        ),
    ]
}

/// The path of a loop.
const LOOP: &str = "/projects/{project}/loops/{id}";

/// The API.
pub(super) fn router() -> Router<Arc<AppState>> {
    table()
        .into_iter()
        .fold(Router::new(), |router, route| router.route(&format!("{BASE}{}", route.path), route.handler))
}
