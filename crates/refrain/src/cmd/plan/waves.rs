use std::process::ExitCode;

use owo_colors::OwoColorize;
use refrain_app::plan::SourceArgs;
use refrain_app::{Code, Context, RequestError};
use refrain_core::plan::view::{InWave, Wave, Waves};
use refrain_core::text::printable;
use refrain_core::values;

use crate::out;
use crate::render::phrase;
use crate::render::table::{self, Column, CutPosition, plain};

/// Show which tasks can run in parallel, and in which order
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  refrain plan waves --tag my-feature
  refrain plan waves --plan PLAN.md --jobs 2")]
pub(crate) struct Args {
    #[command(flatten)]
    source: SourceArgs,
    /// How many tasks at a time; without it, as many as a wave has
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = values::jobs)]
    jobs: Option<u32>,
    /// Print an object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, RequestError> {
    let source = args.source.read(context, &mut out::tell_note)?;
    let errors: Vec<_> = source.problems.iter().filter(|problem| problem.is_error()).collect();
    if let Some((first, more)) = errors.split_first() {
        let more = if more.is_empty() { String::new() } else { format!(", and {} more", more.len()) };
        let error = format!("{} has no waves: {first}{more}", source.file.path);
        let hint = format!("refrain plan check{} lists all that is wrong", args.source.as_words());
        return Err(RequestError::new(Code::Failed, error).hint(hint));
    }
    let jobs = args.jobs.map(|jobs| usize::try_from(jobs).unwrap_or(usize::MAX));
    let waves = Waves::of(source.file.path.as_str(), &source.file.tag, &source.graph, jobs);
    match args.json {
        true => out::print_json(&waves)?,
        false => out::print(&text(&waves)),
    }
    Ok(Code::Done.into())
}

pub(super) fn text(waves: &Waves) -> String {
    if waves.tasks == 0 {
        return format!("{}: nothing is to do\n", flat(&waves.tag));
    }
    let mut text = String::new();
    for Wave { wave, tasks } in &waves.waves {
        text.push_str(&format!(
            "{}: {}\n",
            format!("Wave {wave}").bold(),
            counted(tasks.len(), "task", "tasks")
        ));
        for line in table::lines(&columns(tasks), out::terminal_width().map(|width| width.saturating_sub(2)))
        {
            text.push_str(&format!("  {line}"));
        }
    }
    let side_by_side = match waves.jobs {
        Some(jobs) => format!("{jobs} at a time"),
        None => "each wave at once".to_owned(),
    };
    let steps = counted(waves.rounds, "step", "steps");
    let able = waves.tasks - waves.waiting;
    let faster = match able == waves.rounds {
        true => "one task after another".to_owned(),
        false => format!("{} times as fast as one after another", waves.speed_up),
    };
    if able > 0 {
        let tasks = counted(able, "task", "tasks");
        text.push_str(&format!("{tasks} in {steps}, {side_by_side}: {faster}\n"));
    }
    if waves.waiting > 0 {
        let waiting = counted(waves.waiting, "task cannot begin", "tasks cannot begin");
        text.push_str(&format!("{waiting}: what comes before is not to be done as it stands\n"));
    }
    text
}

fn columns(tasks: &[InWave]) -> [Column<'_>; 4] {
    let column = |title, cut, right, cell: &dyn Fn(&InWave) -> String| Column {
        title,
        cells: tasks.iter().map(|task| cell(task).into()).collect(),
        cut,
        right,
        paint: &plain,
    };
    [
        column("ID", CutPosition::No, false, &|task| task.id.to_string()),
        column("COMPLEXITY", CutPosition::No, true, &|task| {
            phrase::complexity(task.complexity).unwrap_or_else(|| "-".to_owned())
        }),
        column("TITLE", CutPosition::End, false, &|task| flat(&task.title)),
        column("AFTER", CutPosition::End, false, &after),
    ]
}

/// The task's dependencies, and those that cannot be fulfilled.
fn after(task: &InWave) -> String {
    let on: Vec<_> = task.depends_on.iter().map(ToString::to_string).collect();
    match &task.waits_on {
        Some(stopped) => format!("{} (waits on {stopped})", on.join(", ")),
        None => on.join(", "),
    }
}

fn counted(count: usize, one: &str, many: &str) -> String {
    phrase::counted(u32::try_from(count).unwrap_or(u32::MAX), one, many)
}

fn flat(text: &str) -> String {
    printable(text).replace('\n', " ")
}
