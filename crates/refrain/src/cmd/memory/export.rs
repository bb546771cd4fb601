use std::process::ExitCode;

use refrain_app::{Code, Context, RequestError};
use refrain_core::memory::{Kind, Memory};

use super::{list, table};
use crate::{out, values};

/// Print all memories as Markdown or JSON
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  refrain memory export > memories.md
  refrain memory export --json")]
pub(super) struct Args {
    /// Of all projects
    #[arg(long)]
    all_projects: bool,
    /// Print an array of objects
    #[arg(long)]
    json: bool,
}

pub(super) fn run(context: &Context, args: &Args) -> Result<ExitCode, RequestError> {
    let service = context.service()?;
    let memories = service.memories(&list::which(&service, None, args.all_projects))?;
    match args.json {
        true => out::print_json(&memories)?,
        false => out::print_whole(&markdown(&memories))?,
    }
    Ok(Code::Done.into())
}

fn markdown(memories: &[Memory]) -> String {
    let zone = values::time_zone();
    let mut text = String::from("# What Refrain remembers\n");
    let mut projects: Vec<&str> = memories.iter().map(|it| it.project.as_str()).collect();
    projects.sort_unstable();
    projects.dedup();
    for project in projects {
        text.push_str(&format!("\n## {}\n", table::flat(project)));
        for kind in Kind::ALL {
            let of: Vec<_> = memories.iter().filter(|it| it.project == project && it.kind == kind).collect();
            if of.is_empty() {
                continue;
            }
            text.push_str(&format!("\n### {}\n\n", heading(kind)));
            for it in of {
                let source = it.source.as_ref().map(|id| format!(", loop {id}")).unwrap_or_default();
                let words = table::flat(&it.text);
                text.push_str(&format!("- {words} ({}, {}{source})\n", it.id, table::day(it, &zone)));
            }
        }
    }
    text
}

fn heading(kind: Kind) -> &'static str {
    match kind {
        Kind::Fact => "Facts",
        Kind::Episode => "Episodes",
        Kind::Procedure => "Procedures",
    }
}
