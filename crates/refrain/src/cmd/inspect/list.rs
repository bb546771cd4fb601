use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::{self, Write};
use std::process::ExitCode;

use jiff::Timestamp;
use owo_colors::OwoColorize;
use refrain_app::resolve::remote_copy::list_at;
use refrain_app::{Code, Context, RequestError};
use refrain_core::LoopId;
use refrain_core::spec::Millis;
use refrain_core::text::printable;
use refrain_core::values::whole_number;
use refrain_core::view::{DamagedWord, Kind, StatusWord, Tone, Verification};
use refrain_engine::{Brief, Detail, ListEntry};

use crate::render::phrase;
use crate::render::table::{self, Column, CutPosition};
use crate::{out, pager};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  refrain list
  refrain list --all-projects")]
pub(crate) struct Args {
    /// The loops and plans of every project that Refrain has worked in
    #[arg(long)]
    all_projects: bool,
    /// Only the loops of this plan's tasks, which are hidden otherwise
    #[arg(long, value_name = "ID", conflicts_with = "all_projects")]
    plan: Option<LoopId>,
    /// Only archived loops and plans, which are hidden otherwise
    #[arg(long, conflicts_with_all = ["all_projects", "plan", "at"])]
    archived: bool,
    /// The loops that this git remote has: a name, a path or an address
    #[arg(long, value_name = "URL", conflicts_with_all = ["all_projects", "plan"])]
    at: Option<String>,
    /// Show at most N, running ones first
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = |text: &str| whole_number(text, 1..=u32::MAX))]
    limit: Option<u32>,
    /// Print an array of status objects, one a line
    #[arg(long)]
    json: bool,
}

/// Prints the list; damaged loops are named, and the rest is shown.
pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, RequestError> {
    let service = context.service()?;
    let detail = if args.json { Detail::Object } else { Detail::Line };
    let mut empty =
        if args.all_projects { "No loops in any project.\n" } else { "No loops in this project.\n" };
    let mut rows = match (&args.plan, &args.at) {
        (Some(plan), _) => {
            empty = "No loops of tasks of that plan, other than archived ones.\n";
            service.list_tasks(plan, detail)?
        }
        (None, Some(remote)) => {
            empty = "No loops at that remote.\n";
            list_at(context, &service, remote)?
        }
        (None, None) if args.archived => {
            empty = "No archived loops in this project.\n";
            service.list_archived(detail)?
        }
        (None, None) => service.list_with(args.all_projects, detail)?,
    };
    rows.sort_by_key(|row| !matches!(row, ListEntry::Loop(brief) if !brief.has_stopped()));
    let limit = args.limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
    let more = rows.len().saturating_sub(limit);
    rows.truncate(limit);
    let hidden = if args.archived { service.hidden_folders(&rows) } else { HashMap::new() };
    if args.json {
        rows.iter().for_each(tell_damaged);
        out::print_json_array(rows.iter().filter_map(object))?;
    } else if rows.is_empty() {
        out::print(empty);
    } else {
        print(context, &rows, &hidden, args.all_projects)?;
    }
    if args.archived && !args.json && !rows.is_empty() {
        let unless = if hidden.is_empty() { "" } else { "; an ID with a time is only for reading" };
        out::tell_note(format!(
            "refrain status ID shows one; refrain resume ID brings one back that can continue{unless}"
        ));
    }
    if more > 0 {
        out::tell_note(format!("{more} more; a larger --limit shows them"));
    }
    Ok(Code::Done.into())
}

/// Reports on standard error what cannot be read.
pub(crate) fn tell_damaged(row: &ListEntry) {
    if let ListEntry::Damaged(damaged) = row {
        out::tell_line("", &format!("refrain: {}: {}", damaged.id, damaged.reason));
    }
}

fn object(row: &ListEntry) -> Option<Cow<'_, str>> {
    match row {
        ListEntry::Loop(brief) => brief.object.as_deref().map(Cow::Borrowed),
        ListEntry::Damaged(damaged) => serde_json::to_string(damaged).ok().map(Cow::Owned),
    }
}

/// Prints for a terminal a table that fits it, through the pager if it is longer than the screen; else one line a loop, nothing cut
/// off, without colour unless that is forced. What is `hidden` is shown by the name of its folder in place of its id.
fn print(
    context: &Context,
    loops: &[ListEntry],
    hidden: &HashMap<usize, String>,
    with_project: bool,
) -> Result<(), RequestError> {
    let now = refrain_engine::now();
    let rows = loops.iter().enumerate().map(|(place, listed)| {
        let row = row(listed, now);
        match hidden.get(&place) {
            Some(folder) => Row { id: folder.into(), ..row },
            None => row,
        }
    });
    let Some(width) = out::terminal_width() else {
        let coloured = out::is_coloured();
        let mut lines = String::new();
        for row in rows {
            // Writing into a string does not fail.
            let _ = line(&mut lines, &row, with_project, coloured);
        }
        out::print_raw(lines.as_bytes());
        return Ok(());
    };
    let rows: Vec<Row> = rows.collect();
    let text = if with_project { grouped(rows, width) } else { table(&rows, width).concat() };
    // The line of the prompt stays in sight.
    if out::terminal_height().is_some_and(|height| text.lines().count() >= height) {
        return pager::page(context, &text);
    }
    out::print(&text);
    Ok(())
}

