use std::process::ExitCode;

use refrain_app::{Code, Context, RequestError};
use refrain_core::LoopId;

use crate::out;

/// Change the project's instructions for agents as proposed
///
/// Nothing is committed.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  refrain memory apply docs-3f9c
  refrain -C ~/shop memory apply docs-3f9c")]
pub(super) struct Args {
    /// The loop, as proposals shows it
    id: LoopId,
}

pub(super) fn run(context: &Context, args: &Args) -> Result<ExitCode, RequestError> {
    let proposal = context.service()?.apply_proposal(&args.id)?;
    out::print(&format!("{} is changed as proposed; git status and git diff show it\n", proposal.file));
    Ok(Code::Done.into())
}
