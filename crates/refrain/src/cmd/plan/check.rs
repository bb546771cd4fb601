//! `refrain plan check`.

use std::process::ExitCode;

use owo_colors::OwoColorize;
use refrain_core::plan::view::Checked;
use refrain_core::text::printable;

use super::source::{Source, SourceArgs};
use crate::cli::Context;
use crate::error::{CliError, Code};
use crate::{out, phrase};

/// Look for what is wrong with a plan, before anything is spent
///
/// Found are tasks that wait for each other, ids that are not there or stand there twice, tasks that nothing would prove done,
/// and what waits on what nobody is going to do. Exits with 1 where the plan cannot be run as it is.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(flatten)]
    source: SourceArgs,
    /// The shell command that proves a task done that names none of its own
    #[arg(long, value_name = "CMD")]
    verify: Option<String>,
    /// Print an object
    #[arg(long)]
    json: bool,
}

/// Says all that is wrong.
pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CliError> {
    if args.verify.as_ref().is_some_and(|command| command.trim().is_empty()) {
        return Err(CliError::usage("--verify is empty; accepted is a shell command"));
    }
    let Source { file, verification, graph, mut problems } = args.source.read(context)?;
    if args.verify.is_none() && verification.is_none() {
        problems.extend(graph.unverified());
    }
    let checked = Checked::of(file.path.as_str(), &file.tag, &graph, &problems);
    match args.json {
        true => out::print_json(&checked)?,
        false => out::print(&text(&checked)),
    }
    Ok(if checked.ok { Code::Done } else { Code::Failed }.into())
}

fn text(checked: &Checked) -> String {
    let Checked { tag, tasks, to_do, waves, problems, .. } = checked;
    let counted =
        |count: usize, one, many| phrase::counted(u32::try_from(count).unwrap_or(u32::MAX), one, many);
    let flat = |text: &str| printable(text).replace('\n', " ");
    let mut text = format!(
        "{}: {}, {to_do} of them to do, in {}\n",
        flat(tag),
        counted(*tasks, "task", "tasks"),
        counted(*waves, "wave", "waves")
    );
    for problem in problems {
        let grade = if problem.error { "error".red().to_string() } else { "warning".yellow().to_string() };
        text.push_str(&format!("  {grade}: {}\n", flat(&problem.text)));
    }
    if problems.is_empty() {
        text.push_str("  nothing is wrong with it\n");
    }
    text
}
