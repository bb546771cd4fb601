//! `refrain plan run`, and `start --scud-tag` (seed 001): from the command line to a running plan.

use std::process::ExitCode;
use std::str::FromStr;

use camino::Utf8PathBuf;
use refrain_app::options::fleet::On;
use refrain_app::options::git::GitArgs;
use refrain_app::options::heading;
use refrain_app::options::variants::{AdaptedArgs, Difference};
use refrain_app::options::work::{PromiseArgs, TaskArgs, WordArgs, WorkArgs};
use refrain_app::plan::{HowArgs, PreparedPlan, RunPlan, SourceArgs, SpecArgs};
use refrain_app::{Action, Code, Context, RequestError, trust};
use refrain_core::mirror::MirrorName;
use refrain_core::{LoopId, values as core_values};

use super::{drive, rehearsal};
use crate::cmd::connect::fleet_plan;
use crate::out;
use crate::run::ShowArgs;

/// Run a plan until all its tasks are verified and merged
///
/// Each task is a loop with an agent and a worktree of its own. Verified work is merged; each complete wave becomes one commit on
/// your branch. Without --agent or --command it runs Claude Code.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  refrain plan run --tag my-feature \\
    --plan docs/my-feature.md \\
    --spec-file ARCHITECTURE.md \\
    --verify \"cargo check && cargo test\"
  refrain plan run --plan PLAN.md \\
    --jobs 4 --max-cost 20 --detach
  refrain plan run --on fleet \\
    --plan PLAN.md --jobs 12")]
pub(crate) struct Args {
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    plan: RunArgs,
    /// The same as --max-total-iterations
    #[arg(help_heading = heading::COST, long, visible_alias = "iterations", short = 'n', value_name = "N", allow_negative_numbers = true, value_parser = core_values::iteration, conflicts_with = "max_total_iterations")]
    max_iterations: Option<u32>,
    /// The plan's id [default: made from the tag]
    #[arg(long, value_name = "ID")]
    name: Option<LoopId>,
    /// Where the loops of its tasks run [default: here]
    #[arg(help_heading = heading::PLACE, long, value_enum, value_name = "WHERE")]
    on: Option<On>,
    /// Show it in the file of another system too: scud
    #[arg(help_heading = heading::SHOWN, long, value_name = "SYSTEM", value_parser = MirrorName::from_str)]
    mirror: Vec<MirrorName>,
    #[command(flatten)]
    work: WorkArgs,
    #[command(flatten)]
    words: AdaptedArgs<WordArgs, RefusedArgs>,
    #[command(flatten)]
    task: AdaptedArgs<TaskArgs, RefusedArgs>,
    #[command(flatten)]
    promise: AdaptedArgs<PromiseArgs, RefusedArgs>,
    #[command(flatten)]
    git: AdaptedArgs<GitArgs, RefusedArgs>,
    #[command(flatten)]
    show: ShowArgs,
}

// How the tasks of a plan are worked on.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(in crate::cmd) spec: SpecArgs,
    #[command(flatten)]
    pub(in crate::cmd) how: HowArgs,
    /// Show what would be done, and do nothing of it
    #[arg(long)]
    pub(in crate::cmd) dry_run: bool,
}

/// Of options that loops have and plans do not: accepted, so that the refusal can say why, and not offered.
#[derive(Debug)]
pub(crate) struct RefusedArgs;

impl Difference for RefusedArgs {
    fn of(arg: clap::Arg) -> clap::Arg {
        arg.hide(true)
    }
}

// The tasks to work on, if `start` is to run a plan.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = heading::PLAN)]
pub(crate) struct ByTag {
    /// Work on all tasks of this tag, as refrain plan run does; needs neither --command nor --prompt
    #[arg(long, value_name = "TAG")]
    scud_tag: Option<String>,
    /// The plan that the tasks belong to, in Markdown; without a tag, the plan that has the tasks
    #[arg(long, value_name = "FILE")]
    plan: Option<Utf8PathBuf>,
    #[command(flatten)]
    run: AdaptedArgs<RunArgs, WithTag>,
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
    pub(crate) fn asked(&self) -> bool {
        self.scud_tag.is_some() || self.plan.is_some()
    }

    /// The arguments of `plan run`.
    pub(crate) fn into_parts(self) -> (SourceArgs, RunArgs) {
        (SourceArgs { tag: self.scud_tag, plan: self.plan }, self.run.args)
    }
}

pub(crate) fn run(context: &Context, args: Args) -> Result<ExitCode, RequestError> {
    let Args { source, plan, max_iterations, name, on, mirror, work, show, .. } = args;
    run_plan(context, (source, plan), (name, mirror), (max_iterations, on), work, show)
}

/// Starts the plan and drives it, here or in a process of its own.
pub(in crate::cmd) fn run_plan(
    context: &Context,
    (source, plan): (SourceArgs, RunArgs),
    (name, mirror): (Option<LoopId>, Vec<MirrorName>),
    (max_iterations, on): (Option<u32>, Option<On>),
    work: WorkArgs,
    show: ShowArgs,
) -> Result<ExitCode, RequestError> {
    if show.detach {
        context.check(Action::Detach)?;
    }
    let RunArgs { spec, mut how, dry_run } = plan;
    how.max_total_iterations = how.max_total_iterations.or(max_iterations);
    let request = RunPlan { source, spec, how, name: name.clone(), work, mirror };
    let mut prepared = PreparedPlan::runnable(context, request, &mut out::tell_note)?;
    if let Some(On::Fleet) = on {
        fleet_plan::adapt(context, &mut prepared.spec)?;
    }
    let texts = prepared.texts(context)?;
    if dry_run {
        return rehearsal::show(context, &prepared, &texts, name.as_ref(), show.json);
    }
    // With --json a caller waits for the status of a plan.
    if !show.json
        && let Some(tasks) = prepared.done_tasks()
    {
        let path = &prepared.source.file.path;
        let path = path.strip_prefix(&prepared.dir).unwrap_or(path);
        out::print(&format!("{path}: {tasks} done, so nothing was begun\n"));
        return Ok(Code::Done.into());
    }
    prepared.check_trust(context)?;
    show.notify.check(context)?;
    let too_long = prepared.over_budget(&texts);
    let PreparedPlan { service, settings, dir, spec, mut notes, .. } = prepared;
    notes.extend(too_long);
    let runner = service.start_plan(spec, name.as_ref())?;
    notes.extend(trust::announce(context, &service));
    if !show.quiet {
        notes.into_iter().for_each(out::tell_note);
    }
    let show = show.or_configured(&settings.config.notify);
    match show.detach {
        true => drive::detached(context, &service, runner, &dir, &show),
        false => drive::in_foreground(context, &service, runner, &show, 0),
    }
}