fn line(into: &mut String, row: &Row<'_>, with_project: bool, coloured: bool) -> fmt::Result {
    let Row { id, standing, iteration, changed, project, reason } = row;
    let (mut word, mut label) = (format!("{:<14}", row.word()), format!("{:<12}", row.label()));
    if coloured {
        (word, label) = (painted(*standing, &word), painted(*standing, &label));
    }
    write!(into, "{id:<24} {word} {label} {iteration:>7}  {changed:>12}  {reason}")?;
    if with_project {
        write!(into, "  {project}")?;
    }
    into.write_char('\n')
}

struct Row<'a> {
    id: Cow<'a, str>,
    /// Its status, and whether gates verified the work; none if it is damaged.
    standing: Option<(StatusWord, Option<bool>)>,
    iteration: String,
    changed: String,
    project: Cow<'a, str>,
    reason: Cow<'a, str>,
}

impl Row<'_> {
    fn word(&self) -> &'static str {
        self.standing.map_or(DamagedWord::Damaged.as_str(), |(status, _)| status.as_str())
    }

    /// How its result is labelled; a dash if there is none yet.
    fn label(&self) -> &'static str {
        match self.standing.map(|(status, verified)| Verification::of(status, verified)) {
            None | Some(Verification::Pending) => "-",
            Some(verification) => phrase::label(verification),
        }
    }
}

fn row(listed: &ListEntry, now: Timestamp) -> Row<'_> {
    match listed {
        ListEntry::Loop(brief) => Row {
            id: brief.id.as_str().into(),
            standing: Some((brief.status, brief.verified)),
            iteration: phrase::progress(brief.iteration, brief.max_iterations),
            changed: ago(brief.updated_at, now),
            project: flat(&brief.project),
            reason: reason(brief, now),
        },
        ListEntry::Damaged(damaged) => Row {
            id: flat(&damaged.id),
            standing: None,
            iteration: "-".to_owned(),
            changed: "-".to_owned(),
            project: flat(&damaged.project),
            reason: Cow::Owned(format!("{} ({})", flat(&damaged.reason), damaged.needs)),
        },
    }
}

/// A text in the colour of a row.
fn painted(standing: Option<(StatusWord, Option<bool>)>, text: &str) -> String {
    phrase::coloured(standing.map_or(Tone::Bad, |(status, verified)| Tone::of(status, verified)), text)
}

/// In its largest unit: a narrow table has more room for the reason.
fn ago(then: Timestamp, now: Timestamp) -> String {
    let millis = Millis::from(now.duration_since(then).unsigned_abs());
    match millis.0 {
        0..1_000 => "just now".to_owned(),
        1_000..10_000 => format!("{}s ago", millis.0 / 1_000),
        10_000.. => format!("{} ago", millis.to_string().split(' ').next().unwrap_or_default()),
    }
}

/// The reason of its status; for a plan, that it is one, and for a copy, how old that is.
fn reason(brief: &Brief, now: Timestamp) -> Cow<'_, str> {
    let reason = flat(&brief.reason);
    match (&brief.copy, brief.kind) {
        (Some(copy), _) => Cow::Owned(format!("{reason} ({})", flat(&copy.age(now)))),
        (None, Kind::Plan) => Cow::Owned(format!("plan: {reason}")),
        (None, Kind::Process | Kind::Session | Kind::Task) => reason,
    }
}

/// Makes the text fit for one line.
fn flat(text: &str) -> Cow<'_, str> {
    match printable(text) {
        text if text.contains('\n') => Cow::Owned(text.replace('\n', " ")),
        text => text,
    }
}

