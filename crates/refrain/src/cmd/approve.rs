//! `refrain approve`.

use std::process::ExitCode;

use clap::Parser;
use refrain_core::LoopId;
use refrain_core::r#loop::Grant;
use refrain_core::spec::Millis;
use refrain_core::view::{ApprovalWord, Status, StatusWord};
use refrain_engine::Brief;

use super::resume;
use crate::cli::Context;
use crate::error::{CliError, Code};
use crate::run::ShowArgs;
use crate::values;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Which; the only one that is blocked, where it is left out
    id: Option<LoopId>,
    /// The tree that was looked at, or the beginning of its name: another that waits by now is not approved
    #[arg(long, value_name = "TREE", value_parser = tree)]
    tree: Option<String>,
    /// How long the loop may take, in all
    #[arg(long, value_name = "DUR", allow_negative_numbers = true, value_parser = values::duration)]
    max_duration: Option<Millis>,
    #[command(flatten)]
    show: ShowArgs,
}

fn tree(text: &str) -> Result<String, String> {
    let is_name = (4..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    match is_name {
        true => Ok(text.to_ascii_lowercase()),
        false => Err("accepted is a tree's name, at least 4 hexadecimal digits of it".to_owned()),
    }
}

/// Which loops it can mean: what is blocked may wait for this.
pub(super) fn could_be(status: &Brief) -> bool {
    status.status == StatusWord::Blocked
}

/// Records what was approved, and drives the loop to its end, here or in a process of its own.
pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CliError> {
    if let Some(own) = &context.inside {
        let error = format!("loop {own} cannot approve what a loop did from inside an attempt");
        return Err(CliError::new(Code::Refused, error).hint("a person does that, from outside"));
    }
    let service = context.service()?;
    let id = values::only_one(&service, args.id.as_ref(), "refrain approve", could_be)?;
    if service.has_plan(&id) {
        let error = format!("{id} is a plan, whose tasks wait for no approval; accepted are loops");
        return Err(CliError::usage(error));
    }
    let grant = Grant { max_duration: args.max_duration, ..Grant::default() };
    let runner = service.approve(&id, &grant, args.tree.as_deref())?;
    resume::drive(context, &service, runner, &args.show)
}

/// The words of this verb.
#[derive(clap::Parser)]
#[command(no_binary_name = true)]
struct Words {
    #[command(flatten)]
    args: Args,
}

/// Approves what this loop waits with, if that is this tree, and lets it finish in a process of its own; nothing is printed.
pub(super) fn in_background(context: &Context, id: &LoopId, tree: Option<&str>) -> Result<(), CliError> {
    let tree = tree.map(|tree| format!("--tree={tree}"));
    let words = [id.as_str(), "--detach", "--quiet"].into_iter().chain(tree.as_deref());
    run(context, &Words::try_parse_from(words)?.args).map(drop)
}

/// Whether it waits for approval.
pub(super) fn is_awaited(status: &Status) -> bool {
    status.approval.as_ref().is_some_and(|approval| approval.state == ApprovalWord::Awaited)
}

/// Refuses to go on with a loop that waits for approval where nobody named it: that would send its work back.
pub(super) fn refuse_by_accident(status: &Status) -> Result<(), CliError> {
    let id = &status.id;
    if !is_awaited(status) {
        return Ok(());
    }
    let error = CliError::new(Code::Refused, format!("{id} waits for approval, and would be sent back"));
    Err(error.hint(format!("refrain approve {id}")).hint(format!("or, to send it back: refrain resume {id}")))
}
