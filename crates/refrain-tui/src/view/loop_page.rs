//! One loop: its status, its attempts, and its events.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Style, Stylize};
use ratatui::text::{Line, Span};
use refrain_core::text::thousands;
use refrain_core::view::{Gate, Iteration, Status, active_by, sum};

use super::parts::{
    LOW, bar, duration, fitting, gates, length, money, of_tone, put, select, split, title, took, top,
};
use crate::model::{Model, OneLoop, Places};
use crate::text::{cut, fill, flat, wrapped};

/// How many failing gates are shown with what they printed.
const MOST_FAILING: usize = 2;
/// How many lines the reason of a status has at most.
const LONGEST_REASON: usize = 4;

pub(super) fn draw(model: &Model, one: &OneLoop, buffer: &mut Buffer, area: Rect) -> Places {
    let facts = facts(model, one, area);
    (0..).zip(&facts).for_each(|(row, line)| put(buffer, area, row, line));
    let used = u16::try_from(facts.len()).unwrap_or(u16::MAX).min(area.height);
    let rest = Rect { y: area.y + used, height: area.height - used, ..area };
    let all = one.attempts();
    let wanted = u16::try_from(all.len().max(1)).unwrap_or(u16::MAX).saturating_add(1);
    let above = match (area.height < LOW, one.at_attempts) {
        (true, true) => rest.height,
        (true, false) => 0,
        // The part that has the keys has the room.
        (false, true) => wanted.min(rest.height * 2 / 3),
        (false, false) => wanted.min((rest.height / 3).max(4)),
    };
    let attempts = Rect { height: above, ..rest };
    let text = Rect { y: rest.y + above, height: rest.height - above, ..rest };
    let (attempts, top) = draw_attempts(model, one, &all, buffer, attempts);
    let text = draw_activity(one, buffer, text);
    Places { text, attempts, top, ..Places::default() }
}

/// The facts of a loop, as many lines as there is room for.
fn facts(model: &Model, one: &OneLoop, area: Rect) -> Vec<Line<'static>> {
    let Some(status) = &one.status else {
        let why = match &one.over {
            Some(Some(why)) => flat(why),
            Some(None) => "there is nothing to be seen of it".to_owned(),
            None => "looking …".to_owned(),
        };
        return vec![Line::from(vec![
            Span::from(one.key.id.to_string()).bold(),
            Span::from(format!("  {why}")),
        ])];
    };
    let mut lines = vec![head(model, status, area.width.into())];
    // The needs are never cut.
    let needs = status.needs.as_ref().map(|needs| Line::from(format!("next: {}", flat(needs))).yellow());
    let needs = needs.map(|needs| wrapped(&needs, area.width.into()));
    if area.height >= LOW {
        lines.extend(
            wrapped(&Line::from(flat(&status.reason)), area.width.into()).into_iter().take(LONGEST_REASON),
        );
        lines.extend(needs.into_iter().flatten());
        let goal = one.goal.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let mut fact = |name: &'static str, value: &str| {
            let value = cut(value, usize::from(area.width).saturating_sub(name.len())).into_owned();
            lines.push(Line::from(vec![Span::from(name).dim(), Span::from(value)]));
        };
        fact("goal  ", &flat(goal));
        fact("runs  ", &runs(status));
        if !status.gates.is_empty() {
            let mut spans = vec![Span::from("gates ").dim()];
            spans.extend(with_durations(&status.gates, usize::from(area.width).saturating_sub(6)));
            lines.push(Line::from(spans));
            lines.extend(failing(&status.gates, area.width.into()));
        }
        return lines;
    }
    match needs {
        Some(needs) => lines.extend(needs),
        None if area.height > 6 => lines.push(Line::from(flat(&status.reason)).dim()),
        None => {}
    }
    if area.height > 10 && !status.gates.is_empty() {
        let named: Vec<_> = status.gates.iter().map(|gate| (gate.name.as_str(), gate.passed)).collect();
        lines.push(Line::from(gates(&named, area.width.into())));
    }
    lines
}

/// Why the gates that decide did not pass, and the last line that each printed.
fn failing(all: &[Gate], columns: usize) -> impl Iterator<Item = Line<'static>> {
    let failing = all.iter().filter(|gate| gate.hard && !gate.passed).take(MOST_FAILING);
    failing.map(move |gate| {
        let why = gate.why.as_deref().unwrap_or("failed");
        let before = if gate.failed_before == Some(true) { ", failed before too" } else { "" };
        let text = format!("      {}: {} ({why}{before})", gate.name, gate.preview);
        Line::from(cut(&flat(&text), columns).into_owned()).red()
    })
}

fn head(model: &Model, status: &Status, columns: usize) -> Line<'static> {
    let worked = active_by(model.now, status.status, (status.active, status.updated_at));
    let style = of_tone(status.tone());
    let label = status.verification().label_or(status.status, model.art.charset());
    let all = status.max_iterations.map(u64::from);
    let tokens = match (status.usage.input_tokens, status.usage.output_tokens) {
        (None, None) => String::new(),
        (input, output) => {
            let words =
                format!("{} in {} out", thousands(input.unwrap_or(0)), thousands(output.unwrap_or(0)));
            sum(&words, status.usage.tokens_at_least)
        }
    };
    let cells = if columns >= 70 { 16 } else { 8 };
    let mut spans = vec![
        Span::from(status.id.to_string()).bold(),
        Span::from("  "),
        Span::styled(label, style),
        Span::from("  "),
        Span::styled(bar(status.iteration.into(), all, if all.is_some() { cells } else { 0 }), style),
        Span::from(format!(" {}", status.progress())),
        Span::from(format!("  {}", length(worked))),
    ];
    for part in [status.usage.cost().unwrap_or_default(), tokens] {
        if !part.is_empty() {
            spans.push(Span::from(format!("  {part}")));
        }
    }
    fitting(spans, columns)
}

