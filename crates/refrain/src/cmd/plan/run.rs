//! `refrain plan run`, and `start --scud-tag` (seed 001): from what a person typed to a running plan.

use std::process::ExitCode;

use camino::Utf8PathBuf;
use refrain_core::{LoopId, values as core_values};

use super::prepare::{Asked, Prepared};
use super::source::SourceArgs;
use super::spec_args::SpecArgs;
use super::{drive, rehearsal};
use crate::cli::Context;
use crate::cmd::adapted::{Adapted, Difference};
use crate::cmd::git_args::GitArgs;
use crate::cmd::heading;
use crate::cmd::start::work::{PromiseArgs, TaskArgs, WordArgs, WorkArgs};
use crate::error::CliError;
use crate::out;
use crate::run::{self, ShowArgs};

/// Work on the tasks of a plan until every one is proven done and has landed
///
/// Each task is a loop with an agent of its own, in a worktree of its own. What is proven lands on a line of commits; what is
/// complete, wave by wave, is handed over to your branch. Without --agent or --command it runs Claude Code.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    plan: RunArgs,
    /// The same as --max-total-iterations
    #[arg(help_heading = heading::COST, long, visible_alias = "iterations", short = 'n', value_name = "N", allow_negative_numbers = true, value_parser = core_values::iteration, conflicts_with = "max_total_iterations")]
    max_iterations: Option<u32>,
    /// The plan's id; made up from the tag where it is left out
    #[arg(long, value_name = "ID")]
    name: Option<LoopId>,
    #[command(flatten)]
    work: WorkArgs,
    #[command(flatten)]
    words: Adapted<WordArgs, Refused>,
    #[command(flatten)]
    task: Adapted<TaskArgs, Refused>,
    #[command(flatten)]
    promise: Adapted<PromiseArgs, Refused>,
    #[command(flatten)]
    git: Adapted<GitArgs, Refused>,
    #[command(flatten)]
    show: ShowArgs,
}

const EXAMPLES: &str = "Examples:
  refrain plan run --tag my-feature \\
    --plan docs/my-feature.md \\
    --spec-file ARCHITECTURE.md \\
    --verify \"cargo check && cargo test\"
  refrain plan run --plan PLAN.md \\
    --jobs 4 --max-cost 20 --detach";

// How the tasks of a plan are worked on.
#[derive(Debug, clap::Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    spec: SpecArgs,
    #[command(flatten)]
    how: HowArgs,
}

// The same, less what their agents are told.
#[derive(Debug, Default, clap::Args)]
pub(super) struct HowArgs {
    /// How many tasks are worked on at a time, 1 to 64; as many as cores and memory allow, 8 at most, where it is left out
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(super) jobs: Option<u32>,
    /// Start a task as soon as its own dependencies have landed, and not with its wave
    #[arg(long)]
    pub(super) pipeline: bool,
    /// How many iterations one task may take; 3 where it is left out
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = core_values::iteration)]
    pub(super) max_iterations_per_task: Option<u32>,
    /// How many iterations all tasks may take together; 100 where it is left out
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = core_values::iteration)]
    pub(super) max_total_iterations: Option<u32>,
    /// Have a task that is used up wait for words of yours (refrain plan tune) in place of being blocked
    #[arg(long)]
    pub(super) tune: bool,
    /// Show what would be done, and do nothing of it
    #[arg(long)]
    dry_run: bool,
}

/// Of options that loops have and plans do not: accepted, so that the refusal can say why, and not offered.
#[derive(Debug)]
pub(crate) struct Refused;

impl Difference for Refused {
    fn of(arg: clap::Arg) -> clap::Arg {
        arg.hide(true)
    }
}

// Whose tasks, where `start` is to work on a plan.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = heading::PLAN)]
pub(crate) struct ByTag {
    /// Work on all tasks of this tag, as refrain plan run does; needs neither --command nor --prompt
    #[arg(long, value_name = "TAG")]
    scud_tag: Option<String>,
    /// The plan that the tasks belong to, in Markdown
    #[arg(long, value_name = "FILE")]
    plan: Option<Utf8PathBuf>,
    #[command(flatten)]
    run: Adapted<RunArgs, WithTag>,
}

/// Of options that mean nothing without a tag.
#[derive(Debug)]
pub(crate) struct WithTag;

impl Difference for WithTag {
    fn of(arg: clap::Arg) -> clap::Arg {
        arg.help_heading(heading::PLAN)
    }
}

impl ByTag {
    /// Whose tasks, and how, where a plan is asked for.
    pub(crate) fn asked(&self) -> bool {
        self.scud_tag.is_some()
    }

    /// What `plan run` would have been told.
    pub(crate) fn into_parts(self) -> (SourceArgs, RunArgs) {
        (SourceArgs { tag: self.scud_tag, plan: self.plan }, self.run.args)
    }
}

/// Works on the plan.
pub(crate) fn run(context: &Context, args: Args) -> Result<ExitCode, CliError> {
    let Args { source, plan, max_iterations, name, work, show, .. } = args;
    run_plan(context, (source, plan), name, max_iterations, work, show)
}

/// Starts the plan and drives it, here or in a process of its own.
pub(in crate::cmd) fn run_plan(
    context: &Context,
    (source, plan): (SourceArgs, RunArgs),
    name: Option<LoopId>,
    max_iterations: Option<u32>,
    work: WorkArgs,
    show: ShowArgs,
) -> Result<ExitCode, CliError> {
    if show.detach {
        run::may_detach(context)?;
    }
    let RunArgs { spec, mut how } = plan;
    how.max_total_iterations = how.max_total_iterations.or(max_iterations);
    let is_rehearsal = how.dry_run;
    let asked = Asked { source, spec, how, name: name.clone(), work };
    let mut prepared = Prepared::of(context, asked)?;
    context.typed.check_loop(&prepared.spec.each)?;
    let source = &prepared.source;
    let errors: Vec<_> = source.problems.iter().filter(|problem| problem.is_error()).collect();
    if let Some((first, more)) = errors.split_first() {
        let more = if more.is_empty() { String::new() } else { format!(", and {} more", more.len()) };
        let error = format!("{}: {first}{more}", source.file.path);
        return Err(
            CliError::usage(error).hint("refrain plan check lists all that is wrong; nothing was begun")
        );
    }
    prepared.check_verification()?;
    let odd: Vec<_> = source.problems.iter().map(ToString::to_string).collect();
    prepared.notes.extend(odd);
    let texts = prepared.texts(context)?;
    if is_rehearsal {
        return rehearsal::show(&prepared, &texts, name.as_ref(), show.json);
    }
    let too_long = rehearsal::over_budget(&prepared, &texts);
    let Prepared { service, settings, dir, spec, mut notes, .. } = prepared;
    notes.extend(too_long);
    let runner = service.start_plan(spec, name.as_ref())?;
    if !show.quiet {
        notes.iter().for_each(|note| out::tell_line("", &format!("note: {note}")));
    }
    let show = show.or_configured(&settings.config.notify);
    match show.detach {
        true => drive::detached(context, &service, runner, dir.as_str(), &show),
        false => drive::in_foreground(context, &service, runner, &show),
    }
}
