use std::process::ExitCode;

use refrain_app::plan::PreparedPlan;
use refrain_app::{Code, Context, RequestError};
use refrain_core::plan::Task;
use refrain_core::plan::brief::TaskBrief;
use refrain_core::prompt;
use refrain_core::text::nearest;

use super::LookArgs;
use crate::out;

/// Show the exact prompt of a task
///
/// That is the first prompt of its loop, as plan run with the same options makes it; with --name, to the byte. With --max-cost it
/// also says what may be spent.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  refrain plan show 2 --tag my-feature
  refrain plan show 2 --plan PLAN.md --json")]
pub(crate) struct Args {
    /// The task's id
    #[arg(value_name = "TASK")]
    task: String,
    #[command(flatten)]
    look: LookArgs,
    /// Print an object, with the parts and their tokens
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(context: &Context, args: Args) -> Result<ExitCode, RequestError> {
    let named = args.look.source.as_words();
    let prepared = args.look.prepare(context)?;
    let texts = prepared.texts(context)?;
    let PreparedPlan { source, spec, .. } = &prepared;
    let tasks = source.graph.tasks();
    let Some(at) = tasks.iter().position(|task| task.id.as_str() == args.task) else {
        return Err(no_task(&args.task, (&spec.tag, &named), tasks));
    };
    let (task, brief, most) = (&tasks[at], texts.brief(&source.graph, at), spec.brief.max_tokens);
    // Seen from a worktree, paths are the same in each.
    let folder = &spec.each.worktree;
    let mut loop_spec = spec.loop_spec(task, 1, folder, texts.prompt(&source.graph, at, &[]));
    loop_spec.limits.max_iterations = Some(spec.limits.per_task.min(spec.limits.total));
    let told = prompt::first(&loop_spec);
    if args.json {
        let file = source.file.path.as_str();
        out::print_json(&TaskBrief::of((file, &spec.tag, task), &brief, most, told))?;
    } else {
        out::print_whole(&told)?;
        if out::terminal_width().is_some() {
            out::print("\n");
        }
    }
    if let Some(warning) = brief.over_budget(&task.id, most) {
        out::tell_line("", &format!("refrain: warning: {warning}"));
    }
    Ok(Code::Done.into())
}

fn no_task(asked: &str, (tag, named): (&str, &str), tasks: &[Task]) -> RequestError {
    let error = RequestError::new(Code::NotFound, format!("there is no task {asked} in {tag}"));
    match nearest(asked, tasks.iter().map(|task| task.id.as_str())) {
        Some(meant) => error.hint(format!("did you mean {meant}?")),
        None => error.hint(format!("refrain plan waves{named} shows those that there are")),
    }
}
