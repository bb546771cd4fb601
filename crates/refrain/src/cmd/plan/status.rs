use std::process::ExitCode;

use refrain_app::{Context, RequestError};

use super::selection::WhichArgs;
use crate::cmd::inspect::status;

/// Show the waves and tasks of a plan, and what is blocked and why
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  refrain plan status
  refrain plan status my-feature --json")]
pub(crate) struct Args {
    #[command(flatten)]
    which: WhichArgs,
    /// Print the status object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, RequestError> {
    let service = context.service()?;
    let id = args.which.latest(&service)?;
    status::show(&service, &id, args.json)
}
