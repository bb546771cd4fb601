//! `refrain plan cancel`, and `refrain cancel` of a plan.

use std::process::ExitCode;

use refrain_core::event::{Ask, Urgency};
use refrain_core::view::StatusWord;
use refrain_core::view::plan::PlanStatus;
use refrain_core::{LoopId, Refusal};
use refrain_engine::{EngineError, LoopRequest, Service, SlowRunner};

use super::which::WhichArgs;
use crate::cli::Context;
use crate::error::{CliError, Code};
use crate::out;
use crate::plan::left;

/// Stop a plan for good: after the iterations at work, or at once
///
/// What has landed stays; a wave that is not complete is not handed over.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    which: WhichArgs,
    /// End the agents now
    #[arg(long)]
    now: bool,
}

/// Asks for the end; returns once the plan has heard it.
pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CliError> {
    let service = context.service()?;
    let could_be = |plan: &PlanStatus| !matches!(plan.status, StatusWord::Completed | StatusWord::Cancelled);
    let id = args.which.only(&service, "refrain plan cancel", could_be)?;
    out::print(&cancel(&service, &id, args.now, out::tell_slow(&id))?);
    Ok(Code::Done.into())
}

/// Asks this plan for it; says what it came to.
pub(crate) fn cancel(
    service: &Service,
    id: &LoopId,
    now: bool,
    slow: impl FnOnce(SlowRunner),
) -> Result<String, CliError> {
    let urgency = if now { Urgency::Now } else { Urgency::AfterIteration };
    match service.ask_plan(id, LoopRequest::Cancel, Ask::Cancel(urgency), slow) {
        Ok(state) => {
            let when = match (state.ended, now) {
                (Some(_), _) => "is cancelled",
                (None, true) => "is being cancelled",
                (None, false) => "will be cancelled after the iterations at work (--now ends them at once)",
            };
            let view = service.plan_status(id)?;
            let landed = format!("{} of {} tasks have landed", view.tasks_done, view.tasks_total);
            let mut words = format!("{id} {when}; {landed}\n");
            for left in [left::behind(&view), left::branches(&view)].into_iter().flatten() {
                words.push_str(&format!("  {left}\n"));
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
