//! The status of a plan as text: its facts, its waves with a bar each (seed 001, "SCUD Wave View"), current and blocked
//! tasks, and all its tasks.

use std::borrow::Cow;

use jiff::Timestamp;
use owo_colors::OwoColorize;
use refrain_core::plan::TaskId;
use refrain_core::spec::Millis;
use refrain_core::text::printable;
use refrain_core::view::plan::{CurrentTask, PlanStatus, TaskView, TaskWord, WaveView, WaveWord};
use refrain_core::view::{Charset, StatusWord, Tone, tell_task};
use textwrap::core::display_width;

use crate::out;
use crate::plan::leftovers;
use crate::render::event_text::{clock, words};
use crate::render::phrase::{self, Row};
use crate::render::table::{self, Column, CutPosition};
use crate::values::charset;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Art {
    /// The width in columns; none without a terminal.
    width: Option<usize>,
    blocks: bool,
}

impl Art {
    /// What standard output takes: blocks and lines where neither the locale nor the terminal speaks against it.
    pub(crate) fn current() -> Self {
        Self { width: out::terminal_width(), blocks: charset() == Charset::Unicode }
    }

    /// The width of the frame, on a terminal with room for one.
    fn frame(self) -> Option<usize> {
        const ROOM: std::ops::RangeInclusive<usize> = 40..=100;
        self.width.filter(|width| self.blocks && *width >= *ROOM.start()).map(|width| width.min(*ROOM.end()))
    }
}

/// How many waves, blocked tasks or tasks are shown one by one.
const SHOWN: usize = 20;

/// A narrower terminal has no room for all that is shown of a task.
const NARROW: usize = 70;

pub(crate) fn text(view: &PlanStatus, art: Art, now: Timestamp) -> String {
    let mut text = facts(view, art.width, now);
    if view.waves.is_empty() {
        return text;
    }
    let lines = waves(view, art, now);
    text.push('\n');
    match art.frame() {
        Some(width) => text.push_str(&framed(&format!("Plan: {}", flat(&view.tag)), &lines, width)),
        None => lines.iter().for_each(|line| text.push_str(&(phrase::broken("", 4, line, art.width) + "\n"))),
    }
    text.push('\n');
    text.push_str(&tasks(view, art.width));
    text
}

fn facts(view: &PlanStatus, width: Option<usize>, now: Timestamp) -> String {
    let pipeline = if view.pipeline { ", without waiting for waves" } else { "" };
    let proof = match view.verification.as_slice() {
        [] => "nothing checks it: what lands is unverified".to_owned(),
        commands => commands.join("; "),
    };
    let branch = view.branch.as_ref().map(|branch| format!("branch {branch}"));
    let commits = u32::try_from(view.wave_commits.len()).unwrap_or(u32::MAX);
    let commits = (commits > 0).then(|| phrase::counted(commits, "wave commit", "wave commits"));
    let usage = &view.usage;
    let used = phrase::progress(usage.iterations_used, Some(usage.iterations_granted));
    let cost = usage.cost().filter(|_| usage.cost_usd.is_some_and(|cost| cost > 0.0));
    let cap = view.limits.max_cost.map(|cap| format!(" of {cap}")).unwrap_or_default();
    let used = format!("{used} iterations{}", cost.map(|cost| format!(", {cost}{cap}")).unwrap_or_default());
    let mut rows = vec![
        Row::exact("plan", view.id.to_string()),
        Row::prose("status", format!("{}: {}", view.status.as_str(), view.reason)),
    ];
    rows.extend(questions(view));
    rows.extend([
        Row::exact("verified", phrase::label(view.verification()).to_owned()).with_tone(view.tone()),
        Row::exact("tasks", view.tasks_file.clone()),
        Row::prose("not read", view.tasks_refused.clone().unwrap_or_default()),
        Row::prose(
            "runs",
            format!("{} ({}), {} at a time{pipeline}", words(view.command.iter()), view.agent, view.jobs),
        ),
        Row::exact("proof", proof),
        Row::exact("in", view.project.clone()),
        Row::prose("git", branch.into_iter().chain(commits).collect::<Vec<_>>().join(", ")),
        Row::prose("behind", leftovers::behind(view).unwrap_or_default()),
        Row::prose("missing", leftovers::missing(view).unwrap_or_default()),
        Row::prose("unlanded", leftovers::branches(view).unwrap_or_default()),
        Row::prose("uncommitted", leftovers::uncommitted(view).unwrap_or_default()),
        Row::prose("left out", leftovers::left_out(view).unwrap_or_default()),
        Row::prose("used", used),
        Row::prose("likely", estimate(view).unwrap_or_default()),
        Row::exact("started", clock(view.started_at)),
        Row::exact("last event", clock(view.updated_at)),
    ]);
    if let Some(runner) = view.runner.as_ref().filter(|_| view.ended_at.is_none()) {
        let since = Millis::from(now.duration_since(view.updated_at).unsigned_abs());
        rows.push(Row::prose("runner", format!("{runner}, {}; quiet for {since}", runner.life())));
    }
    let look = || format!("refrain diff {0}, refrain report {0}", view.id);
    let next = view.needs.clone().or_else(|| (view.status == StatusWord::Completed).then(look));
    rows.push(Row::exact("next", next.unwrap_or_default()));
    phrase::rows(&rows, "", 12, width)
}

