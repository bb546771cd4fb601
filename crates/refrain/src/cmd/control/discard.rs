use std::process::ExitCode;

use refrain_app::verbs::discard::{brings_back, discard};
use refrain_app::{Code, Context, RequestError};
use refrain_core::LoopId;
use refrain_engine::{DiscardOutcome, KeptWork};

use super::archive::is_candidate;
use crate::render::phrase;
use crate::{out, values};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  refrain discard docs-3f9c
  git branch docs refs/refrain/discarded/docs-3f9c")]
pub(crate) struct Args {
    /// Which loop or plan [default: the only loop that has stopped]
    id: Option<LoopId>,
}

/// Discards the loop or plan, and says how to get its work back.
pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, RequestError> {
    let service = context.service()?;
    let id = values::only_one(
        &service,
        args.id.as_ref(),
        ("refrain discard", "no loop here has stopped"),
        is_candidate,
    )?;
    if args.id.is_none() && values::can_ask(context) && !values::confirm(&format!("Discard {id}? [y/N] "))? {
        return Ok(Code::Done.into());
    }
    let DiscardOutcome { archived, was_archived, kept, stays } = discard(context, &service, &id)?;
    if was_archived {
        let back = kept.iter().map(|work| brings_back(&id, work.branch.as_deref(), &work.reference));
        let back: String = back.map(|back| format!("; {back}")).collect();
        out::tell_note(format!("{id} is archived already, and nothing was changed{back}"));
        return Ok(Code::Done.into());
    }
    out::print(&format!("{archived}\n"));
    match stays {
        Some((branch, plan)) => out::tell_note(format!(
            "{id} is archived; its branch {branch} stays with plan {plan}: refrain plan status {plan} says what becomes of it"
        )),
        None if kept.is_empty() => out::tell_note(format!(
            "{id} is archived; the files of the project stay as they are, and no other work was left"
        )),
        None => {}
    }
    for KeptWork { branch, reference, uncommitted } in kept {
        let back = brings_back(&id, branch.as_deref(), &reference);
        let removed = branch.map(|branch| format!("branch {branch} is removed; ")).unwrap_or_default();
        let files = u32::try_from(uncommitted).unwrap_or(u32::MAX);
        let with = match files {
            0 => String::new(),
            files => {
                format!(", with {}", phrase::counted(files, "uncommitted file", "uncommitted files"))
            }
        };
        out::tell_note(format!("{id} is discarded: {removed}{back}{with}"));
    }
    Ok(Code::Done.into())
}
