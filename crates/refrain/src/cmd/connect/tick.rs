//! `refrain tick`: drives a loop inside an agent's own session, one call for each step. It works for every agent that
//! can run a command; its exit codes are seed 000's, not those of the other verbs.

mod begin;
mod typed_line;

use std::process::ExitCode;
use std::time::Duration;

use camino::Utf8PathBuf;
use clap::{Subcommand, ValueEnum};
use refrain_app::{Action, Code, Context, RequestError};
use refrain_core::event::{Ask, ClaimSource, End, Urgency};
use refrain_core::prompt;
use refrain_core::text::printable;
use refrain_core::view::{self, Alive};
use refrain_core::{LoopId, LoopState};
use refrain_engine::{EngineError, LoopRequest, Service, Turn, TurnReport, hook};

use crate::out;

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

const HELP: &str = "Exit codes of tick:
  0  it is done
  1  refused, or usage
  2  there is no such loop
  3  it is not running
  4  its iterations are used up
  5  nothing can be written there

Examples:
  refrain tick begin /refrain:loop --args \"Make the tests pass.\"
  refrain tick advance mend";

#[derive(Debug, Subcommand)]
enum Verb {
    Begin(Box<begin::Args>),
    /// End this turn without a claim and begin the next
    ///
    /// Prints the marker, then what to do.
    #[command(after_help = "Examples:\n  refrain tick advance mend\n  refrain tick advance docs-3f9c")]
    Advance {
        /// The loop
        id: LoopId,
    },
    /// Wait up to 100 seconds for the gates, and print the result
    ///
    /// Prints nothing if no gates run.
    #[command(after_help = "Examples:\n  refrain tick hold mend\n  refrain tick hold mend --watch TODO.md")]
    Hold {
        /// The loop
        id: LoopId,
        /// Nothing can be done now: wait until FILE changes, or a while that is longer each time
        #[arg(long, value_name = "FILE")]
        watch: Vec<Utf8PathBuf>,
    },
    /// End the loop; a claim of completion runs the gates first
    #[command(
        after_help = "Examples:\n  refrain tick finish mend completed \"All tests pass.\"\n  refrain tick finish mend cancelled"
    )]
    Finish {
        /// The loop
        id: LoopId,
        /// How it ends
        status: Finish,
        /// What was done: kept as the last message of what is `completed`
        reason: Option<String>,
    },
    /// Check whether Refrain can write its data of a project
    #[command(after_help = "Examples:\n  refrain tick check-writable\n  refrain tick check-writable ~/shop")]
    CheckWritable {
        /// The project [default: this one]
        dir: Option<Utf8PathBuf>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Finish {
    /// The work is done
    Completed,
    /// The user cancels it
    Cancelled,
    /// Its iterations are used up
    MaxIterationsReached,
    /// It broke off: it can be resumed
    Crashed,
}

/// Seed 000's exit codes. Public API.
const NO_LOOP: u8 = 2;
const NOT_RUNNING: u8 = 3;
const CAP: u8 = 4;
const NOT_WRITABLE: u8 = 5;

/// For every refusal, and for input that could not be understood.
pub(crate) const REFUSED: ExitCode = ExitCode::FAILURE;

/// How long `advance` and `finish` wait for a proof, and `hold` does: less than any agent gives a command.
const PATIENCE: Duration = Duration::from_secs(100);

/// Runs the verb, and prints an error if it fails.
pub(crate) fn run(context: &Context, args: Args) -> ExitCode {
    done(context, args.verb).unwrap_or_else(|(code, error)| {
        out::report(&error);
        code
    })
}

type TickResult = Result<ExitCode, (ExitCode, RequestError)>;

fn done(context: &Context, verb: Verb) -> TickResult {
    let service = || context.service().map_err(|error| (REFUSED, error));
    match verb {
        Verb::Begin(args) => {
            let service = service()?;
            begin::run(context, &service, *args).map_err(|error| match error.code() {
                Code::NotFound => (NO_LOOP.into(), error),
                Code::Failed if service.check_writable().is_err() => (NOT_WRITABLE.into(), error),
                _ => (REFUSED, error),
            })
        }
        Verb::Advance { id } => go_on(context, &service()?, &id, Some(&TurnReport::default())),
        Verb::Hold { id, watch } if watch.is_empty() => go_on(context, &service()?, &id, None),
        Verb::Hold { id, watch } => {
            let paths: Vec<_> = watch.iter().map(|path| context.dir.join(path)).collect();
            let why = service()?.idle(&id, &paths).map_err(failed)?;
            out::print(&format!("{why}\n"));
            Ok(ExitCode::SUCCESS)
        }
        Verb::Finish { id, status, reason } => {
            let service = service()?;
            let state = of_caller(context, &service, &id)?;
            finish(context, &service, state, status, reason.as_deref())
        }
        Verb::CheckWritable { dir } => check_writable(context, dir),
    }
}

fn failed(error: EngineError) -> (ExitCode, RequestError) {
    let code = match error {
        EngineError::NoLoop { .. } | EngineError::IsPlan(_) => ExitCode::from(NO_LOOP),
        _ => REFUSED,
    };
    (code, error.into())
}

/// The state of a loop, if the caller may act for it: it does not belong to another live session.
fn of_caller(
    context: &Context,
    service: &Service,
    id: &LoopId,
) -> Result<LoopState, (ExitCode, RequestError)> {
    let state = service.state(id).map_err(failed)?;
    context.check_on(Action::CountSession, service, id).map_err(|error| (REFUSED, error))?;
    let around = hook::surrounding(|name| context.variable(name));
    service.refuse_another_session(&state, around).map_err(failed)?;
    Ok(state)
}

fn go_on(context: &Context, service: &Service, id: &LoopId, said: Option<&TurnReport>) -> TickResult {
    let state = of_caller(context, service, id)?;
    let waits = said.is_none() && state.ended.is_none();
    match service.turn(&state, said, PATIENCE).map_err(failed)? {
        // This call waited for the verdict and returns it.
        Turn::Stopped(state) if waits && is_done(&state) => ended(Ok(*state)),
        Turn::Under(state) if said.is_some() => Err(ended_before(&state)),
        turn => say(id, turn),
    }
}

/// Another call ended the same turn at the same time: that one counts.
fn ended_before(state: &LoopState) -> (ExitCode, RequestError) {
    let id = &state.spec.id;
    let marker = prompt::marker(state, state.iteration);
    let error = format!("another call ended this turn of {id} first; its next is under way: {marker}");
    let hint = format!("nothing was counted twice; refrain status {id} shows it");
    (REFUSED, RequestError::new(Code::Refused, error).hint(hint))
}

fn is_done(state: &LoopState) -> bool {
    matches!(state.ended.map(|ended| ended.end), Some(End::Completed { .. }))
}

fn say(id: &LoopId, turn: Turn) -> TickResult {
    match turn {
        Turn::Next { marker, prompt } => {
            out::print(&format!("{marker}\n{prompt}\n"));
            Ok(ExitCode::SUCCESS)
        }
        Turn::Under(_) => Ok(ExitCode::SUCCESS),
        Turn::Proving => {
            out::print(&format!(
                "the gates still check your work; run this command again: refrain tick hold {id}\n"
            ));
            Ok(ExitCode::SUCCESS)
        }
        Turn::Resting { .. } => {
            out::print(&format!(
                "there is nothing to do yet; run this command, which waits: refrain tick hold {id}\n"
            ));
            Ok(ExitCode::SUCCESS)
        }
        Turn::Stopped(state) => Ok(stopped(&state)),
    }
}

/// Prints how a loop stopped, and returns the exit code for that.
fn stopped(state: &LoopState) -> ExitCode {
    let status = view::status(state, Alive::NO_RUNNER);
    out::print(&format!("{}: {}\n", status.status.as_str(), printable(&status.reason)));
    match state.ended.map(|ended| ended.end) {
        Some(End::IterationCap | End::Completed { claim: ClaimSource::Count }) => CAP.into(),
        _ => NOT_RUNNING.into(),
    }
}

fn finish(
    context: &Context,
    service: &Service,
    state: LoopState,
    status: Finish,
    reason: Option<&str>,
) -> TickResult {
    let id = &state.spec.id;
    if state.ended.is_some() {
        return ended(Ok(state));
    }
    match status {
        Finish::Completed => {
            // A session that claims right after `begin` has worked in its first turn.
            let begun = match state.iteration {
                0 => match service.turn(&state, None, PATIENCE).map_err(failed)? {
                    Turn::Next { .. } | Turn::Under(_) => service.state(id).map_err(failed)?,
                    Turn::Stopped(state) => return Ok(stopped(&state)),
                    turn @ (Turn::Proving | Turn::Resting { .. }) => {
                        return say(id, turn).map(|_| REFUSED);
                    }
                },
                _ => state.clone(),
            };
            let message = reason.unwrap_or_default().to_owned();
            let said = TurnReport { message, claims: true, ..TurnReport::default() };
            match service.turn(&begun, Some(&said), PATIENCE).map_err(failed)? {
                Turn::Stopped(state) => {
                    let code = stopped(&state);
                    Ok(if is_done(&state) { ExitCode::SUCCESS } else { code })
                }
                turn @ (Turn::Proving | Turn::Resting { .. }) => say(id, turn),
                // It is not verified, and continues.
                turn @ Turn::Next { .. } => say(id, turn).map(|_| REFUSED),
                Turn::Under(state) => Err(ended_before(&state)),
            }
        }
        Finish::MaxIterationsReached => ended(service.cap_in_session(id)),
        Finish::Cancelled => {
            let ask = (Ask::Cancel(Urgency::Now), context.caller.asker());
            service.ask(id, LoopRequest::Cancel, ask, |_| ()).map_err(failed)?;
            ended(service.state(id))
        }
        Finish::Crashed => ended(service.leave_session(id)),
    }
}

/// Prints the status of a loop that was ended on request.
fn ended(state: Result<LoopState, EngineError>) -> TickResult {
    stopped(&state.map_err(failed)?);
    Ok(ExitCode::SUCCESS)
}

fn check_writable(context: &Context, dir: Option<Utf8PathBuf>) -> TickResult {
    let dir = dir.map_or_else(|| context.dir.clone(), |dir| context.dir.join(dir));
    let written = Service::open(&dir, context.host.clone()).and_then(|service| service.check_writable());
    written.map(|()| ExitCode::SUCCESS).map_err(|error| (NOT_WRITABLE.into(), error.into()))
}
