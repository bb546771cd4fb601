//! Two loops beside each other.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use refrain_core::text::grouped;
use refrain_core::view::active_by;
use refrain_core::view::diff::diff_files;
use refrain_engine::now;

use super::links::given;
use crate::http::app_state::AppState;
use crate::http::pages::figures::{self, Chart, loop_charts, money};
use crate::http::pages::frame::{Frame, PageQuery, page, shown};
use crate::http::pages::loop_page::{LoopPage, see};
use crate::http::pages::parts::{Label, Strip, agent_name};
use crate::requests::{LoopAddress, OverviewFilter, Refusal, RequestHandler};

#[derive(Template)]
#[template(path = "compare.html")]
struct Page {
    frame: Frame,
    /// What is compared, as `PROJECT/ID`.
    names: [String; 2],
    /// What can be, each with its goal.
    choices: Vec<(String, String)>,
    sides: Vec<Side>,
    rows: Vec<Row>,
}

/// A loop.
struct Side {
    id: String,
    href: String,
    status: Label,
    goal: String,
    strip: Strip,
    chart: Option<Chart>,
}

/// A fact about each.
struct Row {
    name: &'static str,
    values: [String; 2],
    differs: bool,
}

pub(super) async fn show(State(state): State<Arc<AppState>>, asked: PageQuery) -> Response {
    let frame = Frame::of_all(&state);
    let names = ["a", "b"].map(|name| given(&asked, name).unwrap_or_default());
    let wanted = names.clone();
    let found = state.run_blocking(move |handler| look(handler, &wanted)).await;
    shown(&state, found, |(choices, sides, rows)| page(&Page { frame, names, choices, sides, rows }))
}

type Compared = (Vec<(String, String)>, Vec<Side>, Vec<Row>);

fn look(handler: &RequestHandler, names: &[String; 2]) -> Result<Compared, Refusal> {
    let entries = handler.overview(&OverviewFilter::default())?.entries;
    let loops = entries.iter().filter(|entry| entry.facts.tag.is_none());
    let choices =
        loops.map(|entry| (format!("{}/{}", entry.project, entry.brief.id), entry.goal.clone())).collect();
    let [Some(one), Some(other)] = names.each_ref().map(|name| place(name)) else {
        return Ok((choices, Vec::new(), Vec::new()));
    };
    let (one, other) = (side(handler, &one)?, side(handler, &other)?);
    let rows = one.1.into_iter().zip(other.1).map(|((name, left), (_, right))| Row {
        name,
        differs: left != right,
        values: [left, right],
    });
    let rows = rows.collect();
    Ok((choices, vec![one.0, other.0], rows))
}

fn place(name: &str) -> Option<LoopAddress> {
    let (project, id) = name.rsplit_once('/')?;
    Some(LoopAddress { project: project.to_owned(), id: id.to_owned() })
}

/// The names of facts with their values.
type Facts = Vec<(&'static str, String)>;

fn side(handler: &RequestHandler, at: &LoopAddress) -> Result<(Side, Facts), Refusal> {
    let LoopPage { status, goal, .. } = see(handler, at)?;
    let files = diff_files(&handler.difference(at, None)?.diff);
    let (added, removed) = files.iter().fold((0, 0), |sum, it| (sum.0 + it.added, sum.1 + it.removed));
    let usage = &status.usage;
    let took = active_by(now(), status.status, (status.active, status.updated_at));
    let tokens = |count: Option<u64>| count.map_or_else(|| "–".to_owned(), grouped);
    let gates = status.gates.iter().map(|it| format!("{} {}", if it.passed { "✔" } else { "✘" }, it.name));
    let facts = vec![
        ("Result", status.reason.clone()),
        ("Agent", agent_name(&status.agent.to_string()).to_owned()),
        ("Model", status.model.clone().unwrap_or_else(|| "its own choice".to_owned())),
        ("Iterations", status.progress()),
        ("Cost", money(usage.cost_usd, usage.cost_at_least)),
        ("Tokens in", tokens(usage.input_tokens)),
        ("Tokens out", tokens(usage.output_tokens)),
        ("Time", took.to_string()),
        ("Gates", gates.collect::<Vec<_>>().join("  ")),
        ("Changes", format!("{}, +{} −{}", figures::files(files.len()), grouped(added), grouped(removed))),
    ];
    let side = Side {
        id: status.id.to_string(),
        href: at.path(),
        status: Label::of(status.status, status.verified),
        goal,
        strip: Strip::of(status.iterations.as_deref().unwrap_or_default(), !status.has_stopped()),
        chart: loop_charts::cost(&status),
    };
    Ok((side, facts))
}
