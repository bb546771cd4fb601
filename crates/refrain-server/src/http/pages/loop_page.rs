//! The page of one loop, with the activity of an iteration; a plan has a page of its own kind.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use refrain_app::verbs::AnyStatus;
use refrain_core::fingerprint::failing_tests;
use refrain_core::spec::Millis;
use refrain_core::text::{grouped, without_folder};
use refrain_core::view::{Gate, Iteration, Status, StatusWord, Usage, sum};
use refrain_engine::ChangeSize;

use super::figures::{Moment, money};
use super::frame::{Frame, PageQuery, page, shown};
use super::head::Head;
use super::parts::{GateChip, pip};
use super::plan;
use crate::http::api::At;
use crate::http::app_state::AppState;
use crate::requests::{Activity, Line, LoopAddress, Refusal, RequestHandler, WorkPlace};

/// How many lines, and how many tests, of a failed gate are shown.
const LAST_LINES: usize = 30;
const MOST_TESTS: usize = 12;
/// How many gates that failed are shown with their output.
const MOST_FAILURES: usize = 3;

#[derive(Template)]
#[template(path = "activity.html")]
struct Page {
    frame: Frame,
    base: String,
    head: Head,
    attempt: Option<String>,
    /// Whether it is the latest one.
    is_latest: bool,
    next: u64,
    /// Empty if it is not known.
    context: String,
    /// The agent printed something on standard error.
    has_errors: bool,
    items: Vec<Item>,
    /// What came of the attempt, once it has ended.
    ending: Option<Ending>,
    /// The loop's worktree, which paths in it leave out.
    folder: String,
    failures: Vec<FailureView>,
    rail: Vec<Row>,
    can_steer: bool,
}

/// How an attempt ended, and what its gates said.
struct Ending {
    outcome: String,
    /// Its iteration, of which the changes are known.
    n: u32,
    gates: Vec<GateChip>,
}

/// An attempt in the list of iterations.
struct Row {
    name: String,
    pip: &'static str,
    took: String,
    outcome: String,
    cost: String,
    said: String,
    is_shown: bool,
}

/// A gate that failed, or one that was asked for.
pub(super) struct FailureView {
    pub(super) gate: String,
    pub(super) passed: bool,
    pub(super) why: String,
    /// The last lines that it printed.
    pub(super) end: String,
    /// The names of failing tests, if the output has them.
    pub(super) tests: Vec<String>,
    pub(super) log: String,
}

/// A loop with what every tab of it shows.
pub(super) struct LoopPage {
    pub(super) status: Box<Status>,
    pub(super) goal: String,
    work: WorkPlace,
    /// How much it has changed; while it runs, only its changes say that.
    size: Option<ChangeSize>,
}

impl LoopPage {
    /// Whether its agent may get a text with a later attempt.
    pub(super) fn can_steer(&self) -> bool {
        !self.status.status.is_over() && self.status.status != StatusWord::Moved
    }

    pub(super) fn head(&self, frame: &Frame, base: &str, tab: &str) -> Head {
        Head::of(base, &self.status, &self.goal, &self.work, tab).noticed(frame.notice).with_size(self.size)
    }
}

/// The loop of an address; none if it is a plan.
pub(super) fn see(handler: &RequestHandler, place: &LoopAddress) -> Result<LoopPage, Refusal> {
    match handler.standing(place)? {
        AnyStatus::Loop(status) => seen(handler, place, status),
        AnyStatus::Plan(_) => Err(Refusal::new(format!("{} is a plan; its page has all of it", place.id))),
    }
}

fn seen(handler: &RequestHandler, place: &LoopAddress, status: Box<Status>) -> Result<LoopPage, Refusal> {
    let goal = handler.goal(place)?;
    let work = handler.work_place(place, &status)?;
    let is_at_rest = !matches!(status.status, StatusWord::Running | StatusWord::Waiting);
    // A page without it is better than none.
    let size = if is_at_rest { handler.change_size(place).ok().flatten() } else { None };
    Ok(LoopPage { status, goal, work, size })
}

