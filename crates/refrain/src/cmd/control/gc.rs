use std::io::IsTerminal;
use std::process::ExitCode;

use refrain_app::verbs::gc::{KeptGarbage, collect};
use refrain_app::{Action, Code, Context, RequestError};
use refrain_core::text::printable;
use refrain_core::view::garbage::{Garbage, size};

use crate::render::phrase;
use crate::{out, values};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  refrain gc
  refrain gc --yes")]
pub(crate) struct Args {
    /// Only list, and ask nothing
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    /// Remove without asking
    #[arg(long, short)]
    yes: bool,
    /// Print what may be removed as an array, and ask nothing
    #[arg(long, conflicts_with = "yes")]
    json: bool,
}

impl Args {
    /// The verb's action, for [`Action::permission`].
    pub(crate) fn action(&self) -> Action {
        if self.yes { Action::CollectGarbage } else { Action::Look }
    }
}

/// Lists what may be removed, and removes it once it may.
pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, RequestError> {
    let service = context.service()?;
    let all = service.garbage()?;
    if args.json {
        out::print_json(&all)?;
        return Ok(Code::Done.into());
    }
    for (worktree, root, bytes) in service.worktrees_without_project() {
        let (worktree, root) = (printable(worktree.as_str()), printable(root.as_str()));
        out::tell_note(format!(
            "{worktree}, {}, is the worktree of a project that is gone or was moved, {root}; gc does not remove it, as files may be \
             only there: look at it, then rm -r it",
            size(bytes)
        ));
    }
    if all.is_empty() {
        out::print("Nothing to remove.\n");
        return Ok(Code::Done.into());
    }
    out::print(&all.iter().map(row).collect::<String>());
    let room = size(all.iter().map(|garbage| garbage.bytes).sum());
    let things = phrase::counted(u32::try_from(all.len()).unwrap_or(u32::MAX), "item", "items");
    let may_ask = !args.dry_run && std::io::stdin().is_terminal();
    let is_wanted = args.yes || may_ask && values::confirm(&format!("Remove {things}, {room}? [y/N] "))?;
    if !is_wanted {
        let them = if all.len() == 1 { "it" } else { "them" };
        out::tell_note(format!("{things}, {room}; refrain gc --yes removes {them}"));
        return Ok(Code::Done.into());
    }
    let kept = collect(context, &service, &all)?;
    for KeptGarbage { garbage, why } in &kept {
        out::tell_note(format!("{} is kept: {}", garbage.name, printable(why)));
    }
    let freed = all.iter().filter(|garbage| kept.iter().all(|kept| kept.garbage != **garbage));
    let (count, bytes) = freed.fold((0, 0), |(count, bytes), it| (count + 1, bytes + it.bytes));
    out::print(&format!("removed {}, {}\n", phrase::counted(count, "item", "items"), size(bytes)));
    Ok(Code::Done.into())
}

fn row(garbage: &Garbage) -> String {
    let bytes = if garbage.bytes == 0 { String::new() } else { size(garbage.bytes) };
    format!("{:<16}{bytes:>10}  {}\n", garbage.kind.label(), printable(&garbage.name))
}