/// The agent and the folder.
fn runs(status: &Status) -> String {
    let model = status.model.as_ref().map(|model| format!(" {}", flat(model))).unwrap_or_default();
    let branch = status.branch.as_ref().map(|branch| format!(", on {}", flat(branch))).unwrap_or_default();
    let runner = status.runner.as_ref().filter(|_| status.ended_at.is_none());
    let runner = runner.map(|runner| format!(", by {runner}")).unwrap_or_default();
    format!("{}{model}{branch}{runner}", status.agent)
}

fn with_durations(all: &[Gate], columns: usize) -> Vec<Span<'static>> {
    let named: Vec<_> = all
        .iter()
        .map(|gate| {
            let advisory = if gate.hard { "" } else { ", advisory" };
            let flaky = if gate.flaky { ", flaky" } else { "" };
            (format!("{} ({}{flaky}{advisory})", gate.name, duration(gate.duration_ms)), gate.passed)
        })
        .collect();
    let named: Vec<_> = named.iter().map(|(name, passed)| (name.as_str(), *passed)).collect();
    gates(&named, columns)
}

/// Draws the attempts; returns the places of their rows and the first one shown.
fn draw_attempts(
    model: &Model,
    one: &OneLoop,
    all: &[&Iteration],
    buffer: &mut Buffer,
    area: Rect,
) -> (Rect, usize) {
    if area.height == 0 {
        return (area, one.top);
    }
    let (under, rows) = split(area);
    let from = top(one.top, one.at(), rows.height.into(), all.len());
    let behind = all.len().min(from + usize::from(rows.height));
    let mut words = match all.len() > rows.height.into() {
        true => format!("Iterations {}-{behind} of {}", from + 1, all.len()),
        false => "Iterations".to_owned(),
    };
    if one.at_attempts {
        words.push_str(", enter opens the log");
    }
    put(buffer, under, 0, &title(&words, area.width, one.at_attempts));
    let is_interrupted = |it: &Iteration| one.status.as_ref().is_some_and(|status| status.is_interrupted(it));
    for (row, iteration) in (0..rows.height).zip(all[from..].iter()) {
        put(buffer, rows, row, &attempt(model, iteration, is_interrupted(iteration), area.width.into()));
        if one.at_attempts && from + usize::from(row) == one.at() {
            select(model.art, buffer, Rect { y: rows.y + row, height: 1, ..rows });
        }
    }
    (rows, from)
}

/// An attempt, in a line: which, how long, how it ended, what it used, its gates, and what it said last.
fn attempt(model: &Model, it: &Iteration, is_interrupted: bool, columns: usize) -> Line<'static> {
    let name = it.id().to_string();
    let exit = match (it.exit_code, it.signal, it.ended_at) {
        (Some(code), ..) => format!("exit {code}"),
        (None, Some(signal), _) => format!("signal {signal}"),
        (None, None, Some(_)) => String::new(),
        (None, None, None) if is_interrupted => "interrupted".to_owned(),
        (None, None, None) => "runs".to_owned(),
    };
    let style = match (it.exit_code, it.ended_at) {
        (Some(0), _) => Style::new(),
        (_, None) if !is_interrupted => Style::new().cyan(),
        _ => Style::new().yellow(),
    };
    let mut spans = vec![
        Span::from(fill(&name, 5)).bold(),
        Span::from(fill(&took(it.started_at, it.ended_at.unwrap_or(model.now)), 8)),
        Span::styled(fill(&exit, 10), style),
    ];
    let mut left = columns.saturating_sub(23);
    let refunded = it.ended_at.is_some() && !it.charged;
    let tokens = it.usage.output_tokens.map(|out| format!("{} out", thousands(out))).unwrap_or_default();
    let wide = [
        (if refunded { "refunded" } else { "" }.to_owned(), 9, refunded),
        (money(it.usage.cost_usd, it.usage.cost_at_least), 9, columns >= 60),
        (tokens, 10, columns >= 100),
    ];
    for (text, wide, is_shown) in wide {
        if is_shown && left > wide {
            spans.push(Span::from(fill(&text, wide)).dim());
            left -= wide;
        }
    }
    if columns >= 60 && !it.gates.is_empty() {
        let of: Vec<_> = it.gates.iter().map(|gate| (gate.name.as_str(), gate.passed)).collect();
        let gates = gates(&of, (left / 2).min(48));
        left = left.saturating_sub(gates.iter().map(Span::width).sum());
        spans.extend(gates);
    }
    let said = it.said().map(flat).unwrap_or_default();
    let claims = if it.claim.is_some() { "claims: " } else { "" };
    spans.push(Span::from(cut(&format!("{claims}{said}"), left).into_owned()));
    Line::from(spans)
}

fn draw_activity(one: &OneLoop, buffer: &mut Buffer, area: Rect) -> Rect {
    if area.height == 0 {
        return area;
    }
    let (under, text) = split(area);
    let mut words = "Activity".to_owned();
    if !one.activity.follows() {
        words.push_str(", stopped: f follows");
    }
    if !one.activity.search.is_empty() {
        words.push_str(&format!(", /{}: n and N look on", flat(&one.activity.search)));
    }
    if let Some(Some(why)) = &one.over {
        words.push_str(&format!(", {}", flat(why)));
    }
    put(buffer, under, 0, &title(&words, area.width, !one.at_attempts));
    let lines = one.activity.shown(area.width.into(), text.height.into());
    (0..).zip(&lines).for_each(|(row, line)| put(buffer, text, row, line));
    text
}
