//! `refrain drive`, hidden: the detached runner. It reports on standard output that it is ready, or why it is not.

use std::process::ExitCode;

use refrain_app::{Code, Context, RequestError};
use refrain_core::LoopId;
use refrain_core::view::{self, Alive};
use refrain_engine::{ByKind, DETACHED_READY, EngineError, Signals, chain};

use crate::cmd::plan;
use crate::notify;
use crate::{herald, out, run, telemetry};
use refrain_app::options::notify::NotifyArgs;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    id: LoopId,
    /// Do not drive it: tell a collector of it, now that it has ended
    #[arg(long)]
    tell: bool,
    /// Trust what the project's files name for as long as it is driven
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    notify: NotifyArgs,
}

/// Takes the loop over and drives it to its end.
pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, RequestError> {
    let service = context.open(&context.dir, args.yes)?;
    if args.tell {
        telemetry::tell_whole(context, &service, &args.id)?;
        return Ok(Code::Done.into());
    }
    let taken = service.take(&args.id).inspect_err(|error| out::print(&format!("{}\n", chain(error))))?;
    let runner = match taken {
        ByKind::Loop(runner) => runner,
        ByKind::Plan(runner) => return plan::drive::alone(context, &service, runner, &args.notify),
    };
    let ready = || out::print(&format!("{DETACHED_READY}\n"));
    let telemetry = telemetry::begin(context, runner.worktree(), |to| runner.export(to));
    let herald = herald::begin(context, runner.worktree(), &args.notify, |to| runner.herald(to));
    let remembrance = runner.remembrance();
    let driven = run::runtime()?.block_on(runner.drive(&context.host, Signals::Detached, ready));
    let failed =
        |error: &EngineError| notify::tell_failure(&args.notify, context, args.id.as_str(), &chain(error));
    let driven = driven.inspect_err(failed).map(|state| view::status(&state, Alive::NOBODY));
    if let Some(status) = driven.as_ref().ok().filter(|status| status.has_stopped()) {
        notify::tell(&args.notify, context, &status.id, &status.into());
    }
    herald::finish(herald);
    run::tell_forgotten(&remembrance);
    telemetry::finish(telemetry);
    let status = driven?;
    if !status.has_stopped() {
        // It was the turn of the loop's session.
        return Ok(Code::Done.into());
    }
    Ok(Code::from(status.status).into())
}
