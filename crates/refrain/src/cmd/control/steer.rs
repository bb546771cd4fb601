use std::process::ExitCode;

use refrain_app::verbs::Slow;
use refrain_app::verbs::fleet::FleetRequest;
use refrain_app::verbs::resume;
use refrain_app::verbs::steer::{self as app, Steering};
use refrain_app::{Action, Code, Context, RequestError};
use refrain_core::view::StatusWord;
use refrain_core::{LoopId, LoopState};
use refrain_engine::{Brief, ByKind, Service};

use crate::cmd::connect::fleet;
use crate::{out, values};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  refrain steer docs-3f9c \"Leave the parser alone.\"
  refrain steer my-feature \"The port is 5433.\"")]
pub(crate) struct Args {
    /// Which loop, or plan
    #[arg(value_parser = id)]
    id: Option<LoopId>,
    /// What to say, at most 8192 bytes
    #[arg(value_name = "TEXT")]
    words: Vec<String>,
}

/// The id, which comes before the text.
fn id(text: &str) -> Result<LoopId, String> {
    match text.contains(char::is_whitespace) {
        true => {
            Err("which loop? accepted: the ID of a loop, then TEXT; refrain list shows the IDs".to_owned())
        }
        false => text.parse::<LoopId>().map_err(|error| error.to_string()),
    }
}

/// Candidates without an id: loops that will or may have a next attempt.
pub(crate) fn is_candidate(status: &Brief) -> bool {
    !matches!(status.status, StatusWord::Completed | StatusWord::Cancelled | StatusWord::Moved)
}

/// The text in the words of the command line.
pub(crate) fn steering(words: &[String], verb: &str) -> Result<Steering, RequestError> {
    match words {
        [] => Err(RequestError::usage("TEXT is missing; accepted: words for the agent")
            .hint(format!("{verb} ID TEXT"))),
        words => Ok(Steering { text: words.join(" ") }),
    }
}

/// Sends the text; returns once the loop has received it.
pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, RequestError> {
    let service = context.service()?;
    let id = values::only_one(
        &service,
        args.id.as_ref(),
        ("refrain steer", "every loop here is completed, cancelled or moved"),
        is_candidate,
    )?;
    let steering = steering(&args.words, "refrain steer")?;
    let request = || steering.check().map(|()| FleetRequest::Steer { text: steering.text.clone() });
    if let Some(code) = fleet::ask(context, &service, (&id, Action::Steer), request)? {
        return Ok(code);
    }
    out::print(&steer(context, &service, &id, steering, Slow::Note(&mut out::tell_slow))?);
    Ok(Code::Done.into())
}

/// Sends the text to this loop, or to the running tasks of this plan; returns a text about the result.
pub(crate) fn steer(
    context: &Context,
    service: &Service,
    id: &LoopId,
    steering: Steering,
    slow: Slow<'_>,
) -> Result<String, RequestError> {
    Ok(match app::steer(context, service, id, &steering, slow)? {
        ByKind::Loop(id) => {
            if let Some(words) = service.state(&id).ok().and_then(|state| ends_before(&state)) {
                return Ok(format!("{words}\n"));
            }
            let has_stopped = service.status(&id).is_ok_and(|status| status.has_stopped());
            let until = match has_stopped {
                true => format!("; {} starts that", resume::command(service, &id)),
                false => String::new(),
            };
            format!("{id} will be told with its next attempt{until}\n")
        }
        ByKind::Plan(told) => {
            let told = told.iter().map(LoopId::as_str).collect::<Vec<_>>().join(", ");
            format!("{told} will be told with the next attempt; later tasks are not\n")
        }
    })
}

/// That a running loop is cancelled before it does what was asked now.
pub(crate) fn ends_before(state: &LoopState) -> Option<String> {
    let request =
        state.cancel_request.as_ref().filter(|_| state.cancel.is_some() && state.ended.is_none())?;
    let (id, request) = (&state.spec.id, request.as_str());
    Some(format!(
        "{id} is cancelled after this iteration, before that; refrain take-back {id} {request} takes the cancel back"
    ))
}
