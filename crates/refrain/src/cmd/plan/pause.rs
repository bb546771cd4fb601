//! `refrain plan pause`, and `refrain pause` of a plan.

use std::process::ExitCode;

use refrain_core::LoopId;
use refrain_core::event::{Ask, Urgency};
use refrain_engine::{LoopRequest, Service, SlowRunner};

use super::which::WhichArgs;
use crate::cli::Context;
use crate::error::{CliError, Code};
use crate::out;

/// Stop a plan for now: after the iterations at work, or at once
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    which: WhichArgs,
    /// End the agents now; their attempts are refunded
    #[arg(long)]
    now: bool,
}

/// Asks for the pause; returns once the plan has heard it.
pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CliError> {
    let service = context.service()?;
    let id = args.which.only(&service, "refrain plan pause", |plan| !plan.status.has_stopped())?;
    out::print(&pause(&service, &id, args.now, out::tell_slow(&id))?);
    Ok(Code::Done.into())
}

/// Asks this plan for it; says what it came to.
pub(crate) fn pause(
    service: &Service,
    id: &LoopId,
    now: bool,
    slow: impl FnOnce(SlowRunner),
) -> Result<String, CliError> {
    let urgency = if now { Urgency::Now } else { Urgency::AfterIteration };
    let state = service.ask_plan(id, LoopRequest::Pause, Ask::Pause(urgency), slow)?;
    Ok(match (state.ended, now) {
        (Some(_), _) => format!("{id} has stopped; refrain plan resume {id} goes on\n"),
        (None, true) => format!("{id} will pause now\n"),
        (None, false) => format!("{id} will pause after the iterations at work\n"),
    })
}
