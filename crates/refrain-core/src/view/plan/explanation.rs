//! Sentences for people: why a plan has its status, and what they have to do.

use super::parts::{self, WaveView, WaveWord};
use crate::LoopId;
use crate::machine::Refusal;
use crate::plan::{PlanEnd, PlanGrant, PlanState, Stage, Stop, TaskEdit, TaskState};
use crate::view::explanation::{asked_by, by_person, gone, more_money, tell_task};
use crate::view::{RUNNER, StatusWord, sum};

/// How many tasks are named in a line.
const NAMED: usize = 5;

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

fn tasks(count: usize) -> String {
    counted(count, "task", "tasks")
}

/// Why it has its status, in one line.
pub(super) fn reason(state: &PlanState, word: StatusWord) -> String {
    let landed = state.tasks.iter().filter(|task| matches!(task.stage, Stage::Landed { .. })).count();
    let all: usize = state.waves.iter().map(|wave| wave.tasks.len()).sum();
    let so_far = match all {
        0 if state.tasks.is_empty() => "before its tasks were read".to_owned(),
        0 => "with no task left to do".to_owned(),
        _ => format!("with {landed} of {} landed", tasks(all)),
    };
    match state.ended.map(|ended| ended.end) {
        Some(PlanEnd::Completed) if all == 0 => format!("nothing was to be done{}", left_alone(state)),
        Some(PlanEnd::Completed) => {
            let landed_in = parts::waves(state).into_iter().filter(|wave| wave.tasks_done > 0);
            let waves = counted(landed_in.count(), "wave", "waves");
            let unverified = match state.spec.commands().as_slice() {
                _ if state.is_verified() => "",
                [] => "; unverified, as nothing checks it",
                _ => "; unverified, as no gate checks all of it",
            };
            format!("{} landed in {waves}{unverified}{}", tasks(landed), left_alone(state))
        }
        Some(PlanEnd::Cancelled) => {
            let by = asked_by(state.cancelled_by, "by a person");
            format!("{by}, {so_far}")
        }
        Some(PlanEnd::Paused) => {
            let by = asked_by(state.paused_by, by_person(state.pause_request.is_some()));
            format!("{by}, {so_far}")
        }
        Some(PlanEnd::TimedOut) => {
            format!("the plan's own duration is over, {so_far}")
        }
        Some(PlanEnd::IterationCap) => {
            let used = counted(state.used as usize, "iteration", "iterations");
            format!("{used} used, and {} not done", tasks(all - landed.min(all)))
        }
        Some(PlanEnd::BudgetExceeded) if let Some(by) = state.shared_cap() => {
            format!("{}; {} not done", by.sentence(), tasks(all - landed.min(all)))
        }
        Some(PlanEnd::BudgetExceeded) => {
            let (spent, cap) = (state.counted(), state.limits.max_cost.unwrap_or_default());
            let assumed = state.assumed.assumed_part();
            let spent = sum(&spent.to_string(), state.spent_at_least && assumed.is_empty());
            format!("{spent} of {cap} spent{assumed}, and {} not done", tasks(all - landed.min(all)))
        }
        Some(PlanEnd::Blocked) => blocked(state),
        None if word == StatusWord::Crashed => gone(RUNNER, state.running().next().is_some()),
        None => at_work(state, all),
    }
}

fn at_work(state: &PlanState, all: usize) -> String {
    if all == 0 {
        return "the tasks are being read".to_owned();
    }
    let last = state.last_wave_number();
    let is_over = |wave: &WaveView| matches!(wave.status, WaveWord::Complete | WaveWord::Blocked);
    let waves = parts::waves(state);
    let blocked = || waves.iter().find(|wave| wave.status == WaveWord::Blocked);
    let wave = waves.iter().find(|wave| !is_over(wave)).or_else(blocked).map_or(last, |wave| wave.wave);
    let working = state.running().count();
    let landing = state.tasks.iter().filter(|task| matches!(task.stage, Stage::Proven { .. })).count();
    let mut doing = Vec::new();
    if working > 0 {
        doing.push(format!("{} at work", tasks(working)));
    }
    if landing > 0 {
        doing.push(format!("{landing} to land"));
    }
    if doing.is_empty() {
        doing.push("between two tasks".to_owned());
    }
    let asked = match (state.cancel, state.pause) {
        (Some(_), _) => "; it is being cancelled",
        (None, Some(_)) => "; it will pause",
        (None, None) => "",
    };
    format!("wave {wave} of {last}: {}{asked}", doing.join(", "))
}

