//! `refrain archive`.

use std::process::ExitCode;

use refrain_core::LoopId;
use refrain_core::view::{Kind, StatusWord};
use refrain_engine::Brief;

use crate::cli::Context;
use crate::error::{CliError, Code};
use crate::{out, values};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Which; the only one that has stopped, where it is left out
    id: Option<LoopId>,
}

/// Which loops it can mean; a plan is none.
pub(super) fn could_be(status: &Brief) -> bool {
    status.kind != Kind::Plan && status.has_stopped() && status.status != StatusWord::Crashed
}

/// Moves the loop, and says where it lies.
pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CliError> {
    let service = context.service()?;
    let id = values::only_one(&service, args.id.as_ref(), "refrain archive", could_be)?;
    if service.has_plan(&id) {
        let error = format!("{id} is a plan, which stays where it is; accepted by refrain archive are loops");
        return Err(CliError::usage(error).hint(format!(
            "refrain list --plan {id} shows those of its tasks; another plan takes another --name"
        )));
    }
    let path = service.archive(&id)?;
    out::print(&format!("{path}\n"));
    Ok(Code::Done.into())
}
