use std::process::ExitCode;

use refrain_app::verbs::archive as app;
use refrain_app::{Code, Context, RequestError};
use refrain_core::LoopId;
use refrain_core::view::{Kind, StatusWord};
use refrain_engine::Brief;

use crate::{out, values};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  refrain archive docs-3f9c
  refrain archive")]
pub(crate) struct Args {
    /// The loop [default: the only one that has stopped]
    id: Option<LoopId>,
}

/// Which loops it can mean; a plan is none.
pub(crate) fn is_candidate(status: &Brief) -> bool {
    status.kind != Kind::Plan && status.has_stopped() && status.status != StatusWord::Crashed
}

/// Archives the loop, and prints its new path.
pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, RequestError> {
    let service = context.service()?;
    let id = values::only_one(
        &service,
        args.id.as_ref(),
        ("refrain archive", "no loop here has stopped"),
        is_candidate,
    )?;
    let path = app::archive(context, &service, &id)?;
    out::print(&format!("{id}: archived in {path}\n"));
    Ok(Code::Done.into())
}
