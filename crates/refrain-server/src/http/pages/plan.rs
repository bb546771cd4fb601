//! The page of one plan.

use askama::Template;
use axum::response::Response;
use refrain_core::plan::TaskId;
use refrain_core::spec::Millis;
use refrain_core::view::plan::{
    BlockedTask, CurrentTask, PlanStatus, TaskView, TaskWord, WaveView, WaveWord, critical_path,
};
use refrain_core::view::{StatusWord, progress};
use refrain_engine::now;

use super::figures::{at, money};
use super::frame::{Frame, page};
use super::graph::{Graph, graph};
use super::head::{Head, Label, Progress};

#[derive(Template)]
#[template(path = "plan.html")]
struct Page {
    frame: Frame,
    base: String,
    head: Head,
    waves: Vec<Wave>,
    critical: String,
    current: Vec<AtWork>,
    blocked: Vec<Blocked>,
    /// The tasks that wait for blocked ones, and for which.
    waiting: Vec<(String, String)>,
    graph: Graph,
    tasks: Vec<Row>,
}

/// A wave, in words.
struct Wave {
    wave: u32,
    done: usize,
    of: usize,
    word: &'static str,
    class: &'static str,
    commit: String,
}

/// A task in progress.
struct AtWork {
    task: String,
    title: String,
    agent: String,
    looped: String,
    round: u32,
    since: String,
    at: String,
    cost: String,
    does: String,
}

/// A task that a person is needed for.
struct Blocked {
    task: String,
    title: String,
    reason: String,
    tried: String,
    awaits_tune: bool,
}

/// A task, in words.
struct Row {
    id: String,
    status: &'static str,
    wave: String,
    title: String,
    waits_for: String,
    iterations: String,
    cost: String,
    looped: String,
    reason: String,
}

pub(super) fn show(frame: Frame, base: String, status: &PlanStatus) -> Response {
    let critical = critical_path(&status.tasks);
    let waits = |task: &&TaskView| task.status == TaskWord::WaitingOnBlocked;
    page(&Page {
        frame,
        base,
        head: head(status),
        waves: status.waves.iter().map(wave).collect(),
        critical: joined(&critical, " → "),
        current: status.current.iter().map(|it| at_work(status, it)).collect(),
        blocked: status.blocked.iter().map(blocked).collect(),
        waiting: status
            .tasks
            .iter()
            .filter(waits)
            .map(|task| (task.id.to_string(), joined(&task.waits_for, ", ")))
            .collect(),
        graph: graph(&status.tasks, &critical),
        tasks: status.tasks.iter().map(|task| row(status, task)).collect(),
    })
}

fn joined(tasks: &[TaskId], between: &str) -> String {
    tasks.iter().map(ToString::to_string).collect::<Vec<_>>().join(between)
}

fn head(status: &PlanStatus) -> Head {
    let stopped = status.status.has_stopped() || status.status == StatusWord::Crashed;
    let is_final = matches!(status.status, StatusWord::Completed | StatusWord::Cancelled);
    let usage = &status.usage;
    let mut facts = vec![
        ("At a time", status.jobs.to_string()),
        ("Tasks stand in", status.tasks_file.clone()),
        ("Agent", worker(status)),
        ("Verified by", status.verification.join("; ")),
        ("Iterations", progress(usage.iterations_used, Some(usage.iterations_granted))),
        ("Used", money(usage.cost_usd, usage.at_least)),
        ("Started", at(status.started_at, now())),
    ];
    if let Some(estimate) = status.estimate.as_ref().filter(|estimate| estimate.left_ms > Millis(0)) {
        facts.push(("Left", estimate.left_ms.to_string()));
    }
    Head {
        id: status.id.to_string(),
        status: Label::of(status.status, status.verified),
        reason: status.reason.clone(),
        needs: status.needs.clone().unwrap_or_default(),
        task: None,
        progress: Some(Progress {
            label: "Tasks",
            done: status.tasks_done as u64,
            most: Some(status.tasks_total as u64),
            says: format!("{}/{}", status.tasks_done, status.tasks_total),
        }),
        facts,
        approves: None,
        can_stop: !stopped,
        can_cancel: !is_final,
        can_resume: stopped && !is_final,
        can_steer: false,
        can_answer: false,
        can_archive: false,
    }
}

fn wave(wave: &WaveView) -> Wave {
    let (word, class) = match wave.status {
        WaveWord::Pending => ("pending", "pending"),
        WaveWord::InProgress => ("in progress", "in-progress"),
        WaveWord::Complete => ("complete", "complete"),
        WaveWord::Blocked => ("blocked", "blocked"),
    };
    let commit = wave.commit.as_deref().and_then(|commit| commit.get(..10)).unwrap_or_default();
    Wave {
        wave: wave.wave,
        done: wave.tasks_done,
        of: wave.tasks_total,
        word,
        class,
        commit: commit.to_owned(),
    }
}

fn at_work(plan: &PlanStatus, it: &CurrentTask) -> AtWork {
    let waits = it.wait.map(|wait| format!("waits until {}", wait.until.strftime("%Y-%m-%d %H:%M:%S UTC")));
    let does = it.preview.clone().filter(|_| waits.is_none()).or_else(|| it.reason.clone());
    AtWork {
        task: it.task.to_string(),
        title: it.title.clone(),
        agent: worker(plan),
        looped: it.id_of_loop.to_string(),
        round: it.round,
        since: at(it.started_at, now()),
        at: progress(it.iteration, Some(it.max_iterations)),
        cost: money(it.usage.cost_usd, it.usage.cost_at_least),
        does: [waits, does].into_iter().flatten().collect::<Vec<_>>().join(": "),
    }
}

/// Which agent works, and with which model.
fn worker(plan: &PlanStatus) -> String {
    match &plan.model {
        Some(model) => format!("{} {model}", plan.agent),
        None => plan.agent.to_string(),
    }
}

fn blocked(it: &BlockedTask) -> Blocked {
    let since = it.blocked_at.map(|then| format!(", stopped {}", at(then, now()))).unwrap_or_default();
    Blocked {
        task: it.task.to_string(),
        title: it.title.clone(),
        reason: it.reason.clone(),
        tried: format!("iterations: {}{since}", it.attempts),
        awaits_tune: it.awaits_tune,
    }
}

fn row(plan: &PlanStatus, task: &TaskView) -> Row {
    // The cost of the running round is not yet in the task's sum.
    let now = plan.current.iter().find(|it| it.task == task.id);
    let costs = [task.cost_usd, now.and_then(|it| it.usage.cost_usd)];
    let cost = costs.into_iter().flatten().reduce(|one, other| one + other);
    let at_least = task.at_least || now.is_some_and(|it| it.usage.cost_at_least);
    Row {
        id: task.id.to_string(),
        status: task.status.as_str(),
        wave: task.wave.map(|wave| wave.to_string()).unwrap_or_default(),
        title: task.title.clone(),
        waits_for: joined(&task.waits_for, ", "),
        iterations: (task.iterations + now.map_or(0, |it| it.iteration)).to_string(),
        cost: money(cost, at_least),
        looped: task.id_of_loop.as_ref().map(ToString::to_string).unwrap_or_default(),
        reason: task.reason.clone().unwrap_or_default(),
    }
}
