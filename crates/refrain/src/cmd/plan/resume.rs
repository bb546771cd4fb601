//! `refrain plan resume`, and `refrain resume` of a plan.

use std::process::ExitCode;

use refrain_app::options::values;
use refrain_app::verbs::resume as app;
use refrain_app::{Action, Context, RequestError};
use refrain_core::agent::Usd;
use refrain_core::plan::PlanGrant;
use refrain_core::spec::Millis;
use refrain_core::view::StatusWord;
use refrain_core::view::plan::PlanStatus;
use refrain_core::{LoopId, values as core_values};
use refrain_engine::Service;

use super::drive;
use super::selection::WhichArgs;
use crate::cmd::launch::resume::with_configuration;
use crate::out;
use crate::run::ShowArgs;

/// Resume a stopped or crashed plan, and retry its blocked tasks
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  refrain plan resume
  refrain plan resume my-feature --max-total-iterations 200 --detach")]
pub(crate) struct Args {
    #[command(flatten)]
    which: WhichArgs,
    /// How many iterations one task may take from now on
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = core_values::iteration)]
    max_iterations_per_task: Option<u32>,
    /// How many iterations all tasks may take in total
    #[arg(long, short = 'n', visible_aliases = ["max-iterations", "iterations"], value_name = "N", allow_negative_numbers = true, value_parser = core_values::iteration)]
    max_total_iterations: Option<u32>,
    /// How long the plan may take in total
    #[arg(long, value_name = "DUR", allow_negative_numbers = true, value_parser = values::duration)]
    max_duration: Option<Millis>,
    /// How much money it may cost in total, in US dollars
    #[arg(long, value_name = "USD", allow_negative_numbers = true, value_parser = values::usd)]
    max_cost: Option<Usd>,
    /// Trust the project's refrain.toml and the commands that its files name, until the plan stops
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    show: ShowArgs,
}

/// Takes the plan over and drives it, here or in a process of its own.
pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, RequestError> {
    let service = context.open(&context.dir, args.yes)?;
    let is_candidate = |plan: &PlanStatus| {
        let is_over = matches!(plan.status, StatusWord::Completed | StatusWord::Cancelled);
        plan.status.has_stopped() && !is_over
    };
    let id =
        args.which.only(&service, ("refrain plan resume", "no plan here can be resumed"), is_candidate)?;
    let grant = PlanGrant {
        per_task: args.max_iterations_per_task,
        total: args.max_total_iterations,
        max_cost: args.max_cost,
        max_duration: args.max_duration,
    };
    resume(context, &service, (&id, true), &grant, &args.show)
}

/// Resumes a plan, and names it if the user did not.
pub(crate) fn resume(
    context: &Context,
    service: &Service,
    (id, is_named): (&LoopId, bool),
    grant: &PlanGrant,
    show: &ShowArgs,
) -> Result<ExitCode, RequestError> {
    let past = service.redacted_events(id)?.last().map_or(0, |record| record.seq);
    let runner = app::resume_plan(context, service, id, grant)?;
    if !is_named {
        out::tell(&format!("resuming {id}\n"));
    }
    let show = with_configuration(context, service, show);
    match show.detach {
        true => {
            context.check(Action::Detach)?;
            drive::detached(context, service, runner, &service.project().worktree, &show)
        }
        false => drive::in_foreground(context, service, runner, &show, past),
    }
}
