use std::process::ExitCode;

use refrain_app::{Code, Context, RequestError};
use refrain_core::memory::{Kind, Memory};
use refrain_engine::{MemoryFilter, Service};

use super::table;
use crate::out;

/// List the memories of this project, newest first
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  refrain memory list
  refrain memory list --kind fact --json")]
pub(super) struct Args {
    /// Only these: fact, episode or procedure
    #[arg(long, value_name = "KIND")]
    kind: Option<Kind>,
    /// Those of all projects
    #[arg(long)]
    all_projects: bool,
    /// Print an array of objects
    #[arg(long)]
    json: bool,
}

pub(super) fn run(context: &Context, args: &Args) -> Result<ExitCode, RequestError> {
    let service = context.service()?;
    let memories = service.memories(&which(&service, args.kind, args.all_projects))?;
    match args.json {
        true => out::print_json(&memories)?,
        false => table::print(
            &memories.iter().collect::<Vec<&Memory>>(),
            args.all_projects,
            "Nothing is remembered.\n",
        ),
    }
    Ok(Code::Done.into())
}

pub(super) fn which(service: &Service, kind: Option<Kind>, all_projects: bool) -> MemoryFilter {
    let project = (!all_projects).then(|| service.project().root.to_string());
    MemoryFilter { project, kind, source: None }
}
