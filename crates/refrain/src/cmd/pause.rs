//! `refrain pause`.

use std::process::ExitCode;

use refrain_core::LoopId;
use refrain_core::event::{Ask, Urgency};
use refrain_engine::{Brief, LoopRequest, Service, SlowRunner};

use super::plan;
use crate::cli::Context;
use crate::error::{CliError, Code};
use crate::{out, values};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Which; the only one that runs, where it is left out
    id: Option<LoopId>,
    /// End the agent now; its attempt is refunded
    #[arg(long)]
    now: bool,
}

/// Which loops it can mean.
pub(super) fn could_be(status: &Brief) -> bool {
    !status.has_stopped()
}

/// Asks for the pause; returns once the loop has heard it.
pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CliError> {
    let service = context.service()?;
    let id = values::only_one(&service, args.id.as_ref(), "refrain pause", could_be)?;
    out::print(&pause(&service, &id, args.now, out::tell_slow(&id))?);
    Ok(Code::Done.into())
}

/// Asks this loop, or plan, for it; says what it came to. `slow` is told where that takes long.
pub(super) fn pause(
    service: &Service,
    id: &LoopId,
    now: bool,
    slow: impl FnOnce(SlowRunner),
) -> Result<String, CliError> {
    if service.has_plan(id) {
        return plan::pause(service, id, now, slow);
    }
    let urgency = if now { Urgency::Now } else { Urgency::AfterIteration };
    let state = service.ask(id, LoopRequest::Pause, Ask::Pause(urgency), slow)?;
    Ok(match (state.ended, now) {
        (Some(_), _) => format!("{id} has stopped; refrain resume {id} goes on\n"),
        (None, true) => format!("{id} will pause now\n"),
        (None, false) => format!("{id} will pause after this iteration\n"),
    })
}
