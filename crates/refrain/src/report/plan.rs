//! The content of a plan's report: the status of each task and what proved it.

use jiff::Timestamp;
use refrain_core::plan::{TaskId, TaskStarted};
use refrain_core::view::plan::{PlanStatus, TaskView, TaskWord};
use refrain_core::view::report::Report;

use super::document::{Document, verdict_on};
use super::parts::{Cell, Section, Tone, shown};
use crate::render::phrase;

/// The document of a plan; `loops` has the report of each round of its tasks, `sandbox` describes the one that they run in,
/// `clock` formats times.
pub(crate) fn plan_document(
    view: &PlanStatus,
    loops: &[(TaskStarted, Report)],
    sandbox: &str,
    clock: &dyn Fn(Timestamp) -> String,
) -> Document {
    let sections =
        [summary(view, sandbox, clock), tasks(view, loops), waves(view, clock), open(view), evidence(view)];
    Document {
        title: format!("Report on plan {}", view.id),
        verdict: verdict_on(view.status, view.verified, ""),
        reason: shown(&view.reason),
        sections: sections.into_iter().filter(|section| !section.blocks.is_empty()).collect(),
    }
}

fn summary(view: &PlanStatus, sandbox: &str, clock: &dyn Fn(Timestamp) -> String) -> Section {
    let branch = view.branch.as_ref().map_or_else(String::new, |branch| format!(", branch {branch}"));
    let usage = &view.usage;
    let cost = usage.cost().map_or_else(String::new, |cost| format!(", {cost}"));
    let used = phrase::progress(usage.iterations_used, Some(usage.iterations_granted));
    Section::new("Summary").facts(vec![
        ("project", Cell::plain(format!("{}{branch}", view.project))),
        ("tasks", Cell::plain(format!("{} of {}, {}", view.tasks_done, view.tasks_total, view.tasks_file))),
        ("base", Cell::code(view.base.as_deref().unwrap_or_default())),
        ("landed", Cell::code(view.tip.as_deref().unwrap_or_default())),
        ("verification", Cell::code(view.verification.join("; "))),
        ("sandbox", Cell::plain(sandbox)),
        ("iterations", Cell::plain(format!("{used}{cost}"))),
        ("started", Cell::plain(clock(view.started_at))),
        ("ended", Cell::plain(view.ended_at.map(clock).unwrap_or_default())),
        ("next", Cell::code(view.needs.as_deref().unwrap_or_default())),
    ])
}

fn tasks(view: &PlanStatus, loops: &[(TaskStarted, Report)]) -> Section {
    let of = |task: &TaskView| loops.iter().rev().find(|(round, _)| round.task == task.id);
    let row = |task: &TaskView| {
        let proof = match of(task) {
            Some((_, report)) => proof(report),
            None => Cell::plain(""),
        };
        let is_done = task.status == TaskWord::Done;
        vec![
            Cell::code(task.id.as_str()),
            Cell::new(if is_done { Tone::Good } else { Tone::Plain }, task.status.as_str()),
            Cell::plain(&task.title),
            Cell::number(task.iterations),
            proof,
            Cell::code(task.commit.as_deref().unwrap_or_default()),
            Cell::code(task.id_of_loop.as_ref().map_or("", |id| id.as_str())),
        ]
    };
    let own = view.tasks.iter().filter(|task| task.wave.is_some());
    let head = ["task", "stands", "title", "iterations", "what proved it", "commit", "loop"];
    Section::new("Tasks").table("Each with the last loop that worked on it", &head, own.map(row))
}

/// The last gate results of a loop.
fn proof(report: &Report) -> Cell {
    let has_claimed = report.claim.is_some() || !report.refused.is_empty();
    let unproven = if has_claimed { "nothing but the claim" } else { "nothing" };
    let Some(proof) = &report.proof else { return Cell::plain(unproven) };
    let failed: Vec<_> =
        proof.gates.iter().filter(|it| !it.gate.passed).map(|it| it.gate.name.as_str()).collect();
    let passed: Vec<_> =
        proof.gates.iter().filter(|it| it.gate.passed).map(|it| it.gate.name.as_str()).collect();
    let tree = proof.tree.as_ref().map_or_else(String::new, |tree| format!(" on tree {}", tree.short()));
    match report.verified {
        Some(true) => Cell::new(Tone::Good, format!("{}{tree}", passed.join(", "))),
        Some(false) | None if failed.is_empty() => Cell::plain(unproven),
        Some(false) | None => Cell::new(Tone::Bad, format!("nothing: {} failed", failed.join(", "))),
    }
}

fn waves(view: &PlanStatus, clock: &dyn Fn(Timestamp) -> String) -> Section {
    let rows = view.waves.iter().filter_map(|wave| {
        let landed =
            |id: &&TaskId| view.tasks.iter().any(|task| task.id == **id && task.status == TaskWord::Done);
        let (landed, left): (Vec<_>, Vec<_>) = wave.tasks.iter().partition(landed);
        let mut tasks = listed(&landed);
        if !left.is_empty() {
            tasks =
                format!("{tasks} ({} of {}; not done: {})", landed.len(), wave.tasks_total, listed(&left));
        }
        Some(vec![
            Cell::number(wave.wave),
            Cell::plain(clock(wave.completed_at?)),
            Cell::code(wave.commit.as_deref().unwrap_or_default()),
            Cell::plain(tasks),
        ])
    });
    Section::new("Waves").table("Those that landed", &["wave", "landed", "commit", "tasks"], rows)
}

fn listed(ids: &[&TaskId]) -> String {
    ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn open(view: &PlanStatus) -> Section {
    let rows = view.blocked.iter().map(|task| {
        vec![Cell::code(task.task.as_str()), Cell::plain(&task.title), Cell::new(Tone::Bad, &task.reason)]
    });
    Section::new("What a person is needed for").table("Each with why", &["task", "title", "why"], rows)
}

fn evidence(view: &PlanStatus) -> Section {
    Section::new("How to check this").facts(vec![
        ("run", Cell::code(format!("refrain verify {}", view.id))),
        ("each task", Cell::code("refrain report LOOP")),
    ])
}
