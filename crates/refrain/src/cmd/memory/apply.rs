//! `refrain memory apply`.

use std::process::ExitCode;

use refrain_app::{Code, Context, RequestError};
use refrain_core::LoopId;

use crate::out;

/// Take over what a loop taught: change the project's instructions for agents as proposed. Nothing is committed
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The loop, as proposals shows it
    id: LoopId,
}

/// Writes the file.
pub(super) fn run(context: &Context, args: &Args) -> Result<ExitCode, RequestError> {
    let proposal = context.service()?.apply_proposal(&args.id)?;
    out::print(&format!("{} is changed as proposed; git status and git diff show it\n", proposal.file));
    Ok(Code::Done.into())
}
