use std::borrow::Cow;
use std::process::ExitCode;

use camino::Utf8PathBuf;
use clap::builder::TypedValueParser;
use jiff::tz::TimeZone;
use refrain_app::options::kinds::words;
use refrain_app::{Code, Context, RequestError};
use refrain_core::text::{printable, thousands};
use refrain_core::view::usage::{
    ElsewhereUsage, Group, GroupBy, Quartiles, ReflectionUsage, Report, Since, Stop, Sum,
};
use refrain_core::view::{self, metrics};

use refrain_engine::{Detail, ListEntry, UnreportedUsage, UsageScope, UsageSummary};

use crate::cmd::inspect::list::tell_damaged;
use crate::out;
use crate::render::phrase;
use crate::render::table::{self, Column, CutPosition};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  refrain usage --since 7d
  refrain usage --by model --all-projects")]
pub(crate) struct Args {
    /// Only what ended since then: a date like 2026-11-01, or how long ago, like 7d or 12h
    #[arg(long, value_name = "DUR|DATE", allow_hyphen_values = true)]
    since: Option<Since>,
    /// What to add up by; the format prometheus is broken down by everything except days
    #[arg(long, default_value = "day", value_parser = group())]
    by: GroupBy,
    /// The loops of every project that Refrain has worked in, not only of this one
    #[arg(long)]
    all_projects: bool,
    /// Print one object
    #[arg(long)]
    json: bool,
    /// How to print it; prometheus is for a scraper
    #[arg(long, value_enum, default_value_t = Format::Table, conflicts_with = "json")]
    format: Format,
    /// Draw what each group cost into this file, too; one that Refrain did not write stays as it is
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    svg: Option<Utf8PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// A table
    Table,
    /// One object
    Json,
    /// The text format of Prometheus
    Prometheus,
}

fn group() -> impl TypedValueParser<Value = GroupBy> {
    words([
        ("day", "The day on which an attempt ended", GroupBy::Day),
        ("project", "The project", GroupBy::Project),
        ("agent", "The agent", GroupBy::Agent),
        ("model", "The model, as the agent reported it", GroupBy::Model),
        ("pool", "What pays: the agent, how it is logged in, and a short name of its account", GroupBy::Pool),
    ])
}

/// Prints the sums, and names what could not be read.
pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, RequestError> {
    let is_scraped = args.format == Format::Prometheus;
    if is_scraped && args.since.is_some() {
        let error = "--since goes with no --format prometheus: what was used since then shrinks, and its counters may not";
        return Err(RequestError::usage(error).hint("accepted: --format table or json with --since"));
    }
    let service = context.service()?;
    // Unlike elsewhere its name is wanted, so it is looked up.
    let zone = TimeZone::system();
    let now = refrain_engine::now().to_zoned(zone.clone());
    let since = args.since.map(|since| since.moment(&now)).transpose();
    let since = since.map_err(|error| RequestError::usage(format!("--since: {error}")))?;
    let scope = if args.all_projects { UsageScope::All } else { UsageScope::Project };
    let UsageSummary { report, series, unread, untold } =
        service.used(scope, since, args.by, &zone, is_scraped)?;
    unread.iter().for_each(tell_damaged);
    for error in untold {
        let error = match error {
            UnreportedUsage::Config(error) => RequestError::from(error),
            UnreportedUsage::Caps(error) => RequestError::from(error),
            UnreportedUsage::LookingBack(error) => RequestError::from(error),
        };
        out::report(&error);
    }
    if let Some(file) = &args.svg {
        out::write_file(&context.dir, ("--svg", file), (&metrics::picture(&report), metrics::is_picture))?;
    }
    match args.format {
        Format::Json => out::print_json(&report)?,
        Format::Table if args.json => out::print_json(&report)?,
        Format::Table => out::print(&text(&report, &zone, out::terminal_width())),
        Format::Prometheus => {
            let loops = service.list_with(args.all_projects, Detail::Line)?;
            let words = loops.iter().filter_map(|row| match row {
                ListEntry::Loop(brief) => Some(brief.status),
                ListEntry::Damaged(_) => None,
            });
            out::print_whole(&metrics::prometheus(&report, &series, words))?;
        }
    }
    Ok(Code::Done.into())
}

