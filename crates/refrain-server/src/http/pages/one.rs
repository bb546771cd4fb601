//! The page of one loop; a plan has a page of its own kind.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use refrain_app::verbs::Standing;
use refrain_core::spec::Millis;
use refrain_core::text::grouped;
use refrain_core::view::{ApprovalWord, Charset, Gate, Iteration, Status, StatusWord, Usage, WaitsFor, sum};
use refrain_engine::now;

use super::chart::{Chart, chart};
use super::figures::{ago, at, money};
use super::frame::{Frame, page, shown};
use super::head::{Head, Label, Progress};
use super::plan;
use crate::desk::{Activity, Desk, Place, Refusal};
use crate::http::api::At;
use crate::http::app_state::AppState;

#[derive(Template)]
#[template(path = "loop.html")]
struct Page {
    frame: Frame,
    base: String,
    head: Head,
    goal: String,
    attempt: Option<String>,
    activity: Activity,
    charts: Vec<Chart>,
    iterations: Vec<Row>,
}

/// An attempt, in words.
struct Row {
    name: String,
    took: String,
    outcome: String,
    tokens: String,
    cost: String,
    gates: Vec<Ran>,
    preview: String,
}

/// A gate and the link to its log.
struct Ran {
    name: String,
    says: &'static str,
    class: &'static str,
    of: String,
    run: u32,
}

impl From<&Gate> for Ran {
    fn from(gate: &Gate) -> Self {
        let (of, run) = gate.ran;
        let (says, class) = match (gate.passed, gate.hard) {
            (true, _) => ("passed", "good"),
            (false, true) => ("failed", "bad"),
            (false, false) => ("failed, soft", "bad"),
        };
        Self { name: gate.name.clone(), says, class, of: of.to_string(), run }
    }
}

pub(super) async fn show(State(door): State<Arc<AppState>>, At(place): At<Place>) -> Response {
    let frame = Frame::of(&door, &place);
    let base = format!("/p/{}/{}", place.project, place.id);
    let found = door.at_desk(move |desk| look(desk, &place)).await;
    shown(&door, found, |(standing, goal, activity)| match standing {
        Standing::Plan(status) => plan::show(frame, base, &status),
        Standing::Loop(status) => {
            let attempt = status.iterations.iter().flatten().next_back().map(|it| it.id().to_string());
            let rows = status.iterations.iter().flatten().rev().map(|it| row(&status, it)).collect();
            let charts = charts(status.iterations.as_deref().unwrap_or_default());
            let head = head(&status);
            page(&Page { frame, base, head, goal, attempt, activity, charts, iterations: rows })
        }
    })
}

fn look(desk: &Desk, place: &Place) -> Result<(Standing, String, Activity), Refusal> {
    let standing = desk.standing(place)?;
    let nothing = Activity { from: 0, next: 0, total: 0, lines: Vec::new() };
    let (goal, activity) = match &standing {
        Standing::Loop(status) => {
            let activity = match status.iterations.iter().flatten().next_back() {
                Some(last) => desk.activity(place, &last.id().to_string(), None, None)?,
                None => nothing,
            };
            (desk.goal(place)?, activity)
        }
        Standing::Plan(_) => (String::new(), nothing),
    };
    Ok((standing, goal, activity))
}

