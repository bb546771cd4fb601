use std::process::ExitCode;

use refrain_app::{Code, Context, RequestError};
use refrain_core::LoopId;

use crate::out;

/// Dismiss a proposal
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  refrain memory dismiss docs-3f9c
  refrain -C ~/shop memory dismiss docs-3f9c")]
pub(super) struct Args {
    /// The loop, as proposals shows it
    id: LoopId,
}

pub(super) fn run(context: &Context, args: &Args) -> Result<ExitCode, RequestError> {
    context.service()?.dismiss_proposal(&args.id)?;
    out::print("dismissed; nothing was changed\n");
    Ok(Code::Done.into())
}
