//! A plan: a graph of its waves, and its tasks with their agents.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Style, Stylize};
use ratatui::text::{Line, Span};
use refrain_core::plan::TaskId;
use refrain_core::view::plan::{PlanStatus, TaskView, TaskWord, WaveView, WaveWord, critical_path};

use refrain_core::view::{active_by, progress};

use super::parts::{LOW, bar, fitting, length, of_tone, put, select, title, took, top};
use crate::model::{Model, OnePlan, Places};
use crate::text::{cut, fill, flat, wrapped};

/// How wide a column of the graph is, and how far the next one is away.
const NARROWEST: usize = 17;
const WIDEST: usize = 44;
const GAP: usize = 2;

pub(super) fn draw(model: &Model, one: &OnePlan, buffer: &mut Buffer, area: Rect) -> Places {
    let Some(status) = &one.status else {
        let why = one.over.clone().flatten().map_or_else(|| "looking …".to_owned(), |why| flat(&why));
        put(buffer, area, 0, &Line::from(format!("{}  {why}", one.key.id)));
        return Places::default();
    };
    put(buffer, area, 0, &head(model, status, area.width.into()));
    let path = critical_path(&status.tasks);
    let named: Vec<String> = path.iter().map(ToString::to_string).collect();
    let critical = vec![Span::from("critical path  ").dim(), Span::from(flat(&named.join(" → ")))];
    let critical = (path.len() > 1).then(|| Line::from(critical));
    let is_above = area.height >= LOW;
    let used = if critical.is_some() && is_above { 2 } else { 1 };
    critical.iter().filter(|_| is_above).for_each(|line| put(buffer, area, 1, line));
    let rest = Rect { y: area.y + used, height: area.height.saturating_sub(used), ..area };
    let tasks = one.tasks();
    let at = one.cursor.min(tasks.len().saturating_sub(1));
    let (words, graph) = graph(status, &path, tasks.get(at).copied(), area.width.into());
    // If there is no room above, it scrolls with the waves.
    let within = critical.iter().filter(|_| !is_above);
    let within = within.flat_map(|line| wrapped(line, area.width.into()));
    let board: Vec<Line<'static>> = within.chain(graph).collect();
    let wanted = u16::try_from(board.len()).unwrap_or(u16::MAX).saturating_add(1);
    let above = match (area.height < LOW, one.at_board) {
        (true, true) => rest.height,
        (true, false) => 0,
        (false, true) => wanted.min(rest.height * 2 / 3),
        // The rows that the tasks leave, at least half.
        (false, false) => {
            let below = u16::try_from(tasks.len()).unwrap_or(u16::MAX).saturating_add(1);
            wanted.min(rest.height.saturating_sub(below).max(rest.height / 2))
        }
    };
    let mut places = Places { board: board.len(), ..Places::default() };
    if above > 0 {
        put(buffer, rest, 0, &title(&words, area.width, one.at_board));
        let text = Rect { y: rest.y + 1, height: above - 1, ..rest };
        let from = one.board_top.min(board.len().saturating_sub(text.height.into()));
        (0..text.height).zip(&board[from..]).for_each(|(row, line)| put(buffer, text, row, line));
        places.text = text;
    }
    let below = Rect { y: rest.y + above, height: rest.height - above, ..rest };
    if below.height > 0 {
        put(buffer, below, 0, &title("Tasks", area.width, !one.at_board));
        // The reason of the selected task is not cut if there is room.
        let note = if below.height >= 6 { 2 } else { 0 };
        let rows = Rect { y: below.y + 1, height: below.height - 1 - note, ..below };
        let top = top(one.top, at, rows.height.into(), tasks.len());
        for (row, task) in (0..rows.height).zip(tasks.iter().skip(top)) {
            put(buffer, rows, row, &line(model, status, task, path.contains(&task.id), area.width.into()));
            if top + usize::from(row) == at && !one.at_board {
                select(model.art, buffer, Rect { y: rows.y + row, height: 1, ..rows });
            }
        }
        (places.rows, places.top) = (rows, top);
        if let Some(task) = tasks.get(at).filter(|_| note > 0 && !one.at_board) {
            let text = Line::from(format!("{}: {}", task.id, said(status, task))).dim();
            let under = Rect { y: rows.bottom(), height: note, ..rows };
            (0..)
                .zip(wrapped(&text, area.width.into()))
                .for_each(|(row, line)| put(buffer, under, row, &line));
        }
    }
    places
}

