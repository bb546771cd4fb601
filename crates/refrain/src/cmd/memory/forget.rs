use std::process::ExitCode;

use clap::ArgGroup;
use refrain_app::{Code, Context, RequestError};
use refrain_core::LoopId;
use refrain_core::memory::{Memory, MemoryId};
use refrain_engine::{MemoryFilter, Service};

use super::{list, table};
use crate::out;

/// Delete memories for good
#[derive(Debug, clap::Args)]
#[command(group = ArgGroup::new("which").required(true))]
#[command(after_help = "Examples:
  refrain memory forget --loop docs-3f9c
  refrain memory forget --all --yes")]
pub(super) struct Args {
    /// These, as list shows them
    #[arg(group = "which", value_name = "ID")]
    ids: Vec<MemoryId>,
    /// All that come from this loop
    #[arg(long = "loop", group = "which", value_name = "LOOP")]
    source: Option<LoopId>,
    /// All of this project
    #[arg(long, group = "which")]
    all: bool,
    /// With --all: of all projects
    #[arg(long)]
    all_projects: bool,
    /// With --all: confirm it
    #[arg(long)]
    yes: bool,
}

/// Deletes them, and prints how many there were.
pub(super) fn run(context: &Context, args: &Args) -> Result<ExitCode, RequestError> {
    let service = context.service()?;
    let meant = meant(&service, args)?;
    if args.all && !args.yes {
        let error = format!("--all: it would forget {} for good", table::counted(meant.len()));
        let error = RequestError::usage(error).hint("accepted: --all --yes");
        return Err(error.hint("refrain memory export keeps a copy"));
    }
    let gone = service.forget(&meant)?;
    out::print(&format!("{} forgotten\n", table::counted(gone)));
    Ok(Code::Done.into())
}

fn meant(service: &Service, args: &Args) -> Result<Vec<Memory>, RequestError> {
    let not_found = |error: String| {
        RequestError::new(Code::NotFound, error).hint("refrain memory list shows what there is")
    };
    if args.all {
        return Ok(service.memories(&list::which(service, None, args.all_projects))?);
    }
    if let Some(source) = &args.source {
        let which = MemoryFilter { source: Some(source.clone()), ..list::which(service, None, false) };
        let found = service.memories(&which)?;
        return match found.is_empty() {
            true => Err(not_found(format!("nothing is remembered of loop {source}"))),
            false => Ok(found),
        };
    }
    // All of them, or none: a script that is wrong about one may be wrong about all.
    let found = service.memories_named(&args.ids)?;
    match args.ids.iter().find(|id| !found.iter().any(|it| it.id == **id)) {
        Some(id) => Err(not_found(format!("no memory {id}; nothing was forgotten"))),
        None => Ok(found),
    }
}
