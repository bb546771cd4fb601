//! `refrain cancel`.

use std::process::ExitCode;

use refrain_core::event::{Ask, Urgency};
use refrain_core::text::printable;
use refrain_core::view::StatusWord;
use refrain_core::{LoopId, Refusal};
use refrain_engine::{Brief, EngineError, Listed, Service};

use super::plan;
use crate::cli::Context;
use crate::error::{CliError, Code};
use crate::{committed, out, phrase, values};

/// Stop a loop, or a plan, for good: after its iteration, or at once
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Which; the only one that is not over, where it is left out
    #[arg(conflicts_with = "all")]
    id: Option<LoopId>,
    /// Every loop and plan of this project that is not over
    #[arg(long)]
    all: bool,
    /// End the agent now
    #[arg(long)]
    now: bool,
}

/// Asks for the end; returns once the loop has heard it.
pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CliError> {
    let service = context.service()?;
    let urgency = if args.now { Urgency::Now } else { Urgency::AfterIteration };
    if !args.all {
        let id = values::only_one(&service, args.id.as_ref(), "refrain cancel", could_be)?;
        return cancel(&service, &id, urgency).map(|()| Code::Done.into());
    }
    let rows = service.list()?;
    let open: Vec<_> = rows
        .into_iter()
        .filter_map(|row| match row {
            Listed::Loop(status) if could_be(&status) => Some(status.id.clone()),
            Listed::Loop(_) | Listed::Damaged { .. } => None,
        })
        .collect();
    if open.is_empty() {
        out::print("No running loops to cancel.\n");
    }
    open.iter().try_for_each(|id| cancel(&service, id, urgency))?;
    Ok(Code::Done.into())
}

/// Which loops it can mean: those that are not over.
pub(super) fn could_be(status: &Brief) -> bool {
    !matches!(status.status, StatusWord::Completed | StatusWord::Cancelled)
}

fn cancel(service: &Service, id: &LoopId, urgency: Urgency) -> Result<(), CliError> {
    if service.has_plan(id) {
        return plan::cancel(service, id, urgency == Urgency::Now).map(drop);
    }
    match service.ask(id, "be cancelled", Ask::Cancel(urgency), out::tell_slow(id)) {
        Ok(state) => {
            let when = match (state.ended, urgency) {
                (Some(_), _) => "is cancelled",
                (None, Urgency::Now) => "is being cancelled",
                (None, Urgency::AfterIteration) => {
                    "will be cancelled after this iteration (--now ends it at once)"
                }
            };
            let progress = phrase::progress(state.iteration, state.limits.max_iterations);
            out::print(&format!("{id} {when}; it was at iteration {progress}\n"));
            if state.git.released {
                let words = committed::released(state.git.kept.as_deref(), &state.spec);
                out::print(&format!("{}\n", printable(&words)));
            }
            Ok(())
        }
        // What was asked for is so already (seed 000: exit 0).
        Err(EngineError::Refused { why: Refusal::Final(word), .. }) => {
            out::print(&format!("{id} is already {word}\n"));
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}