/// The waves as columns of their tasks, as many as fit around the selected task, and the title over them.
fn graph(
    plan: &PlanStatus,
    path: &[TaskId],
    selected: Option<&TaskView>,
    columns: usize,
) -> (String, Vec<Line<'static>>) {
    let all = plan.waves.len();
    let fit = ((columns + GAP) / (NARROWEST + GAP)).clamp(1, all.max(1));
    let wide = ((columns + GAP) / fit).saturating_sub(GAP).min(WIDEST);
    let at = plan.waves.iter().position(|it| selected.is_some_and(|task| task.wave == Some(it.wave)));
    let from = at.unwrap_or(0).saturating_sub(fit / 2).min(all.saturating_sub(fit));
    let shown: Vec<&WaveView> = plan.waves.iter().skip(from).take(fit).collect();
    let of_wave = |wave: &&WaveView| -> Vec<&TaskView> {
        plan.tasks.iter().filter(|task| task.wave == Some(wave.wave)).collect()
    };
    let tasks: Vec<Vec<&TaskView>> = shown.iter().map(of_wave).collect();
    let mut lines = vec![Line::from(shown.iter().map(|wave| heading(wave, wide + GAP)).collect::<Vec<_>>())];
    for row in 0..tasks.iter().map(Vec::len).max().unwrap_or(0) {
        let cells = tasks.iter().flat_map(|tasks| match tasks.get(row) {
            Some(task) => {
                let is_selected = selected.is_some_and(|selected| selected.id == task.id);
                cell(plan, task, (path.contains(&task.id), is_selected), wide)
            }
            None => vec![Span::from(" ".repeat(wide + GAP))],
        });
        lines.push(Line::from(cells.collect::<Vec<_>>()));
    }
    let words =
        if fit < all { format!("Waves {}-{} of {all}", from + 1, from + fit) } else { "Waves".into() };
    (words, lines)
}

fn heading(wave: &WaveView, wide: usize) -> Span<'static> {
    let text = format!("Wave {}  {}/{}", wave.wave, wave.tasks_done, wave.tasks_total);
    let style = match wave.status {
        WaveWord::Complete => Style::new().green(),
        WaveWord::InProgress => Style::new().cyan(),
        WaveWord::Blocked => Style::new().yellow(),
        WaveWord::Pending => Style::new(),
    };
    Span::styled(fill(&text, wide), style.bold())
}

/// A task in the graph: whether it decides how long the plan takes, its status, its iteration, and its title.
fn cell(
    plan: &PlanStatus,
    task: &TaskView,
    (is_critical, is_selected): (bool, bool),
    wide: usize,
) -> Vec<Span<'static>> {
    let glyph = match task.status {
        TaskWord::Done | TaskWord::Review => "✓",
        TaskWord::InProgress | TaskWord::Landing => "●",
        TaskWord::Blocked | TaskWord::AwaitingTune | TaskWord::Failed => "✗",
        TaskWord::WaitingOnBlocked | TaskWord::Pending => "·",
        TaskWord::Deferred | TaskWord::Cancelled | TaskWord::Expanded => "-",
    };
    let current = plan.current.iter().find(|current| current.task == task.id);
    let current = current.map(|it| format!(" {}", progress(it.iteration, Some(it.max_iterations))));
    let text = flat(&format!("{}{} {}", task.id, current.unwrap_or_default(), task.title));
    let style = if is_selected { Style::new().bold().underlined() } else { Style::new() };
    let text = cut(&text, wide.saturating_sub(3)).into_owned();
    let rest = (wide + GAP).saturating_sub(3 + Span::from(text.as_str()).width());
    vec![
        Span::from(if is_critical { "▸" } else { " " }).bold(),
        Span::styled(format!("{glyph} "), of(task.status)),
        Span::styled(text, style),
        Span::from(" ".repeat(rest)),
    ]
}

