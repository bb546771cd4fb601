//! The charts of one loop, by iteration.

use refrain_core::view::{Iteration, Status};

use super::{Chart, Point, Unit};
use crate::http::pages::loop_page::outcome;

/// How many iterations a chart has: the latest.
const MOST: usize = 100;

/// What the loop cost so far, and its limit.
pub(crate) fn cost(status: &Status) -> Option<Chart> {
    let mut sum = None;
    let mut points = points(status, |it| {
        sum = match (sum, it.usage.cost_usd) {
            (None, cost) => cost,
            (Some(sum), cost) => Some(sum + cost.unwrap_or(0.0)),
        };
        sum
    });
    if points.len() < 2 {
        return None;
    }
    for (at, it) in latest(status).iter().enumerate() {
        points[at].note = format!("this one {}", super::money(it.usage.cost_usd, it.usage.cost_at_least));
    }
    let cap = status.limits.max_cost.map(f64::from);
    Chart::line("Cost so far", Unit::Money, &points, cap).map(Chart::by_iteration)
}

/// The tokens that each iteration read and wrote.
pub(crate) fn tokens(status: &Status) -> Option<Chart> {
    #[expect(clippy::cast_precision_loss, reason = "no loop uses so many tokens")]
    let points = points(status, |it| match (it.usage.input_tokens, it.usage.output_tokens) {
        (None, None) => None,
        (read, said) => Some((read.unwrap_or(0) + said.unwrap_or(0)) as f64),
    });
    columns("Tokens", Unit::Tokens, "by iteration", &points)
}

/// How long each iteration took.
pub(crate) fn time(status: &Status) -> Option<Chart> {
    let points = points(status, |it| Some(it.ended_at?.duration_since(it.started_at).as_secs_f64() * 1000.0));
    columns("Time", Unit::Time, "by iteration", &points)
}

/// The tests that failed after each iteration, as far as they are known.
pub(crate) fn failing(counts: &[(String, Option<u64>)]) -> Option<Chart> {
    let point = |(label, count): &(String, Option<u64>)| Point {
        label: label.clone(),
        #[expect(clippy::cast_precision_loss, reason = "no project has so many tests")]
        value: count.map(|count| count as f64),
        note: String::new(),
        class: if *count == Some(0) { "passed" } else { "failed" },
    };
    let points: Vec<_> = counts.iter().map(point).collect();
    columns("Failing tests", Unit::Count, "after each iteration", &points)
}

/// None for one known value: it needs no chart.
fn columns(title: &'static str, unit: Unit, says: &str, points: &[Point]) -> Option<Chart> {
    let known = points.iter().filter(|point| point.value.is_some()).count();
    Chart::columns(title, unit, says.to_owned(), points).filter(|_| known > 1).map(Chart::by_iteration)
}

fn latest(status: &Status) -> &[Iteration] {
    let all = status.iterations.as_deref().unwrap_or_default();
    &all[all.len().saturating_sub(MOST)..]
}

fn points(status: &Status, mut value: impl FnMut(&Iteration) -> Option<f64>) -> Vec<Point> {
    // A sum counts those before, too.
    let all = status.iterations.iter().flatten().map(|it| Point {
        label: it.id().to_string(),
        value: value(it),
        note: outcome(status, it),
        class: "",
    });
    let mut all: Vec<_> = all.collect();
    all.drain(..all.len().saturating_sub(MOST));
    all
}
