//! The list: all loops and plans, one in each row.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Style, Stylize};
use ratatui::text::{Line, Span};
use refrain_core::view::{Group, Kind, StatusWord, Tone, Verification};
use refrain_engine::{Entry, ListRow};

use refrain_core::view::progress;

use super::parts::{fitting, gates, money, of_tone, put, select, top, worked};
use super::preview;
use crate::model::{Model, Places, place, seen};
use crate::order::{Order, group_of};
use crate::text::{cut, fill, flat};

/// The columns of a row; those after the name are shown if there is room.
#[derive(Clone, Copy, Debug, Default)]
struct Columns {
    /// Of the marks, if there are any.
    mark: usize,
    name: usize,
    project: usize,
    status: usize,
    iteration: usize,
    time: usize,
    cost: usize,
    gates: usize,
    said: usize,
    goal: usize,
}

impl Columns {
    fn of(model: &Model, entries: &[&Entry], columns: usize, is_beside: bool) -> Self {
        let named = |entry: &&Entry| match entry {
            Entry::Seen(seen) => seen.brief.id.as_str().chars().count(),
            Entry::Damaged(name, _) => name.chars().count(),
        };
        let longest = entries.iter().map(named).max().unwrap_or(0);
        let name = longest.clamp(6, 28.min(columns / 4).max(10));
        let mark = if model.list.marked.is_empty() { 0 } else { 2 };
        let mut left = columns.saturating_sub(mark + name);
        let mut take = |wide: usize, behind: usize| {
            let fits = left >= wide + 1 + behind;
            left -= if fits { wide + 1 } else { 0 };
            if fits { wide } else { 0 }
        };
        let (status, iteration, time) = (take(15, 0), take(7, 0), take(8, 0));
        let project = if model.project.is_none() { take(14, 0) } else { 0 };
        let cost = take(8, 0);
        // The last word is worth more than all gates, and beside the detail, which has it, gates are.
        let gates = take(16, if is_beside { 0 } else { 20 });
        let goal = take(36, 22);
        // A narrower reason is useless, and the detail has it whole.
        let least = if is_beside { 20 } else { 8 };
        let said = Some(left.saturating_sub(1)).filter(|wide| *wide >= least).unwrap_or_default();
        Self { mark, name, project, status, iteration, time, cost, gates, said, goal }
    }
}

pub(super) fn draw(model: &Model, buffer: &mut Buffer, area: Rect) -> Places {
    let entries = model.list.shown();
    put(buffer, area, 0, &summary(model, area.width.into()));
    let (list, detail) =
        preview::sides(Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area });
    // The needs of the selected entry, if there is room and no detail beside the list.
    let note = u16::from(area.height >= 8 && detail.is_none()) * 2;
    let area = Rect { width: list.width, ..area };
    let rows = Rect { y: area.y + 2, height: area.height.saturating_sub(2 + note), ..area };
    let rows = rows.intersection(area);
    let columns = Columns::of(model, &entries, area.width.into(), detail.is_some());
    put(buffer, area, 1, &header(columns));
    let at = model.list.at();
    let top = top(model.list.top, at, rows.height.into(), entries.len());
    for (row, entry) in (0..rows.height).zip(entries.iter().skip(top)) {
        let before = (top + usize::from(row)).checked_sub(1).filter(|_| row > 0).map(|at| entries[at]);
        let mut line = match entry {
            Entry::Seen(seen) => line(model, seen, before, columns),
            Entry::Damaged(name, why) => damaged(name, why, columns),
        };
        if columns.mark > 0 {
            let is_marked = model.list.marked.contains(&place(entry));
            line.spans.insert(0, Span::from(if is_marked { "● " } else { "  " }).bold());
        }
        put(buffer, rows, row, &line);
        if top + usize::from(row) == at {
            select(model.art, buffer, Rect { y: rows.y + row, height: 1, ..rows });
        }
    }
    if entries.is_empty() {
        put(buffer, rows, 0, &Line::from(nothing(model)).dim());
    }
    if note > 0 {
        let under = Rect { y: rows.bottom(), height: note, ..area };
        for (row, line) in (0..).zip(said(entries.get(at).copied(), area.width.into())) {
            put(buffer, under, row, &line);
        }
    }
    if let Some(detail) = detail {
        let rule = Rect { x: detail.x - 2, width: 1, ..detail };
        (0..rule.height).for_each(|row| put(buffer, rule, row, &Line::from("│").dim()));
        preview::draw(model, entries.get(at).copied(), buffer, detail);
    }
    Places { rows, top, beside: detail.is_some(), ..Places::default() }
}

