//! The messages of a running plan: a header, a line for each event that matters, and at the end a summary and what to
//! type next.

use owo_colors::OwoColorize;
use refrain_core::agent::Usd;
use refrain_core::event::{Ask, Urgency};
use refrain_core::plan::{
    Batch, MAX_RETURNS, PlanEvent, PlanLimits, PlanSpec, PlanState, Return, Stage, TaskEnd, TaskEnded,
    TaskId, TaskStarted, TaskState,
};
use refrain_core::spec::Millis;
use refrain_core::text::printable;
use refrain_core::view::{self, StatusWord};
use refrain_core::{Machine, Record};

use crate::render::event_text::{note, words};
use crate::render::phrase::{self, Row};

#[derive(Debug, Default)]
pub(crate) struct PlanNarrator {
    state: Option<PlanState>,
}

impl PlanNarrator {
    /// Applies one more event, and returns its message, in lines that fit into `width` if there is one.
    pub(crate) fn lines(&mut self, record: &Record<PlanEvent>, width: Option<usize>) -> String {
        // Of what lands, the event names only the commits.
        let batch = match record.event {
            PlanEvent::BatchLanded { .. } | PlanEvent::BatchVerified { .. } => {
                self.state.as_ref().and_then(|state| state.batch.clone())
            }
            _ => None,
        };
        let was = self.state.as_ref().filter(|state| !state.tasks.is_empty()).map(size);
        match &mut self.state {
            None => self.state = PlanState::begin(record).ok(),
            // Its own process folded it already; from another one, a damaged journal is not this one's to judge.
            Some(state) => drop(state.apply(record)),
        }
        let Some(state) = &self.state else { return String::new() };
        fit(line(state, record, batch.as_ref(), was.as_deref(), width), width)
    }
}

/// The text, with the lines of Refrain's own words wrapped if they do not fit.
fn fit(text: String, width: Option<usize>) -> String {
    if width.is_none() {
        return text;
    }
    let broken = |line: &str| match line.starts_with("  ") {
        true => line.to_owned(),
        false => phrase::broken("", 2, line, width),
    };
    text.lines().map(|line| broken(line) + "\n").collect()
}

fn notes(lines: impl IntoIterator<Item = String>) -> String {
    lines.into_iter().map(|line| note(&line)).collect()
}