fn head(status: &Status) -> Head {
    let now = now();
    let stopped = status.status.has_stopped() || status.status == StatusWord::Crashed;
    let is_final = matches!(status.status, StatusWord::Completed | StatusWord::Cancelled);
    let mut facts = vec![
        ("Verified", status.verification().label(Charset::Unicode).to_owned()),
        ("Agent", format!("{} {}", status.agent, status.model.as_deref().unwrap_or_default())),
        ("Command", status.command.join(" ")),
        ("Folder", status.worktree.clone()),
        ("Started", at(status.started_at, now)),
    ];
    let used = (status.usage.cost_usd, status.usage.input_tokens, status.usage.output_tokens);
    if used != (None, None, None) {
        facts.push(("Used", format!("{}, {} tokens", cost(&status.usage), tokens(&status.usage))));
    }
    if let Some(branch) = &status.branch {
        facts.push(("Branch", branch.clone()));
    }
    if let Some(wait) = &status.wait {
        facts.push(("Waits until", wait.until.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()));
    }
    if let Some(ended) = status.ended_at {
        facts.push(("Stopped", at(ended, now)));
    }
    let awaited = status.approval.as_ref().filter(|approval| approval.state == ApprovalWord::Awaited);
    Head {
        id: status.id.to_string(),
        status: Label::of(status.status, status.verified),
        reason: status.reason.clone(),
        needs: status.needs.clone().unwrap_or_default(),
        task: status.task.as_ref().map(|it| (it.plan.to_string(), format!("{} {}", it.id, it.title))),
        progress: Some(Progress {
            label: "Iteration",
            done: status.iteration.into(),
            most: status.max_iterations.map(u64::from),
            says: status.progress(),
        }),
        facts,
        approves: awaited.map(|approval| approval.tree.clone().unwrap_or_default()),
        can_stop: !stopped,
        can_cancel: !is_final,
        can_resume: stopped && !is_final,
        can_steer: !is_final,
        can_answer: status.waits_for == Some(WaitsFor::Answer),
        can_archive: status.status.has_stopped(),
    }
}

fn cost(usage: &Usage) -> String {
    money(usage.cost_usd, usage.cost_at_least)
}

fn tokens(usage: &Usage) -> String {
    match (usage.input_tokens, usage.output_tokens) {
        (None, None) => "–".to_owned(),
        (read, said) => {
            let words = format!("{} in, {} out", grouped(read.unwrap_or(0)), grouped(said.unwrap_or(0)));
            sum(&words, usage.tokens_at_least)
        }
    }
}

fn took(it: &Iteration) -> Option<Millis> {
    Some(Millis::from(it.ended_at?.duration_since(it.started_at).unsigned_abs()))
}

fn row(status: &Status, it: &Iteration) -> Row {
    let is_interrupted = status.is_interrupted(it);
    let outcome = it.outcome.map_or_else(
        || if is_interrupted { "interrupted" } else { "at work" }.to_owned(),
        |outcome| {
            let word = serde_json::to_value(outcome).ok().and_then(|word| Some(word.as_str()?.to_owned()));
            let code = match (it.exit_code, it.signal) {
                (Some(code), _) => format!(", exit {code}"),
                (None, Some(signal)) => format!(", signal {signal}"),
                (None, None) => String::new(),
            };
            format!("{}{code}", word.unwrap_or_default())
        },
    );
    Row {
        name: it.id().to_string(),
        took: took(it).map_or_else(
            || match is_interrupted {
                true => String::new(),
                false => ago(it.started_at, now()).replace(" ago", ", goes on"),
            },
            |took| took.to_string(),
        ),
        outcome,
        tokens: tokens(&it.usage),
        cost: cost(&it.usage),
        gates: it.gates.iter().map(Ran::from).collect(),
        preview: it.summary.clone().or_else(|| it.preview.clone()).unwrap_or_default(),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a bar is a few pixels")]
fn charts(all: &[Iteration]) -> Vec<Chart> {
    let of = |value: &dyn Fn(&Iteration) -> Option<f64>| -> Vec<_> {
        all.iter().map(|it| (it.id().to_string(), value(it))).collect()
    };
    let count = |it: &Iteration| match (it.usage.input_tokens, it.usage.output_tokens) {
        (None, None) => None,
        (read, said) => Some((read.unwrap_or(0) + said.unwrap_or(0)) as f64),
    };
    let charts = [
        chart("Cost", &of(&|it| it.usage.cost_usd), |cost| money(Some(cost), false)),
        chart("Tokens", &of(&count), |count| format!("{count:.0}")),
        chart("Time", &of(&|it| Some(took(it)?.0 as f64)), |ms| format!("{:.1} s", ms / 1000.0)),
    ];
    charts.into_iter().flatten().collect()
}
