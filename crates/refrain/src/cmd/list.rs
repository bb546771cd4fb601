//! `refrain list`.

use std::borrow::Cow;
use std::process::ExitCode;

use jiff::Timestamp;
use owo_colors::OwoColorize;
use refrain_core::spec::Millis;
use refrain_core::text::printable;
use refrain_core::view::{Status, StatusWord};
use refrain_engine::{Listed, Service, chain};

use crate::cli::Context;
use crate::error::{CliError, Code};
use crate::{out, phrase};

/// List the loops of this project
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Those of every project that refrain has worked in
    #[arg(long)]
    all_projects: bool,
    /// Print an array of status objects
    #[arg(long)]
    json: bool,
}

/// Prints the list; what is damaged is named, and does not keep the rest from being shown.
pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CliError> {
    let service = context.service()?;
    let mut services = vec![service.clone()];
    if args.all_projects {
        let others = service.other_projects();
        services.extend(others.iter().filter_map(|root| Service::open(root, context.host.clone()).ok()));
    }
    let mut loops: Vec<Status> = Vec::new();
    for service in &services {
        for row in service.list()? {
            match row {
                Listed::Loop(status) => loops.push(*status),
                Listed::Damaged { name, error } => {
                    out::tell(&format!("refrain: {name}: {}\n", chain(&error)))
                }
            }
        }
    }
    if args.json {
        out::print_json(&loops)?;
    } else if loops.is_empty() {
        out::print("No loops in this project.\n");
    } else {
        out::print(&text(&loops, args.all_projects));
    }
    Ok(Code::Done.into())
}

/// For a terminal a table that fits it; else one plain line a loop, nothing cut off.
fn text(loops: &[Status], with_project: bool) -> String {
    let now = refrain_engine::now();
    let rows: Vec<Row> = loops.iter().map(|status| row(status, now, with_project)).collect();
    match out::terminal_width() {
        Some(width) => table(&rows, with_project, width),
        None => rows.iter().map(|row| line(row, with_project)).collect(),
    }
}

/// A loop, in words.
struct Row {
    id: String,
    status: StatusWord,
    iteration: String,
    changed: String,
    project: String,
    reason: String,
}

fn row(status: &Status, now: Timestamp, with_project: bool) -> Row {
    let flat = |text: &str| printable(text).replace('\n', " ");
    let ago = Millis::from(now.duration_since(status.updated_at).unsigned_abs());
    Row {
        id: status.id.to_string(),
        status: status.status,
        iteration: phrase::progress(status.iteration, status.max_iterations),
        changed: format!("{ago} ago"),
        project: if with_project { flat(&status.project) } else { String::new() },
        reason: flat(&status.reason),
    }
}

fn line(row: &Row, with_project: bool) -> String {
    let Row { id, status, iteration, changed, project, reason } = row;
    let project = if with_project { format!("  {project}") } else { String::new() };
    format!("{id:<24} {:<14} {iteration:>7}  {changed:>12}  {reason}{project}\n", status.as_str())
}

/// A column: its title, the text of each row, and whether that may be cut off at its end.
struct Column<'a> {
    title: &'static str,
    cells: Vec<&'a str>,
    may_be_cut: bool,
}

/// The narrowest that a column is cut to, in characters.
const NARROWEST: usize = 10;

/// As many columns as fit, from the left, under a header. Whole, but for texts whose begin says enough; an id is cut only
/// where the terminal is narrower than that alone.
fn table(rows: &[Row], with_project: bool, width: usize) -> String {
    let column = |title, may_be_cut, cell: fn(&Row) -> &str| Column {
        title,
        cells: rows.iter().map(cell).collect(),
        may_be_cut,
    };
    let mut columns = vec![
        column("ID", false, |row| &row.id),
        column("STATUS", false, |row| row.status.as_str()),
        column("ITERATION", false, |row| &row.iteration),
        column("CHANGED", false, |row| &row.changed),
    ];
    if with_project {
        columns.push(column("PROJECT", true, |row| &row.project));
    }
    columns.push(column("REASON", true, |row| &row.reason));

    let mut lines = vec![String::new(); rows.len() + 1];
    let mut left = width;
    for (k, column) in columns.iter().enumerate() {
        let gap = if k == 0 { 0 } else { 2 };
        let longest = column.cells.iter().chain([&column.title]).map(|cell| cell.chars().count()).max();
        let wanted = longest.unwrap_or_default();
        let room = left.saturating_sub(gap);
        let fits = wanted <= room || k == 0 || column.may_be_cut && room >= NARROWEST;
        if !fits {
            break;
        }
        let wide = wanted.min(room);
        left = room - wide;
        for (row, line) in lines.iter_mut().enumerate() {
            let status = row.checked_sub(1).and_then(|row| rows.get(row)).map(|row| row.status);
            let cell = row.checked_sub(1).map_or(column.title, |row| column.cells[row]);
            let cell = format!("{:<wide$}", cut(cell, wide));
            let cell = match (status, column.title) {
                (None, _) => cell.bold().to_string(),
                (Some(status), "STATUS") => phrase::coloured(status, &cell),
                (Some(_), _) => cell,
            };
            line.push_str(&" ".repeat(gap));
            line.push_str(&cell);
        }
    }
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// The begin of the text, at most `wide` characters, with an ellipsis where something was cut off.
fn cut(text: &str, wide: usize) -> Cow<'_, str> {
    if text.chars().count() <= wide {
        return Cow::Borrowed(text);
    }
    let begin: String = text.chars().take(wide.saturating_sub(1)).collect();
    Cow::Owned(format!("{begin}…"))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn loops() -> Vec<Row> {
        let row = |id: &str, status, reason: &str| Row {
            id: id.to_owned(),
            status,
            iteration: "12/20".to_owned(),
            changed: "5m 3s ago".to_owned(),
            project: "/home/somebody/work/a-project".to_owned(),
            reason: reason.to_owned(),
        };
        let done = "the agent made its promise; unverified, as no gate checks it";
        vec![
            row("claude-4f2a", StatusWord::Completed, done),
            row("mend-the-parser-of-dates", StatusWord::IterationCap, "20 iterations without a claim"),
        ]
    }

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    #[rstest]
    #[case(200, &["ID", "STATUS", "ITERATION", "CHANGED", "REASON"], "as no gate checks it")]
    #[case(80, &["ID", "STATUS", "ITERATION", "CHANGED", "REASON"], "…")]
    #[case(60, &["ID", "STATUS", "ITERATION"], "12/20")]
    #[case(40, &["ID", "STATUS"], "completed")]
    #[case(30, &["ID"], "claude-4f2a")]
    #[case(10, &["ID"], "mend-the-…")]
    fn a_table_has_the_columns_that_fit(#[case] width: usize, #[case] titles: &[&str], #[case] part: &str) {
        let text = plain(&table(&loops(), false, width));
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0].split_whitespace().collect::<Vec<_>>(), titles, "{text}");
        assert_eq!(lines.len(), 3, "{text}");
        assert!(lines.iter().all(|line| line.chars().count() <= width), "{text}");
        assert!(text.contains(part), "{text}");
        assert!(width < 24 || lines[2].starts_with("mend-the-parser-of-dates"), "ids are whole: {text}");
    }

    #[test]
    fn the_project_comes_before_the_reason() {
        let text = plain(&table(&loops(), true, 100));
        assert!(text.contains("PROJECT") && text.contains("/home/somebody/work/a-project"), "{text}");
    }
}
