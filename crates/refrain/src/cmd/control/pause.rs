use std::process::ExitCode;

use refrain_app::verbs::fleet::FleetRequest;
use refrain_app::verbs::{Outcome, Slow, Urgent, pause as app};
use refrain_app::{Action, Code, Context, RequestError};
use refrain_core::LoopId;
use refrain_engine::{Brief, ByKind, Service};

use super::steer::ends_before;
use crate::cmd::connect::{fleet, fleet_plan};
use crate::{out, values};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  refrain pause
  refrain pause docs-3f9c --now")]
pub(crate) struct Args {
    /// The loop or plan [default: the only one that runs]
    id: Option<LoopId>,
    /// End the agent now; its attempt is refunded
    #[arg(long)]
    now: bool,
}

pub(crate) fn is_candidate(status: &Brief) -> bool {
    !status.has_stopped()
}

/// Asks for the pause; returns once the loop has received the request.
pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, RequestError> {
    let service = context.service()?;
    let id = values::only_one(
        &service,
        args.id.as_ref(),
        ("refrain pause", "no loop here is running"),
        is_candidate,
    )?;
    if let Some(code) =
        fleet::ask(context, &service, (&id, Action::Pause), || Ok(FleetRequest::Pause { now: args.now }))?
    {
        return Ok(code);
    }
    out::print(&pause(context, &service, &id, args.now, Slow::Note(&mut out::tell_slow))?);
    Ok(Code::Done.into())
}

/// Pauses this loop or plan; returns a text about the result.
pub(crate) fn pause(
    context: &Context,
    service: &Service,
    id: &LoopId,
    now: bool,
    slow: Slow<'_>,
) -> Result<String, RequestError> {
    let outcome = app::pause(context, service, id, Urgent { now }, slow)?;
    let (ended, verb, after) = match outcome {
        Outcome::Over(word) => return Ok(format!("{id} is already {word}\n")),
        Outcome::Answered(state) => match &*state {
            ByKind::Loop(state) => {
                if let Some(words) = ends_before(state) {
                    return Ok(format!("{words}\n"));
                }
                (state.ended.is_some(), "resume", "this iteration")
            }
            ByKind::Plan(state) => {
                fleet_plan::tell_tasks(context, service, state, &FleetRequest::Pause { now })?;
                (state.ended.is_some(), "plan resume", "the iterations at work")
            }
        },
    };
    Ok(match (ended, now) {
        (true, _) => format!("{id} has stopped; refrain {verb} {id} continues\n"),
        (false, true) => format!("{id} will pause now\n"),
        (false, false) => format!("{id} will pause after {after}\n"),
    })
}
