//! `refrain plan status`.

use std::process::ExitCode;

use refrain_app::{Context, RequestError};

use super::which::WhichArgs;
use crate::cmd::inspect::status;

/// Show how a plan stands: its waves, its tasks, what is worked on, what is blocked and why
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    which: WhichArgs,
    /// Print the status object
    #[arg(long)]
    json: bool,
}

/// Prints the status.
pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, RequestError> {
    let service = context.service()?;
    let id = args.which.latest(&service)?;
    status::show(&service, &id, args.json)
}