/// The questions of the agents of its tasks, each with the command that answers it.
fn questions(view: &PlanStatus) -> impl Iterator<Item = Row> {
    let asked = view.blocked.iter().filter_map(|task| Some((&task.task, task.question.as_ref()?)));
    asked.enumerate().map(|(at, (task, question))| {
        let name = if at == 0 { "question" } else { "" };
        let row = format!("task {task}: {question} ({})", tell_task(&view.id, task));
        Row::prose(name, row).with_tone(Tone::Attention)
    })
}

fn estimate(view: &PlanStatus) -> Option<String> {
    let estimate = view.estimate?;
    let from = u32::try_from(estimate.from_tasks).unwrap_or(u32::MAX);
    let from = phrase::counted(from, "task", "tasks");
    let left = estimate.left_ms;
    Some(match estimate.at {
        Some(at) => format!("through in {left}, at {} (from {from})", clock(at)),
        None => format!("{left} of work left (from {from})"),
    })
}

fn waves(view: &PlanStatus, art: Art, now: Timestamp) -> Vec<String> {
    let is_over = |wave: &&WaveView| matches!(wave.status, WaveWord::Complete | WaveWord::Blocked);
    let last_place = view.waves.len().saturating_sub(1);
    let blocked = || view.waves.iter().position(|wave| wave.status == WaveWord::Blocked);
    let current = view.waves.iter().position(|wave| !is_over(&wave)).or_else(blocked).unwrap_or(last_place);
    let number = |place: usize| view.waves.get(place).map_or(0, |wave| wave.wave);
    let not_tried: Vec<_> = view.not_tried().map(|task| &task.id).collect();
    let without = match not_tried.len() {
        0 => String::new(),
        count => format!(", {count} not tried"),
    };
    let mut lines = vec![
        format!("Wave {} of {}", number(current), number(last_place)).bold().to_string(),
        format!("Tasks: {}/{} completed{without}", view.tasks_done, view.tasks_total),
        String::new(),
    ];
    // The waves around the current one.
    let first = current.saturating_sub(SHOWN / 2).min(view.waves.len().saturating_sub(SHOWN));
    let last = (first + SHOWN).min(view.waves.len());
    if first > 0 {
        lines.push(format!("{} {first} waves before", phrase::in_charset("…")));
    }
    lines.extend(view.waves[first..last].iter().map(|it| wave(it, art)));
    if last < view.waves.len() {
        lines.push(format!("{} {} more waves", phrase::in_charset("…"), view.waves.len() - last));
    }
    if !view.current.is_empty() {
        // A plan without a runner continues these tasks when it is resumed.
        let (word, until) = match view.ended_at {
            None => ("Current", now),
            Some(ended) if view.status == StatusWord::Cancelled => ("Cancelled", ended),
            Some(ended) => ("Paused", ended),
        };
        lines.extend([String::new(), format!("{word} Tasks: {}", view.current.len())]);
        lines.extend(view.current.iter().flat_map(|task| at_work(task, until)));
    }
    if !view.blocked.is_empty() {
        lines.extend([String::new(), format!("Blocked Tasks: {}", view.blocked.len())]);
        for task in view.blocked.iter().take(SHOWN) {
            let (title, reason) = (flat(&task.title), flat(&task.reason));
            let tune = if task.awaits_tune { ", awaiting tune" } else { "" };
            let line = format!("  - Task {}: \"{title}\" ({reason}{tune})", task.task);
            lines.push(line.yellow().to_string());
        }
        lines.extend(more(view.blocked.len()));
    }
    let waiting: Vec<_> = view
        .tasks
        .iter()
        .filter(|task| task.status == TaskWord::WaitingOnBlocked)
        .map(|task| &task.id)
        .collect();
    if !not_tried.is_empty() {
        lines.push(format!("Not Tried: {}", named(&not_tried)));
    }
    if !waiting.is_empty() {
        lines.push(format!("Waiting on Blocked: {}", named(&waiting)));
    }
    lines
}

