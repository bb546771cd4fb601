use std::process::ExitCode;

use refrain_app::verbs::Slow;
use refrain_app::{Code, Context, RequestError};

use super::selection::WhichArgs;
use crate::cmd::control::pause::pause;
use crate::out;

/// Pause a plan, after the running iterations or at once
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  refrain plan pause
  refrain plan pause my-feature --now")]
pub(crate) struct Args {
    #[command(flatten)]
    which: WhichArgs,
    /// End the agents now; their attempts are refunded
    #[arg(long)]
    now: bool,
}

/// Asks for the pause; returns once the plan has received the request.
pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, RequestError> {
    let service = context.service()?;
    let id = args.which.only(&service, ("refrain plan pause", "no plan here is running"), |plan| {
        !plan.status.has_stopped()
    })?;
    out::print(&pause(context, &service, &id, args.now, Slow::Note(&mut out::tell_slow))?);
    Ok(Code::Done.into())
}