fn nothing(model: &Model) -> String {
    match (&model.list.trouble, model.list.is_read, model.list.filter.is_empty()) {
        (Some(why), ..) => flat(why),
        (None, false, _) => "looking …".to_owned(),
        (None, true, true) => "No loops yet. n starts one here; refrain start has all options.".to_owned(),
        (None, true, false) => format!("Nothing has {} in it; esc shows all", flat(&model.list.filter)),
    }
}

/// The title, and the number of entries by status.
fn summary(model: &Model, columns: usize) -> Line<'static> {
    let mut spans = vec![Span::from("Refrain ").bold()];
    let whose =
        model.project.as_deref().map_or("all projects", |path| path.rsplit('/').next().unwrap_or(path));
    spans.push(Span::from(flat(whose)));
    let all: Vec<&ListRow> = model.list.entries.iter().filter_map(seen).collect();
    let count = |is: &dyn Fn(&ListRow) -> bool| all.iter().filter(|seen| is(seen)).count();
    let labelled = |label| count(&|seen| verification(seen) == label);
    let parts = [
        (count(&|seen| group_of(seen) == Group::NeedsYou), "needs you", of_tone(Tone::Attention)),
        (count(&|seen| seen.brief.status == StatusWord::Running), "running", of_tone(Tone::Active)),
        (count(&|seen| seen.brief.status == StatusWord::Waiting), "waiting", of_tone(Tone::Active)),
        (labelled(Verification::Verified), "verified", of_tone(Tone::Good)),
        (labelled(Verification::Unverified), "unverified", Style::new().yellow()),
        (count(&|seen| group_of(seen) == Group::Stopped), "stopped", Style::new()),
        (model.list.entries.len() - all.len(), "damaged", of_tone(Tone::Bad)),
    ];
    if !model.list.filter.is_empty() {
        spans.push(Span::from(format!("  /{}", flat(&model.list.filter))).bold());
    }
    for (count, what, style) in parts.into_iter().filter(|(count, ..)| *count > 0) {
        spans.push(Span::styled(format!("  {count} {what}"), style));
    }
    fitting(spans, columns)
}

fn verification(seen: &ListRow) -> Verification {
    Verification::of(seen.brief.status, seen.brief.verified)
}

/// Only what needs you is emphasized.
fn style_of(seen: &ListRow) -> Style {
    match (group_of(seen), seen.brief.status) {
        (Group::NeedsYou, StatusWord::Blocked) => of_tone(Tone::Attention),
        (Group::Unverified, _) => Style::new().yellow(),
        (Group::Stopped, StatusWord::Paused | StatusWord::Cancelled | StatusWord::Moved) => {
            Style::new().dim()
        }
        (Group::Stopped, status) if status != StatusWord::Failed => Style::new(),
        _ => of_tone(Tone::of(seen.brief.status, seen.brief.verified)),
    }
}

fn header(columns: Columns) -> Line<'static> {
    let mut text = " ".repeat(columns.mark) + &fill("LOOP", columns.name);
    let parts = [
        (columns.project, "PROJECT"),
        (columns.status, "STATUS"),
        (columns.iteration, "ITER"),
        (columns.time, "TIME"),
        (columns.cost, "COST"),
        (columns.gates, "GATES"),
        (columns.said, "LAST WORD"),
        (columns.goal, "GOAL"),
    ];
    for (wide, name) in parts.into_iter().filter(|(wide, _)| *wide > 0) {
        text.push_str(&format!(" {}", fill(name, wide)));
    }
    Line::from(text).dim()
}

