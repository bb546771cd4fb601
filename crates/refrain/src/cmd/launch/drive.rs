//! `refrain drive`, hidden: the detached runner. It reports on standard output that it is ready, or why it is not.

use std::process::ExitCode;

use refrain_app::{Code, Context, RequestError};
use refrain_core::LoopId;
use refrain_core::view::{self, Alive};
use refrain_engine::{ByKind, DETACHED_READY, Signals, chain};

use crate::cmd::plan;
use crate::run::{self, ShowArgs};
use crate::{notifier, out, telemetry};
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
    let telemetry = telemetry::begin(context, &service, |to| runner.export(to));
    let notifier = notifier::begin(context, &service, &args.notify, |to| runner.notifier(to));
    let remembrance = runner.remembrance();
    let driven = run::runtime()?.block_on(runner.drive(&context.host, Signals::Detached, ready));
    let driven = driven.map(|state| view::status(&state, Alive::NO_RUNNER));
    let concluded = match driven {
        // It was the turn of the loop's session.
        Ok(status) if !status.has_stopped() => {
            notifier::finish(notifier);
            telemetry::finish(telemetry);
            Ok(Code::Done.into())
        }
        driven => {
            let show = ShowArgs { notify: args.notify.clone(), ..ShowArgs::default() };
            run::conclude(context, &show, &args.id, (notifier, telemetry), driven)
        }
    };
    run::tell_forgotten(&remembrance);
    concluded
}
