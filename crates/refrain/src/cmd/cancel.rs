//! `refrain cancel`.

use std::process::ExitCode;

use refrain_core::event::{Ask, Urgency};
use refrain_core::text::printable;
use refrain_core::view::StatusWord;
use refrain_core::{LoopId, Refusal};
use refrain_engine::{Brief, EngineError, Listed, LoopRequest, Service, SlowRunner};

use super::plan;
use crate::cli::Context;
use crate::error::{CliError, Code};
use crate::{committed, out, phrase, values};

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
    if !args.all {
        let id = values::only_one(&service, args.id.as_ref(), "refrain cancel", could_be)?;
        out::print(&cancel(&service, &id, args.now, out::tell_slow(&id))?);
        return Ok(Code::Done.into());
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
    for id in &open {
        out::print(&cancel(&service, id, args.now, out::tell_slow(id))?);
    }
    Ok(Code::Done.into())
}

/// Which loops it can mean: those that are not over.
pub(super) fn could_be(status: &Brief) -> bool {
    !matches!(status.status, StatusWord::Completed | StatusWord::Cancelled)
}

/// Asks this loop, or plan, for its end; says what it came to. `slow` is told where that takes long.
pub(super) fn cancel(
    service: &Service,
    id: &LoopId,
    now: bool,
    slow: impl FnOnce(SlowRunner),
) -> Result<String, CliError> {
    if service.has_plan(id) {
        return plan::cancel(service, id, now, slow);
    }
    let urgency = if now { Urgency::Now } else { Urgency::AfterIteration };
    match service.ask(id, LoopRequest::Cancel, Ask::Cancel(urgency), slow) {
        Ok(state) => {
            let when = match (state.ended, urgency) {
                (Some(_), _) => "is cancelled",
                (None, Urgency::Now) => "is being cancelled",
                (None, Urgency::AfterIteration) => {
                    "will be cancelled after this iteration (--now ends it at once)"
                }
            };
            let progress = phrase::progress(state.iteration, state.limits.max_iterations);
            let mut words = format!("{id} {when}; it was at iteration {progress}\n");
            if state.git.released {
                let released = committed::released(state.git.kept.as_deref(), &state.spec);
                words.push_str(&format!("{}\n", printable(&released)));
            }
            Ok(words)
        }
        // What was asked for is so already (seed 000: exit 0).
        Err(EngineError::Refused { why: Refusal::Final(word), .. }) => {
            Ok(format!("{id} is already {word}\n"))
        }
        Err(error) => Err(error.into()),
    }
}
