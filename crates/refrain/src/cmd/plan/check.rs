//! `refrain plan check`.

use std::process::ExitCode;

use owo_colors::OwoColorize;
use refrain_core::plan::Standing;
use refrain_core::plan::brief::Brief;
use refrain_core::plan::view::Checked;
use refrain_core::text::printable;

use super::source::{Source, SourceArgs};
use super::spec_args::SpecArgs;
use crate::cli::Context;
use crate::error::{CliError, Code};
use crate::{out, phrase};

/// Look for what is wrong with a plan, before anything is spent
///
/// Found are tasks that wait for each other, ids that are not there or stand there twice, tasks that nothing would prove done,
/// tasks of which more is told than may be, and what waits on what nobody is going to do. Exits with 1 where the plan cannot be run as it is.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    spec: SpecArgs,
    /// Print an object
    #[arg(long)]
    json: bool,
}

/// Says all that is wrong.
pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CliError> {
    let source = args.source.read(context)?;
    let texts = args.spec.read(context, &args.source, &source)?;
    let Source { file, graph, mut problems, .. } = source;
    if texts.verification.is_empty() {
        problems.extend(graph.unverified());
    }
    let to_do = (0..graph.tasks().len()).filter(|at| graph.standing(*at) == Standing::ToDo);
    problems.extend(to_do.filter_map(|at| {
        let brief = Brief::of(&graph, at, texts.sources());
        brief.over_budget(&graph.tasks()[at].id, args.spec.max_spec_tokens)
    }));
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
