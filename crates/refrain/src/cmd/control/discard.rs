//! `refrain discard`.

use std::process::ExitCode;

use refrain_app::verbs::discard::discard;
use refrain_app::{Code, Context, RequestError};
use refrain_core::LoopId;
use refrain_engine::Discarded;

use super::archive::could_be;
use crate::{out, values};

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Which loop [default: the only one that has stopped]
    id: Option<LoopId>,
}

const EXAMPLES: &str = "Examples:
  refrain discard docs-3f9c
  git branch docs refs/refrain/discarded/docs-3f9c";

/// Discards the loop, and says how to get its work back.
pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, RequestError> {
    let service = context.service()?;
    let id = values::only_one(&service, args.id.as_ref(), "refrain discard", could_be)?;
    let Discarded { archived, branch } = discard(context, &service, &id)?;
    out::print(&format!("{archived}\n"));
    if let Some((branch, reference)) = branch {
        out::tell_note(format!(
            "branch {branch} is removed; for 30 days git branch {branch} {reference} brings it back"
        ));
    }
    Ok(Code::Done.into())
}
