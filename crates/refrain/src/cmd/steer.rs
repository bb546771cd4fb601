//! `refrain steer`.

use std::process::ExitCode;

use refrain_core::event::Ask;
use refrain_core::view::StatusWord;
use refrain_core::{LoopId, check_steering};
use refrain_engine::{Brief, EngineError, LoopRequest, Service, SlowRunner};

use crate::cli::Context;
use crate::error::{CliError, Code};
use crate::{out, values};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Which loop, or plan
    id: Option<LoopId>,
    /// What to say, at most 8192 bytes
    #[arg(value_name = "TEXT")]
    words: Vec<String>,
}

/// Which loops it can mean: those that will have a next attempt, or may.
pub(super) fn could_be(status: &Brief) -> bool {
    !matches!(status.status, StatusWord::Completed | StatusWord::Cancelled)
}

/// Hands the words over; returns once the loop has heard them.
pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CliError> {
    let service = context.service()?;
    let id = values::only_one(&service, args.id.as_ref(), "refrain steer", could_be)?;
    let words = args.words.join(" ");
    if words.trim().is_empty() {
        return Err(CliError::usage("TEXT is empty; accepted is what the agent is to be told"));
    }
    out::print(&steer(&service, &id, &words, out::tell_slow)?);
    Ok(Code::Done.into())
}

/// Hands the words to this loop, or to what this plan has at work; says what it came to. `slow` is told where that takes long.
pub(super) fn steer<S: FnOnce(SlowRunner)>(
    service: &Service,
    id: &LoopId,
    words: &str,
    slow: impl Fn(&LoopId) -> S,
) -> Result<String, CliError> {
    check_steering(words).map_err(|refusal| CliError::usage(refusal.to_string()))?;
    if service.has_plan(id) {
        return of_plan(service, id, words, slow);
    }
    service.ask(id, LoopRequest::Steer, Ask::Steer(words.to_owned()), slow(id))?;
    Ok(format!("{id} will be told with its next attempt\n"))
}

/// Hands the words to the loop of each task that is worked on.
fn of_plan<S: FnOnce(SlowRunner)>(
    service: &Service,
    id: &LoopId,
    words: &str,
    slow: impl Fn(&LoopId) -> S,
) -> Result<String, CliError> {
    let state = service.plan(id)?;
    let mut told = Vec::new();
    for (_, running) in state.running() {
        match service.ask(&running.id, LoopRequest::Steer, Ask::Steer(words.to_owned()), slow(&running.id)) {
            Ok(_) => told.push(running.id.to_string()),
            // It was not begun yet, or has just come to its end.
            Err(EngineError::NoLoop { .. } | EngineError::Refused { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    if told.is_empty() {
        let error = format!("no task of {id} is at work, so nobody would be told");
        let later = "what later tasks are to be told stands in the task file, or in a file of --spec-file";
        return Err(
            CliError::new(Code::Refused, error).hint(format!("{later}: they are read anew for each task"))
        );
    }
    Ok(format!("{} will be told with the next attempt; later tasks are not\n", told.join(", ")))
}
