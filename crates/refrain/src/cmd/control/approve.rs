use std::io::{IsTerminal, stdin};
use std::process::ExitCode;

use refrain_app::options::values::duration;
use refrain_app::verbs::approve as app;
use refrain_app::verbs::fleet::FleetRequest;
use refrain_app::{Action, Code, Context, RequestError};
use refrain_core::LoopId;
use refrain_core::r#loop::Grant;
use refrain_core::spec::Millis;
use refrain_core::text::printable;
use refrain_core::view::StatusWord;
use refrain_engine::{Brief, Service};

use crate::cmd::connect::fleet;
use crate::cmd::launch::resume;
use crate::run::ShowArgs;
use crate::{out, values};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  refrain approve docs-3f9c
  refrain approve docs-3f9c --tree 5be8c3d01a")]
pub(crate) struct Args {
    /// The loop [default: the only one that waits for approval]
    id: Option<LoopId>,
    /// The tree that you looked at, or the beginning of its name; needed without a terminal
    ///
    /// If another tree waits by now, nothing is approved. A loop without a repository has the tree `none`.
    #[arg(long, value_name = "TREE", value_parser = app::Approve::tree)]
    tree: Option<String>,
    /// How long the loop may take in total
    #[arg(long, value_name = "DUR", allow_negative_numbers = true, value_parser = duration)]
    max_duration: Option<Millis>,
    #[command(flatten)]
    show: ShowArgs,
}

/// Candidates without an id: a blocked loop may wait for approval.
pub(crate) fn is_candidate(status: &Brief) -> bool {
    status.status == StatusWord::Blocked
}

/// Shows the tree that waits, and asks the person at the terminal about it.
fn confirm(context: &Context, service: &Service, id: &LoopId, grant: &Grant) -> Result<(), RequestError> {
    context.check(Action::Approve)?;
    let Some(status) = service.status(id).ok().filter(app::is_awaited) else {
        // The approval itself reports why it is not possible.
        return Ok(());
    };
    service.check_approval(id, grant)?;
    let tree = status.approval.and_then(|approval| approval.tree).map(|tree| tree.to_string());
    let tree = tree.as_deref().unwrap_or(app::Approve::NO_TREE);
    if !stdin().is_terminal() {
        let error = format!(
            "{id} waits with tree {tree}: without a terminal, accepted: --tree with what you looked at"
        );
        return Err(RequestError::usage(error).hint(format!("refrain approve {id} --tree {tree}")));
    }
    out::tell(&format!("{id} waits with tree {tree}\n{}\n", printable(&status.needs.unwrap_or_default())));
    match values::confirm("Approve it? [y/N] ")? {
        true => Ok(()),
        false => Err(RequestError::new(Code::Failed, "it is not approved; nothing was changed")),
    }
}

/// Records the approval, and drives the loop to its end, here or in a process of its own.
pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, RequestError> {
    let service = context.service()?;
    let awaits =
        |status: &Brief| is_candidate(status) && app::awaits(&service, &status.id).unwrap_or_default();
    let none = "no loop here waits for approval";
    let id = values::only_one(&service, args.id.as_ref(), ("refrain approve", none), awaits)?;
    let grant = Grant { max_duration: args.max_duration, ..Grant::default() };
    let copy = service.reading(&id)?;
    if copy.copy().is_some() && args.tree.is_none() {
        confirm(context, &copy.service, &id, &grant)?;
    }
    let tree = || {
        let status = copy.service.status(&id).ok();
        let waits = status.and_then(|status| status.approval?.tree).map(|tree| tree.to_string());
        Ok(FleetRequest::Approve { tree: args.tree.clone().or(waits) })
    };
    if let Some(code) = fleet::ask(context, &service, (&id, Action::Approve), tree)? {
        return Ok(code);
    }
    if args.tree.is_none() {
        confirm(context, &service, &id, &grant)?;
    }
    let request = app::Approve { tree: args.tree.clone() };
    let runner = app::approve(context, &service, &id, &request, &grant)?;
    resume::drive_resumed(context, &service, runner, &args.show)
}
