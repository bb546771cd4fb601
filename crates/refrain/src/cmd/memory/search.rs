use std::process::ExitCode;

use refrain_app::{Code, Context, RequestError};
use refrain_core::memory::Memory;

use super::table;
use crate::out;

/// Search memories by their subject, best match first
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  refrain memory search \"flaky tests\"
  refrain memory search parser --all-projects")]
pub(super) struct Args {
    /// What they are about
    #[arg(required = true, value_name = "QUERY")]
    words: Vec<String>,
    /// Those of all projects
    #[arg(long)]
    all_projects: bool,
    /// Print an array of objects
    #[arg(long)]
    json: bool,
}

/// Prints the matches, and why some may be missing.
pub(super) fn run(context: &Context, args: &Args) -> Result<ExitCode, RequestError> {
    let service = context.service()?;
    let words = args.words.join(" ");
    if words.trim().is_empty() {
        return Err(RequestError::usage("QUERY is empty; accepted: what memories are about"));
    }
    let found = service.search_memories(&words, args.all_projects, context.has_variables())?;
    if let Some(trouble) = &found.trouble {
        out::tell_line("", &format!("note: {trouble}"));
    }
    let memories: Vec<&Memory> = found.found.iter().map(|it| &it.memory).collect();
    match args.json {
        true => out::print_json(&memories)?,
        false => {
            table::print(&memories, args.all_projects, "Nothing that is remembered has to do with that.\n")
        }
    }
    Ok(Code::Done.into())
}
