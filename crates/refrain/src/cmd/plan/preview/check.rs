use std::process::ExitCode;

use owo_colors::OwoColorize;
use refrain_app::plan::PreparedPlan;
use refrain_app::{Code, Context, RequestError};
use refrain_core::plan::TaskReadiness;
use refrain_core::plan::view::{PlanCheck, PlanProblem};
use refrain_core::text::printable;

use super::LookArgs;
use crate::out;
use crate::render::phrase;

/// Check a plan for errors before anything is spent
///
/// It finds cycles, unknown and duplicate ids, tasks without a gate, specifications that are too long, and tasks that wait for one that
/// will not be done. The exit code is 1 if the plan cannot run as it is.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  refrain plan check --tag my-feature
  refrain plan check --plan PLAN.md --json")]
pub(crate) struct Args {
    #[command(flatten)]
    look: LookArgs,
    /// Print an object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(context: &Context, args: Args) -> Result<ExitCode, RequestError> {
    let prepared = args.look.prepare(context)?;
    let checked = check(context, &prepared)?;
    if !checked.ok {
        print(&checked, &prepared, args.json)?;
        return Ok(Code::Failed.into());
    }
    // The tasks are well, and may be unable to begin here all the same.
    if let Err(error) = check_start(context, &prepared) {
        print(&checked.that_cannot_begin(&error.message()), &prepared, args.json)?;
        return Err(error);
    }
    print(&checked, &prepared, args.json)?;
    Ok(Code::Done.into())
}

fn check_start(context: &Context, prepared: &PreparedPlan) -> Result<(), RequestError> {
    let each = &prepared.spec.each;
    prepared.service.check_gates(each, &each.gates)?;
    prepared.service.admit_repository(&prepared.spec)?;
    prepared.check_trust(context)
}

/// All problems of the plan's tasks.
pub(in crate::cmd::plan) fn check(
    context: &Context,
    prepared: &PreparedPlan,
) -> Result<PlanCheck, RequestError> {
    let texts = prepared.texts(context)?;
    let PreparedPlan { source, spec, .. } = prepared;
    let (file, graph) = (&source.file, &source.graph);
    let mut problems = source.problems.clone();
    if !spec.verifies() {
        problems.extend(graph.unverified());
    }
    let to_do = (0..graph.tasks().len()).filter(|at| graph.standing(*at) == TaskReadiness::ToDo);
    problems.extend(
        to_do.filter_map(|at| {
            texts.brief(graph, at).over_budget(&graph.tasks()[at].id, spec.brief.max_tokens)
        }),
    );
    Ok(PlanCheck::of(file.path.as_str(), &file.tag, graph, &problems))
}

pub(in crate::cmd::plan) fn print(
    checked: &PlanCheck,
    prepared: &PreparedPlan,
    json: bool,
) -> Result<(), RequestError> {
    match json {
        true => out::print_json(checked)?,
        false => out::print(&text(checked)),
    }
    prepared.notes.iter().for_each(|note| out::tell_line("", &format!("note: {note}")));
    Ok(())
}

fn text(checked: &PlanCheck) -> String {
    let PlanCheck { tag, tasks, to_do, waves, problems, .. } = checked;
    let counted =
        |count: usize, one, many| phrase::counted(u32::try_from(count).unwrap_or(u32::MAX), one, many);
    let flat = |text: &str| printable(text).replace('\n', " ");
    let mut text = format!(
        "{}: {}, {to_do} of them to do, in {}\n",
        flat(tag),
        counted(*tasks, "task", "tasks"),
        counted(*waves, "wave", "waves")
    );
    // The error that ends the command names that one.
    for problem in problems.iter().filter(|problem| problem.kind != PlanProblem::CANNOT_BEGIN) {
        let grade = if problem.error { "error".red().to_string() } else { "warning".yellow().to_string() };
        text.push_str(&format!("  {grade}: {}\n", flat(&problem.text)));
    }
    if problems.is_empty() {
        text.push_str("  nothing is wrong with it\n");
    }
    text
}