/// `Wave 2: ████████░░░░░░░░ In Progress (2/4 tasks)`.
fn wave(wave: &WaveView, art: Art) -> String {
    let cells = if art.width.is_some_and(|width| width < 60) { 8 } else { 16 };
    let full = (wave.tasks_done * cells).checked_div(wave.tasks_total).unwrap_or(cells);
    let (on, off) = if art.blocks { ("█", "░") } else { ("#", ".") };
    let bar = format!("{}{}", on.repeat(full), off.repeat(cells - full));
    let total = u32::try_from(wave.tasks_total).unwrap_or(u32::MAX);
    let (done, tasks) = (wave.tasks_done, phrase::counted(total, "task", "tasks"));
    let (bar, word) = match wave.status {
        WaveWord::Complete => (bar.green().to_string(), format!("Complete ({tasks})")),
        WaveWord::Blocked => (bar.yellow().to_string(), format!("Blocked ({done}/{tasks})")),
        WaveWord::InProgress => (bar.cyan().to_string(), format!("In Progress ({done}/{tasks})")),
        WaveWord::Pending => (bar.dimmed().to_string(), format!("Pending ({tasks})")),
    };
    let commit = wave.commit.as_deref().and_then(|commit| commit.get(..10));
    format!("Wave {}: {bar} {word}{}", wave.wave, commit.map(|it| format!(" {it}")).unwrap_or_default())
}

fn at_work(task: &CurrentTask, now: Timestamp) -> [String; 2] {
    let ran = Millis::from(now.duration_since(task.started_at).unsigned_abs());
    let round = if task.round > 1 { format!(", round {}", task.round) } else { String::new() };
    let at = phrase::progress(task.iteration, Some(task.max_iterations));
    let used = phrase::after(&phrase::used(&task.usage));
    let complexity = phrase::complexity(task.complexity).unwrap_or_else(|| "not rated".to_owned());
    let doing = task.reason.as_ref().map(|reason| format!(": {}", flat(reason))).unwrap_or_default();
    [
        format!("  - Task {}: {}", task.task, flat(&task.title).bold()),
        format!("    Complexity: {complexity}{round}, iteration {at} for {ran}{used}{doing}"),
    ]
}