/// Why it waits for a person: the first thing, and how many more there are.
fn blocked(state: &PlanState) -> String {
    if let Some(error) = &state.hindered {
        return split_cure(error, &state.spec.id).map_or(error.as_str(), |(why, _)| why).to_owned();
    }
    if let Some(task) = stopped(state).next() {
        let more = match stopped(state).count() - 1 {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        let waiting = match waiting(state).count() {
            0 => String::new(),
            1 => "; 1 task waits on that".to_owned(),
            count => format!("; {count} tasks wait on that"),
        };
        let why = state.blocked_because(task).unwrap_or_default();
        return format!("task {}: {why}{more}{waiting}", task.card.id);
    }
    if let Some(why) = &state.handover.refused {
        return format!("what landed could not be handed over: {why}");
    }
    match waiting(state).next() {
        _ if is_settled(state) => "what it waited for is settled: it can continue".to_owned(),
        Some(task) => match waiting(state).count() - 1 {
            0 => waited_for(state, task),
            more => {
                format!("{}; {} more", waited_for(state, task), counted(more, "task waits", "tasks wait"))
            }
        },
        None => "it waits for a person".to_owned(),
    }
}

fn stopped(state: &PlanState) -> impl Iterator<Item = &TaskState> {
    state.tasks.iter().filter(|task| matches!(task.stage, Stage::Stopped(_)))
}

fn waiting(state: &PlanState) -> impl Iterator<Item = &TaskState> {
    state.tasks.iter().filter(|task| matches!(task.stage, Stage::Waiting(_)) && task.is_hopeless)
}

/// Whether a task can begin by now: since the plan stopped, it was tuned, added or retried.
fn is_settled(state: &PlanState) -> bool {
    state.tasks.iter().any(|task| matches!(task.stage, Stage::Waiting(_)) && !task.is_hopeless)
}

/// The tasks that their file took off the plan although they are not done.
fn left_alone(state: &PlanState) -> String {
    let named = |task: &TaskState| format!("task {} is {}", task.card.id, task.card.status);
    let all: Vec<_> = state.tasks.iter().filter(|task| task.is_not_tried()).map(named).collect();
    let first = &all[..all.len().min(NAMED)];
    match all.len() - first.len() {
        _ if all.is_empty() => String::new(),
        0 => format!("; not tried: {}", first.join(", ")),
        more => format!("; not tried: {} and {more} more", first.join(", ")),
    }
}

/// The tasks that it names as its dependencies and that are not done.
fn unmet<'a>(state: &'a PlanState, task: &'a TaskState) -> impl Iterator<Item = &'a TaskState> {
    let of = |id| state.task(id).filter(|before| !before.is_met());
    task.card.dependencies.iter().filter_map(of)
}

fn waited_for(state: &PlanState, task: &TaskState) -> String {
    let named =
        unmet(state, task).map(|before| format!("task {} is {}", before.card.id, state.status_of(before)));
    format!("task {} waits: {}", task.card.id, named.collect::<Vec<_>>().join(", "))
}

/// What a person has to do for it to continue.
pub(super) fn needs(state: &PlanState, word: StatusWord) -> Option<String> {
    let id = &state.spec.id;
    let refusal = state.resume(&PlanGrant::default()).err();
    let flag = refusal.as_ref().and_then(Refusal::flag).map(|flag| format!(" {flag}"));
    let resume = format!("refrain plan resume {id}{}", flag.unwrap_or_default());
    if let (StatusWord::BudgetExceeded, Some(by)) = (word, state.shared_cap()) {
        return Some(more_money(&by, &state.spec.each, &resume, "plan"));
    }
    match word {
        StatusWord::Crashed if state.cancel.is_some() => Some(format!("refrain plan cancel {id}")),
        StatusWord::Crashed
        | StatusWord::Paused
        | StatusWord::IterationCap
        | StatusWord::BudgetExceeded
        | StatusWord::TimedOut => Some(resume),
        StatusWord::Blocked => Some(unblocked(state, &resume)),
        StatusWord::Running
        | StatusWord::Waiting
        | StatusWord::Completed
        | StatusWord::Cancelled
        | StatusWord::Moved
        | StatusWord::Stuck
        | StatusWord::Failed => None,
    }
}

/// What a loop of its tasks said hinders all tasks, and what to do about it if that loop said so.
fn split_cure<'a>(error: &'a str, id: &LoopId) -> Option<(&'a str, &'a str)> {
    let resume = error.rfind(&format!("refrain plan resume {id}"))?;
    let end = error[..resume].rfind("; ")?;
    Some((&error[..end], &error[end + 2..]))
}

fn unblocked(state: &PlanState, resume: &str) -> String {
    let id = &state.spec.id;
    if let Some(error) = &state.hindered {
        return match split_cure(error, id) {
            Some((_, cure)) => cure.to_owned(),
            None => format!("correct that, then {resume}"),
        };
    }
    let tried = |task: &&TaskState| {
        matches!(task.stage, Stage::Stopped(Stop::UsedUp | Stop::Stuck | Stop::Unfit | Stop::GaveUp { .. }))
    };
    if let Some(task) = stopped(state).find(tried) {
        let task_id = &task.card.id;
        // No other agent has what it asks of a person.
        if matches!(task.stage, Stage::Stopped(Stop::GaveUp { .. })) {
            return format!("tell its agent what to do with {}", tell_task(id, task_id));
        }
        return format!("refrain plan tune {task_id} --name {id}, then {resume}");
    }
    if stopped(state).next().is_some() || state.handover.refused.is_some() {
        return format!("correct that, then {resume}");
    }
    if is_settled(state) {
        return resume.to_owned();
    }
    let is_retried = |task: &&TaskState| state.edit(&task.card.id, TaskEdit::Retry).is_ok();
    let mut before = waiting(state).flat_map(|task| unmet(state, task));
    match before.find(is_retried) {
        Some(task) => format!("refrain plan retry {} --name {id}, then {resume}", task.card.id),
        None => format!("say in {} what becomes of it, then {resume}", state.spec.tasks),
    }
}