/// One table under one header; each project's loops are grouped under its name, so that the name is not cut on narrow
/// terminals either. Projects, like loops, are sorted by last change.
fn grouped(rows: Vec<Row<'_>>, width: usize) -> String {
    let mut places = HashMap::new();
    let mut projects: Vec<(Cow<'_, str>, Vec<Row<'_>>)> = Vec::new();
    for row in rows {
        let place = *places.entry(row.project.clone()).or_insert(projects.len());
        if place == projects.len() {
            projects.push((row.project.clone(), Vec::new()));
        }
        projects[place].1.push(row);
    }
    let names: Vec<(Cow<'_, str>, usize)> =
        projects.iter().map(|(name, rows)| (name.clone(), rows.len())).collect();
    let rows: Vec<Row<'_>> = projects.into_iter().flat_map(|(_, rows)| rows).collect();
    let mut lines = table(&rows, width).into_iter();
    let mut text: String = lines.next().into_iter().collect();
    for (project, count) in names {
        text.push_str(&format!("{}\n", table::cut(&project, width, CutPosition::Begin).underline()));
        text.extend(lines.by_ref().take(count));
    }
    text
}

/// The narrowest terminal on which the table begins with what is verified.
const WIDE: usize = 60;

/// The lines of a table that fits. An id is cut only if the terminal is narrower than the id.
fn table(rows: &[Row<'_>], width: usize) -> Vec<String> {
    let column = |title, cut, cell: for<'a> fn(&'a Row<'_>) -> &'a str| Column {
        title,
        cells: rows.iter().map(|row| Cow::Borrowed(cell(row))).collect(),
        cut,
        right: false,
        paint: &table::plain,
    };
    let status = |row: usize, cell: &str| painted(rows[row].standing, cell);
    let id = || column("ID", CutPosition::No, |row| &row.id);
    let word = || Column { paint: &status, ..column("STATUS", CutPosition::No, |row| row.word()) };
    let verified = || Column { paint: &status, ..column("VERIFIED", CutPosition::No, |row| row.label()) };
    let [first, second, third] =
        if width >= WIDE { [verified(), id(), word()] } else { [id(), word(), verified()] };
    let columns = [
        first,
        second,
        third,
        column("ITER", CutPosition::No, |row| &row.iteration),
        column("CHANGED", CutPosition::No, |row| &row.changed),
        column("REASON", CutPosition::End, |row| &row.reason),
    ];
    table::lines(&columns, Some(width))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn loops() -> Vec<Row<'static>> {
        let row = |id: &'static str, project: &'static str, status, reason: &'static str| Row {
            id: id.into(),
            standing: Some((status, None)),
            iteration: "12/20".to_owned(),
            changed: "5m 3s ago".to_owned(),
            project: project.into(),
            reason: reason.into(),
        };
        let done = "the agent made its promise; unverified, as no gate checks it";
        vec![
            row("claude-4f2a", "/home/somebody/work/a-project", StatusWord::Completed, done),
            row("mend-the-parser-of-dates", "/p", StatusWord::IterationCap, "20 iterations without a claim"),
            row("codex-77aa", "/home/somebody/work/a-project", StatusWord::Paused, "by a person or a signal"),
        ]
    }

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    #[rstest]
    #[case(200, &["VERIFIED", "ID", "STATUS", "ITER", "CHANGED", "REASON"], "as no gate checks it")]
    #[case(100, &["VERIFIED", "ID", "STATUS", "ITER", "CHANGED", "REASON"], "…")]
    #[case(80, &["VERIFIED", "ID", "STATUS", "ITER", "CHANGED"], "◐ unverified")]
    #[case(60, &["VERIFIED", "ID", "STATUS", "ITER"], "◐ unverified")]
    #[case(40, &["ID", "STATUS"], "completed")]
    #[case(30, &["ID"], "claude-4f2a")]
    #[case(10, &["ID"], "mend-the-…")]
    fn a_table_has_the_columns_that_fit(#[case] width: usize, #[case] titles: &[&str], #[case] part: &str) {
        let text = plain(&table(&loops(), width).concat());
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0].split_whitespace().collect::<Vec<_>>(), titles, "{text}");
        assert_eq!(lines.len(), 4, "{text}");
        assert!(lines.iter().all(|line| line.chars().count() <= width), "{text}");
        assert!(text.contains(part), "{text}");
        assert!(width < 24 || lines[2].contains("mend-the-parser-of-dates"), "ids are whole: {text}");
    }

    #[rstest]
    #[case(80, "/home/somebody/work/a-project")]
    #[case(40, "/home/somebody/work/a-project")]
    #[case(20, "…body/work/a-project")]
    fn loops_stand_under_their_projects(#[case] width: usize, #[case] project: &str) {
        let text = plain(&grouped(loops(), width));
        let id = if width < 24 { "mend-the-parser-of-…" } else { "mend-the-parser-of-dates" };
        let expected = ["ID", project, "claude-4f2a", "codex-77aa", "/p", id];
        assert_eq!(text.lines().count(), expected.len(), "{text}");
        for (line, part) in text.lines().zip(expected) {
            assert!(line.split_whitespace().any(|word| word == part), "{part}: {text}");
        }
    }
}
