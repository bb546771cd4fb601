use std::process::ExitCode;
use std::thread::JoinHandle;

use refrain_app::{Code, Context, RequestError};
use refrain_core::LoopId;
use refrain_core::view::{Status, StatusWord};
use refrain_engine::{ByKind, Service};

use crate::cmd::plan;
use crate::out::{self, Target};
use crate::render::live::{Live, StatusStyle};
use crate::render::phrase;
use crate::render::screen::Screen;
use crate::values;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  refrain watch
  refrain watch docs-3f9c")]
pub(crate) struct Args {
    /// The loop or plan [default: the one touched last]
    id: Option<LoopId>,
    /// Print the journal's events instead, one JSON object a line
    #[arg(long, alias = "json")]
    events: bool,
}

/// Reports a loop that ended because its runner died: the loop itself could not.
pub(crate) fn gone(status: &Status) {
    if status.status == StatusWord::Crashed {
        let word = phrase::coloured(status.tone(), status.status.as_str());
        let next = status.needs.as_deref().unwrap_or_default();
        out::print(&format!("{word}: {}\n  next: {next}\n", status.reason));
    }
}

/// Shows the loop in a thread of its own until its runner is gone.
pub(crate) fn screen(
    context: &Context,
    service: &Service,
    id: &LoopId,
) -> Result<JoinHandle<()>, RequestError> {
    let follower = service.follow(id, false)?;
    let live = Live::new(StatusStyle::of(context, Some(Target::Stdout)), refrain_engine::now());
    let screen = Screen::new(Some(Target::Stdout), false, live).with_size(service.clone());
    Ok(std::thread::spawn(move || screen.run(follower)))
}

/// Shows the loop until it has stopped.
pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, RequestError> {
    let service = context.service()?;
    let id = values::latest(&service, args.id.as_ref(), "refrain watch")?;
    let follower = match service.watch(&id)? {
        ByKind::Plan(follower) => return plan::watch(&service, (&id, follower), args.events),
        ByKind::Loop(follower) => follower,
    };
    let progress = (!args.events).then_some(Target::Stdout);
    let live = Live::new(StatusStyle::of(context, progress), refrain_engine::now());
    // Scripts get every event; a person gets a digest and then new events.
    let follower = if args.events { follower } else { follower.joining() };
    Screen::new(progress, args.events, live).with_size(service.clone()).run(follower);
    if !args.events {
        gone(&service.status(&id)?);
    }
    Ok(Code::Done.into())
}