fn line(
    state: &PlanState,
    record: &Record<PlanEvent>,
    batch: Option<&Batch>,
    was: Option<&str>,
    width: Option<usize>,
) -> String {
    match &record.event {
        PlanEvent::Started(_) => header(&state.spec, &state.limits, width),
        PlanEvent::TasksTaken { .. } => match (was, size(state)) {
            // Written for a runner that starts; unchanged values are not worth a line.
            (Some(was), now) if was == now => String::new(),
            (Some(_), now) => note(&format!("the task file has changed: {now}")),
            (None, now) => note(&now),
        },
        PlanEvent::TasksRefused { error } => {
            note(&format!("the task file has changed, and cannot be used as it is: {error}"))
        }
        PlanEvent::BaseTaken { head, branch } => {
            let on =
                branch.as_ref().map_or_else(|| "a detached head".to_owned(), |it| format!("branch {it}"));
            note(&format!("begins at {} on {on}", head.short()))
        }
        PlanEvent::TaskStarted(started) => begins(state, started),
        PlanEvent::TaskEnded(ended) => ends(state, ended),
        PlanEvent::TaskTuned { task, .. } => note(&format!("task {task}: a person said how it continues")),
        PlanEvent::BatchMerged { merged, refused } => {
            let back = refused.iter().map(|one| match (&one.why, state.task(&one.task)) {
                (Some(why), _) => format!("task {} cannot be merged: {why}", one.task),
                (None, task) => {
                    let paths: Vec<_> = one.paths.iter().map(ToString::to_string).collect();
                    format!(
                        "task {} conflicts with what landed, in {}{}",
                        one.task,
                        paths.join(", "),
                        returned(task)
                    )
                }
            });
            let together =
                (merged.len() > 1).then(|| format!("{} tasks are merged, to land together", merged.len()));
            notes(back.chain(together))
        }
        PlanEvent::BatchVerified { upto, failed } => {
            verified(*upto, failed.as_ref().map(|it| it.gate.as_str()), batch)
        }
        PlanEvent::BatchLanded { commits, refused, line_was, .. } => {
            let Some(batch) = batch else { return String::new() };
            let landed = batch.merged.iter().zip(commits).map(|(one, commit)| {
                let title = state.task(&one.task).map(|task| task.card.title.clone()).unwrap_or_default();
                match commit {
                    Some(commit) => format!("task {} landed as {}: {title}", one.task, commit.short()),
                    None => format!("task {} is done, and nothing had to be changed: {title}", one.task),
                }
            });
            let next = batch.merged.get(commits.len()).map(|one| &one.task);
            let held = next.and_then(|task| held(state, task, refused.as_deref(), batch));
            let back = line_was.as_ref().map(|was| {
                format!(
                    "{} was moved to {was}, probably by an agent; Refrain moved it back, and nothing of {was} landed",
                    state.spec.line(),
                    was = was.short()
                )
            });
            landed
                .map(|line| format!("{} {}\n", phrase::in_charset("·").dimmed(), flat(&line).green()))
                .collect::<String>()
                + &notes(back.into_iter().chain(held))
        }
        PlanEvent::WaveCompleted { wave, commit, tasks, .. } => {
            let count = phrase::counted(u32::try_from(tasks.len()).unwrap_or(u32::MAX), "task", "tasks");
            let name = state.wave_name(*wave);
            if tasks.is_empty() && commit.is_none() {
                return note(&format!("{name}: nothing of it could be done"));
            }
            let commit = match commit {
                Some(commit) => {
                    let subject = state.wave_subject(*wave, tasks.len());
                    format!("feat({}): {subject} ({})", state.spec.tag, commit.short())
                }
                None => "nothing was changed".to_owned(),
            };
            let complete = if state.left_out(*wave).next().is_none() { " complete" } else { "" };
            let head = format!("[plan {} {name} of {}{complete}]", state.spec.id, state.last_wave_number());
            format!("{}\n", flat(&format!("{head} {count}, {commit}")).bold())
        }
        PlanEvent::HandedOver { head: Some(head), .. } => {
            let branch = state.base.as_ref().and_then(|(_, branch)| branch.as_deref());
            note(&format!("{} is at {} now", branch.unwrap_or("the head"), head.short()))
        }
        PlanEvent::HandedOver { head: None, refused, .. } => {
            let why = refused.as_deref().unwrap_or("git did not do it");
            note(&format!("what landed is not on your branch yet, and the plan continues: {why}"))
        }
        PlanEvent::Hindered { error } => note(&format!("the plan cannot go on by itself: {error}")),
        PlanEvent::Asked { request, ask, by } => note(&phrase::asked_by(
            *by,
            match (ask, request) {
                (Ask::Pause(Urgency::AfterIteration), None) => {
                    "pausing after these iterations; Ctrl-C again ends the agents now and refunds their attempts"
                }
                (Ask::Pause(Urgency::AfterIteration), Some(_)) => "asked to pause after these iterations",
                (Ask::Pause(Urgency::Now), _) => "pausing now",
                (Ask::Cancel(Urgency::AfterIteration), _) => "asked to cancel after these iterations",
                (Ask::Cancel(Urgency::Now), _) => "cancelling now",
                (Ask::Steer(_) | Ask::Proceed | Ask::AllowHost(_) | Ask::Withdraw(_), _) => {
                    return String::new();
                }
            },
        )),
        PlanEvent::Ended(_) => closing(state),
        PlanEvent::Resumed { .. } => note("resumed"),
        PlanEvent::JournalTorn { bytes, .. } => {
            note(&format!("the journal's last {bytes} bytes were torn, and put aside"))
        }
        PlanEvent::JournalRestored { kept_as: None, .. } => {
            note("the journal had been deleted, and was written back")
        }
        PlanEvent::JournalRestored { kept_as: Some(kept_as), .. } => note(&format!(
            "another process had changed the journal: its version is kept as {}, and the journal was written back",
            printable(kept_as)
        )),
        PlanEvent::RunnerStarted { .. } => String::new(),
    }
}

