//! `refrain plan status`, and `refrain status` of a plan.

use std::process::ExitCode;

use refrain_app::{Code, Context, RequestError};
use refrain_core::LoopId;
use refrain_engine::Service;

use super::which::WhichArgs;
use crate::plan::board::{self, Art};
use crate::{out, values};

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
    show(&service, &id, args.json)
}

/// Prints the status of this plan.
pub(crate) fn show(service: &Service, id: &LoopId, json: bool) -> Result<ExitCode, RequestError> {
    let status = match service.plan_status(id) {
        Err(error) if json => return values::print_damaged(service, id, error),
        status => status?,
    };
    match json {
        true => out::print_json(&status)?,
        false => out::print(&board::text(&status, Art::current(), refrain_engine::now())),
    }
    Ok(Code::Done.into())
}
