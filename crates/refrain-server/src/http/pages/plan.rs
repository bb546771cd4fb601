//! The page of one plan: its tasks as cards, a column for each wave.

use askama::Template;
use axum::response::Response;
use refrain_core::plan::TaskId;
use refrain_core::view::plan::{
    BlockedTask, PlanStatus, TaskView, TaskWord, WaveView, WaveWord, critical_path,
};
use refrain_core::view::progress;

use super::figures::{Moment, clock, money};
use super::frame::{Frame, page};
use super::head::Head;
use super::parts::{TaskNeed, agent_name};

#[derive(Template)]
#[template(path = "plan.html")]
struct Page {
    frame: Frame,
    base: String,
    head: Head,
    critical: String,
    waves: Vec<Wave>,
    blocked: Vec<BlockedCard>,
    can_add: bool,
}

/// A column of cards.
struct Wave {
    name: String,
    says: String,
    commit: String,
    cards: Vec<Card>,
}

/// A task.
struct Card {
    id: String,
    title: String,
    status: &'static str,
    is_critical: bool,
    /// 0 if it is not rated.
    complexity: u32,
    after: Vec<String>,
    /// Of a task that is worked on: its iteration and since when.
    iteration: String,
    since: Option<Moment>,
    cost: String,
    agent: String,
    loop_id: String,
    does: String,
    /// The action that changes it, and its label.
    edit: Option<(&'static str, &'static str)>,
}

/// A task that needs you.
struct BlockedCard {
    need: TaskNeed,
    tried: String,
    since: Option<Moment>,
}

pub(super) fn show(frame: Frame, base: String, status: &PlanStatus) -> Response {
    let critical = critical_path(&status.tasks);
    let head = Head::of_plan(&base, status).noticed(frame.notice);
    page(&Page {
        frame: Frame { icon: head.icon, ..frame },
        head,
        critical: joined(&critical, " → "),
        waves: waves(status, &critical),
        blocked: status
            .blocked
            .iter()
            .filter(|_| can_change(status))
            .map(|it| blocked(&base, status, it))
            .collect(),
        can_add: can_change(status),
        base,
    })
}

fn can_change(plan: &PlanStatus) -> bool {
    !plan.status.is_over()
}

/// How a task that is not at work can be changed.
fn edit(plan: &PlanStatus, task: TaskWord) -> Option<(&'static str, &'static str)> {
    match task {
        _ if !can_change(plan) => None,
        TaskWord::Pending | TaskWord::WaitingOnBlocked => Some(("block", "Block")),
        TaskWord::Blocked
        | TaskWord::AwaitingTune
        | TaskWord::Failed
        | TaskWord::Deferred
        | TaskWord::Cancelled => Some(("retry", "Retry")),
        TaskWord::InProgress | TaskWord::Landing | TaskWord::Done | TaskWord::Review | TaskWord::Expanded => {
            None
        }
    }
}

fn joined(tasks: &[TaskId], between: &str) -> String {
    tasks.iter().map(ToString::to_string).collect::<Vec<_>>().join(between)
}

/// The waves with their tasks, and a last column for tasks of none.
fn waves(status: &PlanStatus, critical: &[TaskId]) -> Vec<Wave> {
    let cards = |wave: Option<u32>| -> Vec<Card> {
        let tasks = status.tasks.iter().filter(|task| task.wave == wave);
        tasks.map(|task| card(status, task, critical)).collect()
    };
    let mut waves: Vec<_> =
        status.waves.iter().map(|it| Wave { cards: cards(Some(it.wave)), ..wave(it) }).collect();
    let others = cards(None);
    if !others.is_empty() {
        let name = "Not in this plan".to_owned();
        waves.push(Wave { name, says: String::new(), commit: String::new(), cards: others });
    }
    waves
}

fn wave(wave: &WaveView) -> Wave {
    let word = match wave.status {
        WaveWord::Pending => "pending",
        WaveWord::InProgress => "in progress",
        WaveWord::Complete => "complete",
        WaveWord::Blocked => "blocked",
    };
    let commit = wave.commit.as_deref().and_then(|commit| commit.get(..10)).unwrap_or_default();
    Wave {
        name: format!("Wave {}", wave.wave),
        says: format!("{}/{} tasks, {word}", wave.tasks_done, wave.tasks_total),
        commit: commit.to_owned(),
        cards: Vec::new(),
    }
}

fn card(plan: &PlanStatus, task: &TaskView, critical: &[TaskId]) -> Card {
    let now = plan.current.iter().find(|it| it.task == task.id);
    // The cost of the running round is not yet in the task's sum.
    let costs = [task.cost_usd, now.and_then(|it| it.usage.cost_usd)];
    let cost = costs.into_iter().flatten().reduce(|one, other| one + other);
    let at_least = task.at_least || now.is_some_and(|it| it.usage.cost_at_least);
    let done = format!("{} iteration{}", task.iterations, if task.iterations == 1 { "" } else { "s" });
    let iteration = match now {
        Some(it) => {
            let round = if it.round > 1 { format!(", round {}", it.round) } else { String::new() };
            format!("iteration {}{round}", progress(it.iteration, Some(it.max_iterations)))
        }
        None if task.iterations == 0 => String::new(),
        None => done,
    };
    let waits = now.and_then(|it| it.wait).map(|wait| format!("waits until {}", clock(wait.until)));
    let does = now.and_then(|it| it.preview.clone().or_else(|| it.reason.clone()));
    Card {
        id: task.id.to_string(),
        title: task.title.clone(),
        status: task.status.as_str(),
        is_critical: critical.contains(&task.id),
        complexity: task.complexity,
        after: task.dependencies.iter().map(ToString::to_string).collect(),
        iteration,
        since: now.map(|it| Moment(it.started_at)),
        cost: cost.map(|cost| money(Some(cost), at_least)).unwrap_or_default(),
        agent: now
            .map(|_| plan.model.clone().unwrap_or_else(|| agent_name(&plan.agent.to_string()).to_owned()))
            .unwrap_or_default(),
        loop_id: now
            .map(|it| &it.id_of_loop)
            .or(task.id_of_loop.as_ref())
            .map(ToString::to_string)
            .unwrap_or_default(),
        edit: edit(plan, task.status),
        does: waits.or(does).or_else(|| task.reason.clone()).unwrap_or_default(),
    }
}

fn blocked(base: &str, plan: &PlanStatus, it: &BlockedTask) -> BlockedCard {
    let named = (it.task.as_str(), it.title.as_str());
    let need = TaskNeed::of((base, ""), named, (it.question.as_deref(), &it.reason));
    BlockedCard {
        need: TaskNeed { can_answer: plan.status.has_stopped(), ..need },
        tried: format!("iterations: {}", it.attempts),
        since: it.blocked_at.map(Moment),
    }
}
