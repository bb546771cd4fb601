//! `refrain plan resume`, and `refrain resume` of a plan.

use std::process::ExitCode;

use refrain_core::agent::Usd;
use refrain_core::plan::PlanGrant;
use refrain_core::spec::Millis;
use refrain_core::view::StatusWord;
use refrain_core::view::plan::PlanStatus;
use refrain_core::{LoopId, Refusal, values as core_values};
use refrain_engine::config::Chosen;
use refrain_engine::{EngineError, Service};

use super::drive;
use super::which::WhichArgs;
use crate::cli::Context;
use crate::error::{CliError, Code};
use crate::run::{self, ShowArgs};
use crate::{out, values};

/// Let a stopped or crashed plan go on; what was blocked is tried again
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    which: WhichArgs,
    /// How many iterations one task may take from now on
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = core_values::iteration)]
    max_iterations_per_task: Option<u32>,
    /// How many iterations all tasks may take, in all
    #[arg(long, short = 'n', visible_aliases = ["max-iterations", "iterations"], value_name = "N", allow_negative_numbers = true, value_parser = core_values::iteration)]
    max_total_iterations: Option<u32>,
    /// How long the plan may take, in all
    #[arg(long, value_name = "DUR", allow_negative_numbers = true, value_parser = values::duration)]
    max_duration: Option<Millis>,
    /// How much money it may cost, in all, in US dollars
    #[arg(long, value_name = "USD", allow_negative_numbers = true, value_parser = values::usd)]
    max_cost: Option<Usd>,
    #[command(flatten)]
    show: ShowArgs,
}

/// Takes the plan over and drives it, here or in a process of its own.
pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CliError> {
    let service = context.service()?;
    let could_be = |plan: &PlanStatus| {
        let is_over = matches!(plan.status, StatusWord::Completed | StatusWord::Cancelled);
        plan.status.has_stopped() && !is_over
    };
    let id = args.which.only(&service, "refrain plan resume", could_be)?;
    let grant = PlanGrant {
        per_task: args.max_iterations_per_task,
        total: args.max_total_iterations,
        max_cost: args.max_cost,
        max_duration: args.max_duration,
    };
    resume(context, &service, &id, &grant, &args.show)
}

/// Lets this plan go on.
pub(crate) fn resume(
    context: &Context,
    service: &Service,
    id: &LoopId,
    grant: &PlanGrant,
    show: &ShowArgs,
) -> Result<ExitCode, CliError> {
    // An agent that grants more decides over a person's money, and one that resumes its own plan would drive itself.
    if let Some(own) = &context.inside {
        let error = format!("loop {own} cannot resume or extend a plan from inside an attempt");
        return Err(CliError::new(Code::Refused, error).hint("a person does that, from outside"));
    }
    let runner = service.resume_plan(id, grant).map_err(|error| refused(error, id))?;
    let show = match service.settings(Chosen::default(), true) {
        Ok(settings) => show.clone().or_configured(&settings.config.notify),
        Err(error) => {
            out::tell_line("", &format!("note: [notify] is not read: {error}"));
            show.clone()
        }
    };
    match show.detach {
        true => {
            run::may_detach(context)?;
            drive::detached(context, service, runner, context.dir.as_str(), &show)
        }
        false => drive::in_foreground(context, service, runner, &show),
    }
}

/// A plan's options are not those of a loop.
fn refused(error: EngineError, id: &LoopId) -> CliError {
    match &error {
        EngineError::Refused { why: Refusal::NothingGranted { used, flag }, .. } => {
            CliError::new(Code::Refused, format!("plan {id} cannot be resumed: {used}"))
                .hint(format!("refrain plan resume {id} {flag}"))
                .lacking(used, flag)
        }
        EngineError::Refused { why: Refusal::Final(word), .. } => {
            CliError::new(Code::Refused, format!("plan {id} cannot be resumed: it is {word}"))
                .hint("refrain plan run starts another")
        }
        _ => error.into(),
    }
}