pub(super) async fn show(
    State(state): State<Arc<AppState>>,
    At(place): At<LoopAddress>,
    asked: PageQuery,
) -> Response {
    let frame = Frame::of(&state, &place).after(&asked);
    framed(&state, place, asked.get("at").cloned(), frame).await
}

/// The page of a loop or a plan in this frame.
pub(super) async fn framed(
    state: &Arc<AppState>,
    place: LoopAddress,
    wanted: Option<String>,
    frame: Frame,
) -> Response {
    let base = place.path();
    let path = base.clone();
    let found = state.run_blocking(move |handler| look(handler, &place, wanted, &path)).await;
    shown(state, found, |found| match found {
        PageContent::Plan(status) => plan::show(frame, base, &status),
        PageContent::Loop(seen, attempt, activity, has_errors, failures) => {
            let all = seen.status.iterations.as_deref().unwrap_or_default();
            let latest = all.last().map(|it| it.id().to_string());
            let rail = all.iter().rev().map(|it| row(&seen.status, it, attempt.as_deref())).collect();
            let head = seen.head(&frame, &base, "");
            let can_steer = seen.can_steer();
            let shown = all.iter().find(|it| attempt.as_ref().is_some_and(|at| it.id().to_string() == *at));
            let ending = shown.filter(|it| it.ended_at.is_some()).map(|it| Ending {
                outcome: outcome(&seen.status, it),
                n: it.n,
                gates: it.gates.iter().map(|gate| GateChip::of(&gate.name, gate.hard, gate.passed)).collect(),
            });
            let folder = format!("{}/", seen.status.worktree);
            page(&Page {
                frame: Frame { icon: head.icon, ..frame },
                base,
                head,
                is_latest: attempt == latest,
                attempt,
                next: activity.next,
                context: activity.context.map(grouped).unwrap_or_default(),
                has_errors,
                items: transcript(activity.lines, &folder),
                folder,
                ending,
                failures,
                rail,
                can_steer,
            })
        }
    })
}

enum PageContent {
    Plan(Box<refrain_core::view::plan::PlanStatus>),
    Loop(LoopPage, Option<String>, Activity, bool, Vec<FailureView>),
}

fn look(
    handler: &RequestHandler,
    place: &LoopAddress,
    wanted: Option<String>,
    base: &str,
) -> Result<PageContent, Refusal> {
    let status = match handler.standing(place)? {
        AnyStatus::Plan(status) => return Ok(PageContent::Plan(status)),
        AnyStatus::Loop(status) => status,
    };
    let seen = seen(handler, place, status)?;
    let mut names = seen.status.iterations.iter().flatten().map(|it| it.id().to_string());
    let latest = names.next_back();
    // Of an unknown iteration the latest is shown.
    let attempt = wanted.filter(|wanted| names.any(|name| name == *wanted)).or(latest);
    let activity = match &attempt {
        Some(attempt) => handler.activity(place, attempt, None, None)?,
        None => Activity { from: 0, next: 0, total: 0, context: None, lines: Vec::new() },
    };
    let is_short = seen.status.status.has_stopped() && seen.status.status != StatusWord::Completed;
    let failures = if is_short { failed_gates(handler, place, &seen.status, base) } else { Vec::new() };
    let errors = attempt.as_deref().map(|attempt| handler.log(place, (attempt, "errors"), None, Some(1)));
    let has_errors = errors.is_some_and(|errors| errors.is_ok_and(|errors| errors.total > 0));
    Ok(PageContent::Loop(seen, attempt, activity, has_errors, failures))
}

/// The required gates that failed last, with the ends of their logs.
pub(super) fn failed_gates(
    handler: &RequestHandler,
    place: &LoopAddress,
    status: &Status,
    base: &str,
) -> Vec<FailureView> {
    let failed = status.gates.iter().filter(|gate| gate.hard && !gate.passed).take(MOST_FAILURES);
    let mut views: Vec<_> = failed.map(|gate| gate_view(handler, place, gate, base)).collect();
    let last = status.last_failure.as_ref().filter(|it| it.count > 1);
    if let Some((last, gate)) = last.and_then(|it| Some((it, it.gate.as_ref()?)))
        && let Some(view) = views.iter_mut().find(|view| view.gate == *gate)
    {
        view.why = format!("{}; {} times in a row", view.why, last.count);
    }
    views
}