/// The tasks, one a line: all of them, or, if there are many, those that are not done.
fn tasks(view: &PlanStatus, width: Option<usize>) -> String {
    let all: Vec<&TaskView> = view.tasks.iter().filter(|task| task.wave.is_some()).collect();
    let is_open = |task: &&&TaskView| task.status != TaskWord::Done;
    let shown: Vec<&TaskView> = match all.len() {
        0..=SHOWN => all.clone(),
        _ => all.iter().filter(is_open).take(SHOWN).copied().collect(),
    };
    let column = |title, cut, right, cell: &dyn Fn(&TaskView) -> String| Column {
        title,
        cells: shown.iter().map(|task| Cow::Owned(cell(task))).collect(),
        cut,
        right,
        paint: &table::plain,
    };
    let status = |row: usize, cell: &str| coloured(shown[row].status, cell);
    let mut columns = vec![
        column("TASK", CutPosition::No, false, &|task| task.id.to_string()),
        Column {
            paint: &status,
            ..column("STATUS", CutPosition::No, false, &|task| task.status.as_str().to_owned())
        },
        column("WAVE", CutPosition::No, true, &|task| {
            task.wave.map(|wave| wave.to_string()).unwrap_or_default()
        }),
        column("COMPLEXITY", CutPosition::No, true, &|task| {
            phrase::complexity(task.complexity).unwrap_or_else(|| "-".to_owned())
        }),
        column("ITERATIONS", CutPosition::No, true, &|task| task.iterations.to_string()),
        column("TITLE", CutPosition::End, false, &|task| flat(&task.title)),
        column("NOTE", CutPosition::End, false, &|task| note(view, task)),
    ];
    if width.is_some_and(|width| width < NARROW) {
        // What to do next is more useful.
        columns.retain(|column| column.title != "ITERATIONS");
    }
    let mut text = table::lines(&columns, width).concat();
    if shown.len() < all.len() {
        text.push_str(&format!(
            "{} {} more; refrain plan status {} --json has all\n",
            phrase::in_charset("…"),
            all.len() - shown.len(),
            view.id
        ));
    }
    text
}

fn note(view: &PlanStatus, task: &TaskView) -> String {
    let waits: Vec<_> = task.waits_for.iter().collect();
    match (&task.reason, waits.is_empty(), task.commit.as_deref().and_then(|commit| commit.get(..10))) {
        (Some(reason), ..) => flat(reason),
        (None, ..) if view.not_tried().any(|it| it.id == task.id) => {
            format!("{} in its task file", task.status.as_str())
        }
        (None, false, _) => format!("after {}", named(&waits)),
        (None, true, Some(commit)) => commit.to_owned(),
        (None, true, None) => String::new(),
    }
}

fn coloured(word: TaskWord, text: &str) -> String {
    match word {
        TaskWord::Done | TaskWord::Review => text.green().to_string(),
        TaskWord::InProgress | TaskWord::Landing => text.cyan().to_string(),
        TaskWord::Blocked | TaskWord::AwaitingTune | TaskWord::WaitingOnBlocked | TaskWord::Failed => {
            text.yellow().to_string()
        }
        TaskWord::Pending | TaskWord::Deferred | TaskWord::Cancelled | TaskWord::Expanded => text.to_owned(),
    }
}

fn named(ids: &[&TaskId]) -> String {
    let mut text = ids.iter().take(SHOWN).map(ToString::to_string).collect::<Vec<_>>().join(", ");
    text.extend(more(ids.len()).map(|more| format!(" {}", more.trim_start())));
    text
}

fn more(count: usize) -> Option<String> {
    (count > SHOWN).then(|| format!("  {} and {} more", phrase::in_charset("…"), count - SHOWN))
}

fn flat(text: &str) -> String {
    printable(text).replace('\n', " ")
}

/// The lines in a frame, wrapped if they do not fit.
fn framed(title: &str, lines: &[String], width: usize) -> String {
    let inner = width - 4;
    let rule =
        |left: char, right: char| format!("{left}{}{right}\n", "─".repeat(width - 2)).dimmed().to_string();
    let row = |line: &str| {
        let room = " ".repeat(inner.saturating_sub(display_width(line)));
        format!("{} {line}{room} {}\n", "│".dimmed(), "│".dimmed())
    };
    let mut text = rule('┌', '┐') + &row(&phrase::cut(title, inner)) + &rule('├', '┤');
    for line in lines {
        let options = textwrap::Options::new(inner).subsequent_indent("    ");
        textwrap::wrap(line, options).iter().for_each(|part| text.push_str(&row(part)));
    }
    text + &rule('└', '┘')
}

#[cfg(test)]
#[path = "status_text_tests.rs"]
mod tests;
