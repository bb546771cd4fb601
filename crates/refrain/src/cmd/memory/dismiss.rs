//! `refrain memory dismiss`.

use std::process::ExitCode;

use refrain_app::{Code, Context, RequestError};
use refrain_core::LoopId;

use crate::out;

/// Decide that a proposal is not wanted
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The loop, as proposals shows it
    id: LoopId,
}

/// Notes it.
pub(super) fn run(context: &Context, args: &Args) -> Result<ExitCode, RequestError> {
    context.service()?.dismiss_proposal(&args.id)?;
    out::print("dismissed; nothing was changed\n");
    Ok(Code::Done.into())
}
