//! Driving a loop in this process, with a person or a script watching: what `start` and `resume` share.

use std::process::ExitCode;

use clap::Args;
use refrain_core::LoopState;
use refrain_core::view::{self, Alive};
use refrain_engine::{Host, Runner, Service, Signals};

use crate::cli::Context;
use crate::error::{CliError, Code};
use crate::out;
use crate::screen::{Screen, Target};

/// How to show a run.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// Hand the loop to a process of its own and return once that has taken over
    #[arg(long)]
    pub(crate) detach: bool,
    /// Print the final status object on stdout; progress goes to stderr
    #[arg(long)]
    pub(crate) json: bool,
    /// Print the journal's events on stdout as they happen, one JSON object a line; progress goes to stderr
    #[arg(long, conflicts_with = "detach")]
    pub(crate) events: bool,
    /// Print no progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// Drives the loop until it stops, showing it; answers with the exit code of its end.
pub(crate) fn in_foreground(host: &Host, runner: Runner, show: &ShowArgs) -> Result<ExitCode, CliError> {
    let follower = runner.follow();
    let progress = match (show.quiet, show.json || show.events) {
        (true, _) => None,
        (false, true) => Some(Target::Stderr),
        (false, false) => Some(Target::Stdout),
    };
    let screen = (progress.is_some() || show.events).then(|| {
        let screen = Screen::new(progress, show.events);
        std::thread::spawn(move || screen.run(follower))
    });
    let state = runtime()?.block_on(runner.drive(host, Signals::Foreground, || {}));
    if let Some(screen) = screen {
        // It ends with the loop; if it panicked, the loop's own result is what counts.
        let _ = screen.join();
    }
    finish(&state?, show)
}

/// Refuses to hand a loop to a process of its own from inside an attempt: that process would be one that the agent left
/// behind, and be ended with the attempt.
pub(crate) fn may_detach(context: &Context) -> Result<(), CliError> {
    let Some(own) = &context.inside else { return Ok(()) };
    let error =
        format!("--detach from inside an attempt of loop {own}: the runner would be ended with that attempt");
    Err(CliError::new(Code::Refused, error)
        .hint("start it in the foreground; a person can detach it, from outside"))
}

/// Hands the loop to a process of its own.
pub(crate) fn detached(
    service: &Service,
    runner: Runner,
    dir: &str,
    show: &ShowArgs,
) -> Result<ExitCode, CliError> {
    if runner.ends_at_once() {
        // There is nothing to hand over: it has used up what it has, or may not be tried again.
        return in_foreground(service.host(), runner, show);
    }
    let id = runner.id().to_string();
    let state = service.detach(runner, &["-C", dir, "drive", &id].map(str::to_owned))?;
    if show.json {
        out::print_json(&view::status(&state, Alive::DRIVEN))?;
    } else if !show.quiet {
        out::print(&format!("{id}\n"));
        out::tell(&format!("runs by itself: refrain watch {id}, refrain pause {id}, refrain cancel {id}\n"));
    }
    Ok(Code::Done.into())
}

fn finish(state: &LoopState, show: &ShowArgs) -> Result<ExitCode, CliError> {
    let status = view::status(state, Alive::NOBODY);
    if show.json && show.events {
        out::print_json_line(&status)?;
    } else if show.json {
        out::print_json(&status)?;
    }
    Ok(Code::from(status.status).into())
}

/// One thread for everything that waits; what blocks gets others, for as long as it does.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, CliError> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .thread_keep_alive(std::time::Duration::from_secs(1))
        .build()
        .map_err(|error| CliError::new(Code::Failed, format!("the runtime cannot be started: {error}")))
}