fn text(report: &Report, zone: &TimeZone, width: Option<usize>) -> String {
    let what = report.project.as_deref().unwrap_or("all projects");
    let since = report.since.map(|since| since.to_zoned(zone.clone()).strftime(" since %Y-%m-%d %H:%M"));
    let since = since.map(|since| since.to_string()).unwrap_or_default();
    let what = format!("{}{since}, in {}", printable(what), report.time_zone);
    let mut text = phrase::broken("", 2, &what, width) + "\n";
    if !report.caps.is_empty() {
        text.push_str(&format!("today {}\n", phrase::caps(&report.caps)));
    }
    if let Some(ReflectionUsage { asked, cost_usd, at_least, without_cost: _ }) = &report.looking_back {
        let cost = view::money(*cost_usd, *at_least).unwrap_or_else(|| "an unknown amount".to_owned());
        text.push_str(&format!("beside that: {asked} times an agent looked back on a loop, for {cost}\n"));
    }
    if let Some(ElsewhereUsage { used, caps }) = &report.elsewhere {
        let loops = phrase::counted(u32::try_from(used.loops).unwrap_or(u32::MAX), "loop", "loops");
        let caps = caps.iter().map(|it| format!("; {} of {it} there today (UTC)", it.spent));
        let line = format!(
            "included: {} of {loops} on other machines, as of the last look at each{}",
            cost(used),
            caps.collect::<String>()
        );
        text.push_str(&(phrase::broken("", 2, &line, width) + "\n"));
    }
    if report.groups.is_empty() && report.stops.is_empty() {
        return text + "Nothing was used.\n";
    }
    let lines = table(report, width);
    text.extend(lines);
    let mut line = |line: &str| text.push_str(&(phrase::broken("", 2, line, width) + "\n"));
    if !report.stops.is_empty() {
        line(&stops(&report.stops));
    }
    if let Some(spread) = &report.iterations_to_done {
        line(&to_done(spread));
    }
    if let Some(share) = report.first_pass {
        let percent = (share.ratio() * 100.0).round();
        line(&format!("done in their first iteration: {} of {} ({percent} %)", share.loops, share.of));
    }
    if report.verified_loops > 0 {
        let count = u32::try_from(report.verified_loops).unwrap_or(u32::MAX);
        let cost = report.cost_per_verified_loop_usd;
        let each = view::money(cost, report.total.usage.cost_at_least);
        let each = each.map(|cost| format!(", {cost} spent for each")).unwrap_or_default();
        line(&format!("verified by their gates: {}{each}", phrase::counted(count, "loop", "loops")));
    }
    text
}

/// A row a group, and the total below.
fn table(report: &Report, width: Option<usize>) -> Vec<String> {
    let title = report.by.as_str().to_uppercase();
    let key =
        |group: &Group| group.key.as_deref().map_or("unknown".into(), |key| printable(key).into_owned());
    let mut rows: Vec<(String, &Sum)> = report.groups.iter().map(|group| (key(group), &group.used)).collect();
    rows.push(("total".to_owned(), &report.total));
    if let Some(width) = width {
        // The cost column is never cut, however narrow the terminal is.
        let money = rows.iter().map(|(_, sum)| cost(sum).len()).max().unwrap_or_default();
        let wide = width.saturating_sub(money + 2);
        rows.iter_mut().for_each(|(key, _)| *key = table::cut(key, wide, CutPosition::Begin).into_owned());
    }
    let column = |title, cell: fn(&Sum) -> String| Column {
        title,
        cells: rows.iter().map(|(_, sum)| Cow::Owned(cell(sum))).collect(),
        cut: CutPosition::No,
        right: true,
        paint: &table::plain,
    };
    let columns = [
        Column {
            cells: rows.iter().map(|(key, _)| Cow::Borrowed(key.as_str())).collect(),
            right: false,
            ..column(&title, |_| String::new())
        },
        column("COST", cost),
        column("ATTEMPTS", |sum| sum.attempts.to_string()),
        column("LOOPS", |sum| sum.loops.to_string()),
        column("TOKENS IN", |sum| tokens(sum, sum.usage.input_tokens)),
        column("TOKENS OUT", |sum| tokens(sum, sum.usage.output_tokens)),
    ];
    table::lines(&columns, width)
}

/// Unknown if no run reported a cost; a lower bound if only some did.
fn cost(sum: &Sum) -> String {
    sum.usage.cost().unwrap_or_else(|| unknown(sum))
}

fn tokens(sum: &Sum, count: Option<u64>) -> String {
    let words = |count| view::sum(&thousands(count), sum.usage.tokens_at_least);
    count.map_or_else(|| unknown(sum), words)
}

fn unknown(sum: &Sum) -> String {
    if sum.attempts == 0 { "-".to_owned() } else { "unknown".to_owned() }
}

fn stops(stops: &[Stop]) -> String {
    let stop = |stop: &Stop| {
        let why = stop.why.and_then(|why| serde_json::to_value(why).ok());
        let why = why.as_ref().and_then(|why| why.as_str()).map(|why| format!(" ({why})"));
        format!("{} {}{}", stop.loops, stop.status.as_str(), why.unwrap_or_default())
    };
    format!("stopped: {}", stops.iter().map(stop).collect::<Vec<_>>().join(", "))
}

fn to_done(spread: &Quartiles) -> String {
    let Quartiles { loops, min, p25, median, p75, max, sum: _ } = spread;
    if *loops == 1 || min == max {
        return format!("iterations to done: {min}");
    }
    // Of so few, quarters say nothing.
    if *loops < 4 {
        return format!("iterations to done: {median} (median; {min} to {max})");
    }
    format!("iterations to done: {median} (median; half of them {p25} to {p75}, all {min} to {max})")
}
