//! One plan.

use askama::Template;
use axum::response::Response;
use refrain_core::view::StatusWord;
use refrain_core::view::plan::{BlockedTask, PlanStatus, TaskView, WaveView, critical_path};
use refrain_engine::now;

use super::graph::{Graph, graph};
use super::{Frame, Head, at, money, page};

#[derive(Template)]
#[template(path = "plan.html")]
struct Page<'a> {
    frame: Frame,
    base: String,
    head: Head,
    waves: &'a [WaveView],
    critical: String,
    blocked: &'a [BlockedTask],
    graph: Graph,
    tasks: Vec<Row>,
}

/// A task, in words.
struct Row {
    id: String,
    status: &'static str,
    wave: String,
    title: String,
    waits_for: String,
    looped: String,
    reason: String,
}

pub(super) fn show(frame: Frame, base: String, status: &PlanStatus) -> Response {
    let critical: Vec<_> = critical_path(&status.tasks).iter().map(ToString::to_string).collect();
    page(&Page {
        frame,
        base,
        head: head(status),
        waves: &status.waves,
        critical: critical.join(" → "),
        blocked: &status.blocked,
        graph: graph(&status.tasks),
        tasks: status.tasks.iter().map(row).collect(),
    })
}

fn head(status: &PlanStatus) -> Head {
    let stopped = status.status.has_stopped() || status.status == StatusWord::Crashed;
    let is_final = matches!(status.status, StatusWord::Completed | StatusWord::Cancelled);
    let usage = &status.usage;
    let mut facts = vec![
        ("Tasks", format!("{} of {} done, {} at a time", status.tasks_done, status.tasks_total, status.jobs)),
        ("Tasks stand in", status.tasks_file.clone()),
        ("Agent", format!("{} {}", status.agent, status.model.as_deref().unwrap_or_default())),
        ("Verified by", status.verification.join("; ")),
        ("Iterations", format!("{} of {}", usage.iterations_used, usage.iterations_granted)),
        ("Used", money(usage.cost_usd)),
        ("Started", at(status.started_at, now())),
    ];
    if let Some(estimate) = &status.estimate {
        facts.push(("Left", estimate.left_ms.to_string()));
    }
    for task in &status.current {
        facts.push((
            "At work",
            format!("{} {} (round {}, {})", task.task, task.title, task.round, task.id_of_loop),
        ));
    }
    Head {
        id: status.id.to_string(),
        status: status.status.as_str(),
        reason: status.reason.clone(),
        needs: status.needs.clone().unwrap_or_default(),
        progress: None,
        facts,
        can_stop: !stopped,
        can_cancel: !is_final,
        can_resume: stopped && !is_final,
        can_steer: false,
        can_archive: false,
    }
}

fn row(task: &TaskView) -> Row {
    let waits_for: Vec<_> = task.waits_for.iter().map(ToString::to_string).collect();
    Row {
        id: task.id.to_string(),
        status: task.status.as_str(),
        wave: task.wave.map(|wave| wave.to_string()).unwrap_or_default(),
        title: task.title.clone(),
        waits_for: waits_for.join(", "),
        looped: task.id_of_loop.as_ref().map(ToString::to_string).unwrap_or_default(),
        reason: task.reason.clone().unwrap_or_default(),
    }
}