pub(crate) fn header(spec: &PlanSpec, limits: &PlanLimits, width: Option<usize>) -> String {
    let each = &spec.each;
    let command = words(std::iter::once(&each.agent.program).chain(&each.agent.args));
    let mut until = format!(
        "every task is done, at most {} each and {} in all",
        phrase::iterations(limits.per_task),
        limits.total
    );
    if let Some(all) = limits.max_duration {
        until.push_str(&format!(", {all} in all"));
    }
    if let Some(cap) = limits.max_cost {
        until.push_str(&format!(", {cap} in all"));
    }
    let jobs = match (spec.jobs, spec.pipeline) {
        (1, _) => "one task after another".to_owned(),
        (jobs, false) => format!("up to {jobs} tasks at a time, wave after wave"),
        (jobs, true) => format!("up to {jobs} tasks at a time, each as soon as it may"),
    };
    let brief = &spec.brief;
    let files = brief.files.iter().filter(|file| Some(*file) != brief.document.as_ref());
    let read = brief.document.iter().chain(files).filter(|file| **file != spec.tasks);
    let read: Vec<_> = read.map(ToString::to_string).collect();
    let proof = match spec.commands().as_slice() {
        _ if spec.verifies() => crate::render::gates::intent(each),
        [] => "nothing: what lands is unverified (--verify CMD)".to_owned(),
        commands => format!("of single tasks: {}", commands.join("; ")),
    };
    let rows = [
        Row::exact("tasks", spec.tasks.to_string()),
        Row::exact("reads", read.join(", ")),
        Row::exact("runs", format!("{command} ({})", each.agent.kind)),
        Row::prose("model", each.agent.model.clone().unwrap_or_default()),
        Row::exact("in", each.project.to_string()),
        Row::prose("jobs", jobs),
        Row::prose("until", until),
        Row::prose("proof", proof),
    ];
    let rows = phrase::rows(&rows, "  ", 6, width);
    format!("{} {}\n{rows}", "plan".bold(), spec.id.bold())
}

fn size(state: &PlanState) -> String {
    let count =
        |count: usize, one, many| phrase::counted(u32::try_from(count).unwrap_or(u32::MAX), one, many);
    let all = state.waves.iter().map(|wave| wave.tasks.len()).sum();
    let landed = state.tasks.iter().filter(|task| matches!(task.stage, Stage::Landed { .. })).count();
    let landed = if landed > 0 { format!(", {landed} of them landed") } else { String::new() };
    format!("{} in {}{landed}", count(all, "task", "tasks"), count(state.waves.len(), "wave", "waves"))
}

fn begins(state: &PlanState, started: &TaskStarted) -> String {
    let task = state.task(&started.task);
    let title = task.map(|task| task.card.title.clone()).unwrap_or_default();
    let place = state.graph.index(&started.task);
    let wave = place.and_then(|place| state.wave_number(place));
    let wave = wave.map(|wave| format!(" wave {wave}")).unwrap_or_default();
    let round = if started.round > 1 { format!(" round {}", started.round) } else { String::new() };
    let complexity = task.and_then(|task| phrase::complexity(task.card.complexity));
    let complexity = complexity.map(|rated| format!("complexity {rated}, ")).unwrap_or_default();
    let marker = format!("[plan {}{wave} task {}{round}]", state.spec.id, started.task);
    let why = task.and_then(|task| task.again.as_ref()).map(|why| match why {
        Return::Conflict(_) => "it conflicted with what landed",
        Return::Failed(_) => "with what landed, its verification failed",
        Return::Tuned(_) => "a person said how it continues",
        Return::Resumed(_) => "it is tried again",
    });
    let why = why.map(|why| format!("; {why}")).unwrap_or_default();
    format!("{} {}\n", marker.bold(), flat(&format!("{title} ({complexity}loop {}{why})", started.id)))
}