fn head(model: &Model, status: &PlanStatus, columns: usize) -> Line<'static> {
    let worked = active_by(model.now, status.status, (status.active, status.updated_at));
    let style = of_tone(status.tone());
    let label = status.verification().label_or(status.status, model.art.charset());
    let (done, all) = (status.tasks_done, status.tasks_total);
    let bar = bar(done as u64, Some(all as u64), 12);
    let mut spans = vec![
        Span::from(format!("{}  ", status.id)).bold(),
        Span::styled(label, style),
        Span::from("  "),
        Span::styled(bar, style),
        Span::from(format!(" {done}/{all} tasks")),
        Span::from(format!("  {}", length(worked))),
    ];
    let cost = status.usage.cost().unwrap_or_default();
    if !cost.is_empty() {
        spans.push(Span::from(format!("  {cost}")));
    }
    if let Some(estimate) = status.estimate.filter(|_| !status.status.has_stopped()) {
        spans.push(Span::from(format!("  {} left", estimate.left_ms)));
    }
    let mut line = fitting(spans, columns);
    let left = columns.saturating_sub(line.width() + 2);
    // A narrower text is useless.
    if left >= 12 {
        line.push_span(Span::from(format!("  {}", cut(&flat(&status.reason), left))).dim());
    }
    line
}

/// A task in a line: id, status, agent, title, and why it is not done.
fn line(
    model: &Model,
    plan: &PlanStatus,
    task: &TaskView,
    is_critical: bool,
    columns: usize,
) -> Line<'static> {
    let current = plan.current.iter().find(|current| current.task == task.id);
    let who = match current {
        Some(at_work) => {
            let at = progress(at_work.iteration, Some(at_work.max_iterations));
            format!("{} {at} {}", plan.agent, took(at_work.started_at, model.now))
        }
        None if task.iterations == 1 => "1 iteration".to_owned(),
        None if task.iterations > 0 => format!("{} iterations", task.iterations),
        None => String::new(),
    };
    let mark = if is_critical { "▸" } else { " " };
    let wide = if columns >= 60 { 19 } else { 12 };
    let mut spans = vec![
        Span::from(mark).bold(),
        Span::from(fill(&flat(&task.id.to_string()), 8)),
        Span::styled(fill(task.status.as_str(), wide - 1), of(task.status)),
        Span::from(" "),
    ];
    let mut left = columns.saturating_sub(9 + wide);
    if left >= 40 {
        spans.push(Span::from(fill(&who, 24)));
        left -= 24;
    }
    let name = said(plan, task);
    spans.push(Span::from(cut(&name, left).into_owned()));
    Line::from(spans)
}

/// The title of a task, its current work, and why it is not done.
fn said(plan: &PlanStatus, task: &TaskView) -> String {
    let waits = || {
        let on: Vec<String> = task.waits_for.iter().map(ToString::to_string).collect();
        format!("after {}", on.join(", "))
    };
    let current = plan.current.iter().find(|current| current.task == task.id);
    let doing = current.and_then(|current| current.preview.clone().or_else(|| current.reason.clone()));
    let why = doing.or_else(|| task.reason.clone());
    let why = why.or_else(|| (!task.waits_for.is_empty()).then(waits)).unwrap_or_default();
    let name = flat(&task.title);
    if why.is_empty() { name } else { format!("{name}: {}", flat(&why)) }
}

fn of(word: TaskWord) -> Style {
    match word {
        TaskWord::Done | TaskWord::Review => Style::new().green(),
        TaskWord::InProgress | TaskWord::Landing => Style::new().cyan(),
        TaskWord::Blocked | TaskWord::AwaitingTune | TaskWord::WaitingOnBlocked | TaskWord::Failed => {
            Style::new().yellow()
        }
        TaskWord::Pending | TaskWord::Deferred | TaskWord::Cancelled | TaskWord::Expanded => Style::new(),
    }
}