fn line(model: &Model, seen: &ListRow, before: Option<&Entry>, columns: Columns) -> Line<'static> {
    let ListRow { brief, facts, said, goal } = seen;
    let mut spans = vec![Span::from(fill(brief.id.as_str(), columns.name))];
    let mut add = |wide: usize, text: String, style: Style| {
        if wide > 0 {
            spans.push(Span::from(" "));
            spans.push(Span::styled(fill(&text, wide), style));
        }
    };
    let plain = Style::new();
    let label = verification(seen).label_or(brief.status, model.art.charset());
    let word = match brief.kind {
        Kind::Plan => format!("{label} plan"),
        // What it waits for says more than that it is blocked.
        _ if group_of(seen) == Group::NeedsYou && seen.facts.waits_for.is_some() => {
            format!("needs {}", seen.facts.waits_for.as_deref().unwrap_or_default())
        }
        Kind::Process | Kind::Session | Kind::Task => label.to_owned(),
    };
    let style = style_of(seen);
    let name = brief.project.rsplit('/').next().unwrap_or_default();
    // In the order of projects, a project is named once.
    let is_same =
        |before: &Entry| matches!(before, Entry::Seen(other) if other.brief.project == brief.project);
    match (model.list.order, before.is_some_and(is_same)) {
        (Order::Project, true) => add(columns.project, String::new(), plain),
        (Order::Project, false) => add(columns.project, flat(name), plain.bold()),
        (Order::Need | Order::Touched | Order::Cost | Order::Name, _) => {
            add(columns.project, flat(name), plain.dim());
        }
    }
    add(columns.status, word, style);
    add(columns.iteration, progress(brief.iteration, brief.max_iterations), plain);
    add(columns.time, worked(seen, model.now), plain);
    add(columns.cost, money(facts.usage.cost_usd, facts.usage.is_more(brief.kind)), plain);
    if columns.gates > 0 {
        let of: Vec<_> = facts.gates.iter().map(|gate| (gate.name.as_str(), gate.passed)).collect();
        let gates = gates(&of, columns.gates);
        let wide: usize = gates.iter().map(Span::width).sum();
        spans.push(Span::from(" "));
        spans.extend(gates);
        spans.push(Span::from(" ".repeat(columns.gates.saturating_sub(wide))));
        // The last one has a trailing space.
        if wide > columns.gates {
            spans.pop();
            spans.pop();
        }
    }
    if columns.said > 0 {
        let said = said.as_ref().filter(|_| !brief.has_stopped()).unwrap_or(&brief.reason);
        spans.push(Span::from(format!(" {}", fill(&flat(said), columns.said))));
    }
    if columns.goal > 0 {
        spans.push(Span::from(format!(" {}", cut(&flat(goal), columns.goal))).dim());
    }
    Line::from(spans)
}

fn damaged(name: &str, why: &str, columns: Columns) -> Line<'static> {
    let rest = columns.status + columns.said + columns.time + columns.cost + 8;
    Line::from(vec![
        Span::from(fill(&flat(name), columns.name)),
        Span::from(format!(" {}", cut(&format!("damaged: {}", flat(why)), rest))).red(),
    ])
}

/// The reason and the needs of the selected entry.
fn said(entry: Option<&Entry>, columns: usize) -> Vec<Line<'static>> {
    let fit = |text: &str| Line::from(cut(&flat(text), columns).into_owned());
    match entry {
        None => Vec::new(),
        Some(Entry::Damaged(_, why)) => vec![fit(why).red()],
        Some(Entry::Seen(seen)) => {
            let reason = fit(&seen.brief.reason).dim();
            let needs = seen.facts.needs.as_ref().map(|needs| fit(&format!("next: {needs}")).yellow());
            let said = seen.said.as_ref().map(|said| fit(said));
            std::iter::once(reason).chain(needs.or(said)).collect()
        }
    }
}
