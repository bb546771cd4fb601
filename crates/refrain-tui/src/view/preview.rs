//! The selected loop or plan beside the list, on screens that are wide enough.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Stylize;
use ratatui::text::{Line, Span};
use refrain_core::view::{Tone, Verification, progress};
use refrain_engine::{Entry, ListRow};

use super::parts::{bar, gates, money, of_tone, put, split, title, worked};
use super::{loop_page, plan};
use crate::model::{Key, Model, OpenView, seen};
use crate::text::{flat, wrapped};

/// How many columns a screen has at least that shows both.
const WIDE: u16 = 110;
/// How many cells the bar of iterations has.
const CELLS: usize = 20;

/// The areas of the list and of the detail beside it; none on a narrow screen.
pub(super) fn sides(area: Rect) -> (Rect, Option<Rect>) {
    if area.width < WIDE || area.height < 8 {
        return (area, None);
    }
    // The list is as wide as its columns need; the detail has the rest.
    let list = (area.width * 11 / 20).clamp(72, 150);
    let detail = Rect { x: area.x + list + 2, width: area.width - list - 2, ..area };
    (Rect { width: list, ..area }, Some(detail))
}

pub(super) fn draw(model: &Model, entry: Option<&Entry>, buffer: &mut Buffer, area: Rect) {
    let is_it =
        |view: &&OpenView| view.is_told() && entry.and_then(seen).map(Key::of).as_ref() == Some(view.key());
    let beside = model.beside.as_ref().filter(is_it);
    if let Some(OpenView::Loop(one)) = beside {
        loop_page::draw(model, one, buffer, area);
        return;
    }
    if let Some(OpenView::Plan(one)) = beside {
        plan::draw(model, one, buffer, area);
        return;
    }
    let (head, body) = split(area);
    let (name, lines) = match entry {
        None => return,
        Some(Entry::Damaged(name, why)) => (flat(name), vec![Line::from(flat(why)).red()]),
        Some(Entry::Seen(seen)) => (seen.brief.id.to_string(), facts(model, seen, area.width.into())),
    };
    put(buffer, head, 0, &title(&name, head.width, false));
    let lines = lines.iter().flat_map(|line| wrapped(line, area.width.into()));
    (0..body.height).zip(lines).for_each(|(row, line)| put(buffer, body, row, &line));
}

fn facts(model: &Model, seen: &ListRow, columns: usize) -> Vec<Line<'static>> {
    let ListRow { brief, facts, said, .. } = seen;
    let verification = Verification::of(brief.status, brief.verified);
    let tone = of_tone(Tone::of(brief.status, brief.verified));
    let all = brief.max_iterations.map(u64::from);
    let mut lines = vec![
        Line::from(Span::styled(verification.label_or(brief.status, model.art.charset()), tone)),
        Line::from(flat(&brief.reason)),
    ];
    lines.extend(facts.needs.as_ref().map(|needs| Line::from(format!("next: {}", flat(needs))).yellow()));
    lines.push(Line::default());
    let mut fact = |name: &'static str, value: Vec<Span<'static>>| {
        lines.push(Line::from([vec![Span::from(format!("{name:<10} ")).dim()], value].concat()));
    };
    fact("project", vec![Span::from(flat(brief.project.rsplit('/').next().unwrap_or_default()))]);
    let cells = if all.is_some() { CELLS } else { 0 };
    let iterations = format!(
        "{} {}",
        bar(brief.iteration.into(), all, cells),
        progress(brief.iteration, brief.max_iterations)
    );
    fact("iterations", vec![Span::from(iterations.trim_start().to_owned())]);
    fact("time", vec![Span::from(worked(seen, model.now))]);
    if facts.usage.cost_usd.is_some() {
        fact("cost", vec![Span::from(money(facts.usage.cost_usd, facts.usage.is_more(brief.kind)))]);
    }
    if !facts.gates.is_empty() {
        let named: Vec<_> = facts.gates.iter().map(|gate| (gate.name.as_str(), gate.passed)).collect();
        fact("gates", gates(&named, columns.saturating_sub(11)));
    }
    if let Some(said) = said {
        lines.extend([Line::default(), Line::from(flat(said))]);
    }
    lines
}
