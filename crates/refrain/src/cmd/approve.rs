//! `refrain approve`.

use std::process::ExitCode;

use refrain_app::options::values::duration;
use refrain_app::verbs::approve as app;
use refrain_app::{Context, RequestError};
use refrain_core::LoopId;
use refrain_core::r#loop::Grant;
use refrain_core::spec::Millis;
use refrain_core::view::StatusWord;
use refrain_engine::Brief;

use super::resume;
use crate::run::ShowArgs;
use crate::values;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Which; the only one that is blocked, where it is left out
    id: Option<LoopId>,
    /// The tree that was looked at, or the beginning of its name: another that waits by now is not approved
    #[arg(long, value_name = "TREE", value_parser = app::Approve::tree)]
    tree: Option<String>,
    /// How long the loop may take, in all
    #[arg(long, value_name = "DUR", allow_negative_numbers = true, value_parser = duration)]
    max_duration: Option<Millis>,
    #[command(flatten)]
    show: ShowArgs,
}

/// Which loops it can mean: what is blocked may wait for this.
pub(super) fn could_be(status: &Brief) -> bool {
    status.status == StatusWord::Blocked
}

/// Records what was approved, and drives the loop to its end, here or in a process of its own.
pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, RequestError> {
    let service = context.service()?;
    let id = values::only_one(&service, args.id.as_ref(), "refrain approve", could_be)?;
    let grant = Grant { max_duration: args.max_duration, ..Grant::default() };
    let request = app::Approve { tree: args.tree.clone() };
    let runner = app::approve(context, &service, &id, &request, &grant)?;
    resume::drive(context, &service, runner, &args.show)
}
