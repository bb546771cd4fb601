//! What loops cost, and what came of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use jiff::ToSpan;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use refrain_core::text::{grouped, thousands};
use refrain_core::view::usage::{Group, GroupBy, Report, Sum};
use refrain_engine::now;

use super::links::{Pill, address, given, project_pills};
use crate::http::app_state::AppState;
use crate::http::pages::figures::{Chart, Point, Unit, money};
use crate::http::pages::frame::{Frame, PageQuery, page, shown};
use crate::requests::{Refusal, RequestHandler, UsageOf};

/// The most days that a chart shows.
const MOST_DAYS: usize = 92;
/// The periods to choose from.
const PERIODS: [(&str, &str); 4] = [("7d", "7 days"), DEFAULT_PERIOD, ("90d", "90 days"), ("all", "All")];
const DEFAULT_PERIOD: (&str, &str) = ("30d", "30 days");
/// What the table is by; the first is the default.
const TABLES: [GroupBy; 4] = [GroupBy::Project, GroupBy::Agent, GroupBy::Model, GroupBy::Day];

#[derive(Template)]
#[template(path = "usage.html")]
struct Page {
    frame: Frame,
    periods: Vec<Pill>,
    projects: Vec<Pill>,
    tables: Vec<Pill>,
    by: &'static str,
    /// A name, a number, and what it means.
    figures: Vec<(&'static str, String, String)>,
    days: Option<Chart>,
    rows: Vec<Row>,
    stops: Vec<(&'static str, String)>,
}

/// A group.
struct Row {
    name: String,
    cost: String,
    /// Its part of the largest cost, in thousandths.
    part: u64,
    loops: String,
    attempts: String,
    tokens: String,
}

pub(super) async fn show(State(state): State<Arc<AppState>>, asked: PageQuery) -> Response {
    let frame = Frame::of_all(&state).in_section("usage");
    let (project, period) = (given(&asked, "project"), given(&asked, "since"));
    let by = given(&asked, "by");
    let by = TABLES.into_iter().find(|it| by.as_deref() == Some(it.as_str())).unwrap_or(TABLES[0]);
    let (period, _) =
        PERIODS.into_iter().find(|(name, _)| period.as_deref() == Some(*name)).unwrap_or(DEFAULT_PERIOD);
    let look = move |handler: &RequestHandler| -> Result<_, Refusal> {
        let of = |by: GroupBy| UsageOf {
            since: (period != "all").then(|| period.to_owned()),
            by: Some(by.as_str().to_owned()),
            project: project.clone(),
        };
        let days = handler.usage(&of(GroupBy::Day))?;
        let table = if by == GroupBy::Day { days.clone() } else { handler.usage(&of(by))? };
        let link = |project: &str, period: &str, by: &str| {
            address("/usage", &[("since", period), ("by", by), ("project", project)])
        };
        let chosen = project.as_deref().unwrap_or_default();
        let projects =
            project_pills(handler.projects(), project.as_deref(), Some("All projects"), |project| {
                link(project, period, by.as_str())
            });
        let periods = PERIODS.map(|(name, label)| Pill {
            label: label.to_owned(),
            href: link(chosen, name, by.as_str()),
            is_chosen: name == period,
        });
        let tables = TABLES.map(|it| Pill {
            label: it.as_str().to_owned(),
            href: link(chosen, period, it.as_str()),
            is_chosen: it == by,
        });
        Ok((days, table, projects, Vec::from(periods), Vec::from(tables)))
    };
    let found = state.run_blocking(look).await;
    shown(&state, found, |(days, table, projects, periods, tables)| {
        page(&Page {
            frame,
            periods,
            projects,
            tables,
            by: by.as_str(),
            figures: figures(&days),
            days: chart(&days),
            stops: stops(&days),
            rows: rows(&table),
        })
    })
}

fn figures(report: &Report) -> Vec<(&'static str, String, String)> {
    let Sum { loops, attempts, usage, without_cost, .. } = &report.total;
    let unknown = match without_cost {
        0 => String::new(),
        count => format!("; the cost of {} is unknown", grouped(*count)),
    };
    let mut all = vec![
        (
            "Cost",
            money(usage.cost_usd, usage.cost_at_least),
            format!("{} attempts of {} loops{unknown}", grouped(*attempts), grouped(*loops)),
        ),
        ("Verified loops", grouped(report.verified_loops), "required gates passed on the work".to_owned()),
    ];
    if report.cost_per_verified_loop_usd.is_some() {
        let cost = money(report.cost_per_verified_loop_usd, report.cost_per_verified_loop_at_least);
        all.push(("Cost per verified loop", cost, "with all that failed".to_owned()));
    }
    if let Some(first) = report.first_pass {
        let says =
            format!("{} of {} completed loops took one iteration", grouped(first.loops), grouped(first.of));
        all.push(("First-pass rate", format!("{:.0}%", first.ratio() * 100.0), says));
    }
    if let Some(it) = &report.iterations_to_done {
        let says = match it.p25 == it.p75 {
            true => format!("of most loops, at most {}", it.max),
            false => format!("half took {} to {}, the longest {}", it.p25, it.p75, it.max),
        };
        all.push(("Iterations to done", it.median.to_string(), says));
    }
    all
}

/// How many loops stopped with each status.
fn stops(report: &Report) -> Vec<(&'static str, String)> {
    let mut all: Vec<(&'static str, u64)> = Vec::new();
    for stop in &report.stops {
        let word = stop.status.as_str();
        match all.iter_mut().find(|(other, _)| *other == word) {
            Some((_, count)) => *count += stop.loops,
            None => all.push((word, stop.loops)),
        }
    }
    all.into_iter().map(|(word, count)| (word, grouped(count))).collect()
}

/// A column for each day, also for those without a loop.
fn chart(report: &Report) -> Option<Chart> {
    let is_money = report.total.usage.cost_usd.is_some();
    let used: BTreeMap<Date, &Sum> =
        report.groups.iter().filter_map(|it| Some((it.key.as_ref()?.parse().ok()?, &it.used))).collect();
    let zone = TimeZone::system();
    let today = now().to_zoned(zone.clone()).date();
    let first = report.since.map(|since| since.to_zoned(zone).date()).or(used.keys().next().copied())?;
    let days = (0..MOST_DAYS as i64).map_while(|ago| today.checked_sub(ago.days()).ok());
    let mut days: Vec<_> = days.take_while(|day| *day >= first).collect();
    days.reverse();
    let point = |day: &Date| {
        let sum = used.get(day);
        let attempts = sum.map_or(0, |sum| sum.attempts);
        #[expect(clippy::cast_precision_loss, reason = "no day has so many attempts")]
        let value = match is_money {
            true => sum.map_or(Some(0.0), |sum| sum.usage.cost_usd),
            false => Some(attempts as f64),
        };
        Point {
            label: day.strftime("%b %-d").to_string(),
            value,
            note: format!("{} attempts", grouped(attempts)),
            class: "",
        }
    };
    let points: Vec<_> = days.iter().map(point).collect();
    let says = format!("last {} days, in the time zone {}", points.len(), report.time_zone);
    match is_money {
        true => Chart::columns("Cost by day", Unit::Money, says, &points),
        false => Chart::columns("Attempts by day", Unit::Count, says, &points),
    }
}

fn rows(report: &Report) -> Vec<Row> {
    let most = report.groups.iter().filter_map(|it| it.used.usage.cost_usd).reduce(f64::max).unwrap_or(0.0);
    let name = |it: &Group| match (&it.key, report.by) {
        (Some(key), GroupBy::Project) => key.rsplit('/').next().unwrap_or(key).to_owned(),
        (Some(key), _) => key.clone(),
        (None, _) => "unknown".to_owned(),
    };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is from 0 to 1000")]
    let part = |cost: f64| (cost / most.max(0.000_001) * 1000.0).clamp(0.0, 1000.0) as u64;
    let row = |it: &Group| {
        let usage = &it.used.usage;
        Row {
            name: name(it),
            cost: money(usage.cost_usd, usage.cost_at_least),
            part: part(usage.cost_usd.unwrap_or(0.0)),
            loops: grouped(it.used.loops),
            attempts: grouped(it.used.attempts),
            tokens: match (usage.input_tokens, usage.output_tokens) {
                (None, None) => "–".to_owned(),
                (read, said) => {
                    format!("{} / {}", thousands(read.unwrap_or(0)), thousands(said.unwrap_or(0)))
                }
            },
        }
    };
    let rows = report.groups.iter().map(row);
    if report.by == GroupBy::Day { rows.rev().collect() } else { rows.collect() }
}