/// A result of a gate with the end of its log.
pub(super) fn gate_view(
    handler: &RequestHandler,
    place: &LoopAddress,
    gate: &Gate,
    base: &str,
) -> FailureView {
    let (of, run) = gate.ran;
    let kept = format!("gate:{}:{run}", gate.name);
    let log = handler.log(place, (&of.to_string(), &kept), None, Some(16 << 10)).ok();
    let text = log.map(|log| log.text).unwrap_or_default();
    let lines: Vec<_> = text.trim_end().lines().collect();
    let code = gate.exit_code.filter(|_| !gate.passed).map(|code| format!("exit code {code}"));
    let when = (of.iteration > 0).then(|| format!("after iteration {of}"));
    let why = code.or_else(|| gate.why.clone());
    FailureView {
        gate: gate.name.clone(),
        passed: gate.passed,
        why: when.into_iter().chain(why).collect::<Vec<_>>().join(", "),
        tests: failing_tests(&text).names.into_iter().take(MOST_TESTS).collect(),
        end: lines[lines.len().saturating_sub(LAST_LINES)..].join("\n"),
        log: format!("{base}/attempts/{of}/logs/{kept}"),
    }
}

pub(super) fn cost(usage: &Usage) -> String {
    money(usage.cost_usd, usage.cost_at_least)
}

pub(super) fn tokens(usage: &Usage) -> String {
    match (usage.input_tokens, usage.output_tokens) {
        (None, None) => "–".to_owned(),
        (read, said) => {
            let words = format!("{} in, {} out", grouped(read.unwrap_or(0)), grouped(said.unwrap_or(0)));
            sum(&words, usage.tokens_at_least)
        }
    }
}

/// How long it took, or since when it runs.
pub(super) fn took(status: &Status, it: &Iteration) -> String {
    match it.ended_at {
        Some(ended) => Millis::from(ended.duration_since(it.started_at).unsigned_abs()).to_string(),
        None if status.is_interrupted(it) => String::new(),
        None => Moment(it.started_at).to_string(),
    }
}

pub(super) fn outcome(status: &Status, it: &Iteration) -> String {
    let Some(outcome) = it.outcome else {
        return if status.is_interrupted(it) { "interrupted" } else { "running" }.to_owned();
    };
    let word = serde_json::to_value(outcome).ok().and_then(|word| Some(word.as_str()?.to_owned()));
    let code = match (it.exit_code, it.signal) {
        (Some(0) | None, None) => String::new(),
        (Some(code), _) => format!(", exit {code}"),
        (None, Some(signal)) => format!(", signal {signal}"),
    };
    format!("{}{code}", word.unwrap_or_default())
}

fn row(status: &Status, it: &Iteration, at: Option<&str>) -> Row {
    let name = it.id().to_string();
    Row {
        pip: pip(it, !status.has_stopped()).as_str(),
        took: took(status, it),
        outcome: outcome(status, it),
        cost: it.usage.cost_usd.map(|_| cost(&it.usage)).unwrap_or_default(),
        said: it.said().unwrap_or_default().to_owned(),
        is_shown: at == Some(name.as_str()),
        name,
    }
}

/// A line of a transcript.
struct Item {
    kind: &'static str,
    text: String,
    /// Of a call of a tool.
    results: Vec<Line>,
}

impl Item {
    fn is_tool(&self) -> bool {
        self.kind == "tool"
    }
}

/// Puts the results of tools below the call before them, where they are folded.
fn transcript(lines: Vec<Line>, folder: &str) -> Vec<Item> {
    let mut items: Vec<Item> = Vec::new();
    for line in lines {
        let line = Line { text: without_folder(&line.text, folder), ..line };
        match items.last_mut() {
            Some(last) if last.is_tool() && matches!(line.kind, "result" | "failed") => {
                last.results.push(line);
            }
            _ => items.push(Item { kind: line.kind, text: line.text, results: Vec::new() }),
        }
    }
    items
}
