use std::process::ExitCode;

use refrain_app::verbs::Slow;
use refrain_app::{Code, Context, RequestError};
use refrain_core::view::StatusWord;
use refrain_core::view::plan::PlanStatus;

use super::selection::WhichArgs;
use crate::cmd::control::cancel::cancel;
use crate::out;

/// Cancel a plan for good, after the running iterations or at once
///
/// Merged work stays; an incomplete wave does not reach your branch.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  refrain plan cancel
  refrain plan cancel my-feature --now")]
pub(crate) struct Args {
    #[command(flatten)]
    which: WhichArgs,
    /// End the agents now
    #[arg(long)]
    now: bool,
}

/// Asks for the end; returns once the plan has received the request.
pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, RequestError> {
    let service = context.service()?;
    let is_candidate =
        |plan: &PlanStatus| !matches!(plan.status, StatusWord::Completed | StatusWord::Cancelled);
    let id = args.which.only(&service, ("refrain plan cancel", "all plans here are over"), is_candidate)?;
    out::print(&cancel(context, &service, &id, args.now, Slow::Note(&mut out::tell_slow))?);
    Ok(Code::Done.into())
}