fn ends(state: &PlanState, ended: &TaskEnded) -> String {
    let id = &ended.task;
    let cost = ended.cost.filter(|Usd(cost)| *cost > 0).map(|cost| format!(", {cost}")).unwrap_or_default();
    let spent = format!("{}{cost}", phrase::iterations(ended.iterations));
    match &ended.end {
        TaskEnd::Proven { tree } => {
            let word = if tree.is_some() { "is verified" } else { "claims to be done" };
            note(&format!("task {id} {word} after {spent}"))
        }
        TaskEnd::Stopped(_) => {
            let task = state.task(id);
            let why = task.and_then(|task| state.blocked_because(task)).unwrap_or_default();
            let tune = task.is_some_and(|task| state.awaits_tune(task));
            let word = if tune { "awaits a tune" } else { "is blocked" };
            let waiting = waiting_on(state);
            let line = flat(&format!("task {id} {word} after {spent}: {why}{waiting}"));
            format!("{} {}\n", phrase::in_charset("·").dimmed(), line.yellow())
        }
        TaskEnd::OutOfMoney => note(&format!("task {id} has spent what it was given, and gets what is left")),
        TaskEnd::CapReached { by } => note(&format!("task {id} waits for money: {}", by.sentence())),
        TaskEnd::Rests => {
            note(&format!("task {id} rests, and continues where it is with the plan's next runner"))
        }
        TaskEnd::Hindered { error } => note(&format!("task {id} cannot go on, and no other could: {error}")),
    }
}

fn waiting_on(state: &PlanState) -> String {
    let waits = |task: &&TaskState| matches!(task.stage, Stage::Waiting(_)) && task.is_hopeless;
    match state.tasks.iter().filter(waits).count() {
        0 => String::new(),
        1 => "; 1 task waits on what is blocked".to_owned(),
        count => format!("; {count} tasks wait on what is blocked"),
    }
}

/// Whether a task that did not fit goes back to its agent.
fn returned(task: Option<&TaskState>) -> String {
    match task {
        Some(task) if matches!(task.stage, Stage::Stopped(_)) => {
            format!(": for the {} time, so it is blocked", ordinal(task.returns))
        }
        Some(task) => format!(": it goes back to its agent ({} of {MAX_RETURNS})", task.returns),
        None => String::new(),
    }
}

fn ordinal(count: u32) -> String {
    match count {
        1 => "first".to_owned(),
        2 => "second".to_owned(),
        3 => "third".to_owned(),
        count => format!("{count}th"),
    }
}

fn verified(upto: usize, failed: Option<&str>, batch: Option<&Batch>) -> String {
    let tasks: Vec<_> = batch
        .iter()
        .flat_map(|batch| batch.merged.iter().take(upto))
        .map(|one| one.task.to_string())
        .collect();
    let which = match tasks.as_slice() {
        [one] => format!("task {one}"),
        several => format!("tasks {}", several.join(", ")),
    };
    match failed {
        None => note(&format!("{which} on what landed: verified")),
        Some(gate) => note(&format!("{which} on what landed: {gate} fails")),
    }
}

/// Why the next of a batch does not land.
fn held(state: &PlanState, task: &TaskId, refused: Option<&str>, batch: &Batch) -> Option<String> {
    if let Some(why) = refused {
        return Some(format!("task {task} may not land: {why}"));
    }
    let (_, failed) = batch.bad.as_ref()?;
    let back = returned(state.task(task));
    Some(format!("task {task} is what makes {} fail with what landed{back}", failed.gate))
}

fn closing(state: &PlanState) -> String {
    let view = view::plan::status(state, &Default::default(), Some(false), state.updated_at);
    let word = phrase::coloured(view.tone(), phrase::outcome(view.verification(), view.status));
    let (took, used) = (Millis::from(state.active), phrase::iterations(state.used));
    let has_cost = view.usage.cost_usd.is_some_and(|cost| cost > 0.0);
    let cost = view.usage.cost().filter(|_| has_cost).map(|cost| format!(", {cost}"));
    let cost = cost.unwrap_or_default();
    let omitted = match state.tasks.iter().filter(|task| task.is_not_tried()).count() {
        count if count > 0 && view.status == StatusWord::Completed => {
            format!(", without {count} of {} tasks,", view.tasks_total + count)
        }
        _ => String::new(),
    };
    let mut text = format!("{word}{omitted} after {used} in {took}{cost}: {}\n", flat(&view.reason));
    let id = &view.id;
    let next = view.needs.unwrap_or_else(|| match view.status {
        StatusWord::Completed => format!("refrain diff {id}, refrain report {id}, refrain plan status {id}"),
        _ => format!("refrain plan status {id}"),
    });
    text.push_str(&format!("  {} {next}\n", "next:".dimmed()));
    text
}

fn flat(text: &str) -> String {
    refrain_core::text::printable(text).replace('\n', " ")
}

#[cfg(test)]
#[path = "narrator_tests.rs"]
mod tests;
