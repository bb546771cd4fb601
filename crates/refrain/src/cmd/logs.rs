//! `refrain logs`.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::process::ExitCode;

use camino::Utf8Path;
use refrain_core::event::Event;
use refrain_core::text::printable;
use refrain_core::view::Status;
use refrain_core::{AttemptId, LoopId};
use refrain_engine::{Service, Sight};

use crate::cli::Context;
use crate::error::{CliError, Code};
use crate::{out, values};

/// Show what the agent printed
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Which; the only one, where it is left out
    id: Option<LoopId>,
    /// Go on showing it as it comes, until the loop has stopped
    #[arg(short, long, conflicts_with = "iteration")]
    follow: bool,
    /// Only that iteration, all its attempts
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = values::iteration)]
    iteration: Option<u32>,
}

/// How much of an overlong line is shown as one.
const LONGEST_LINE: u64 = 1 << 20;

/// Prints the logs of the attempts, oldest first.
pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CliError> {
    let service = context.service()?;
    let id = values::only_loop(&service, args.id.as_ref(), "refrain logs", |_| true)?;
    let status = service.status(&id)?;
    let attempts = attempts(&status, args.iteration);
    if let Some(n) = args.iteration
        && attempts.is_empty()
    {
        let error = format!(
            "--iteration {n}: loop {id} has no such iteration; accepted are 1 to {}",
            status.iteration
        );
        return Err(CliError::new(Code::NotFound, error));
    }
    if args.follow {
        return follow(&service, &id);
    }
    for attempt in attempts {
        if !show(&service, &id, attempt)? {
            break;
        }
    }
    Ok(Code::Done.into())
}

fn attempts(status: &Status, only: Option<u32>) -> Vec<AttemptId> {
    let all = status.iterations.iter().flatten();
    all.map(|row| AttemptId { iteration: row.n, attempt: row.attempt })
        .filter(|id| only.is_none_or(|n| id.iteration == n))
        .collect()
}

/// Prints one attempt; false once nobody reads any more.
fn show(service: &Service, id: &LoopId, attempt: AttemptId) -> Result<bool, CliError> {
    let dir = service.locate(id)?.dir.attempt(attempt);
    Ok(copy(&heading(attempt), &dir.output()) && copy("-- stderr\n", &dir.stderr()))
}

/// Prints a file under its heading; one that is not there was never written to.
fn copy(heading: &str, path: &Utf8Path) -> bool {
    let Ok(file) = File::open(path) else {
        return !heading.starts_with("==") || out::print_raw(heading.as_bytes());
    };
    if !out::print_raw(heading.as_bytes()) {
        return false;
    }
    let mut reader = BufReader::new(file);
    let mut line = Vec::new();
    loop {
        line.clear();
        match reader.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return true,
            Ok(_) => {}
        }
        if !out::print_raw(printable(&String::from_utf8_lossy(&line)).as_bytes()) {
            return false;
        }
        let at_end = reader.fill_buf().map_or(true, <[u8]>::is_empty);
        if at_end && !line.ends_with(b"\n") {
            return out::print_raw(b"\n");
        }
    }
}

/// Everything so far, then as it comes.
fn follow(service: &Service, id: &LoopId) -> Result<ExitCode, CliError> {
    let mut follower = service.follow(id, true)?;
    loop {
        let open = match follower.look().map_err(refrain_engine::EngineError::from)? {
            None => break,
            Some(Sight::Output { bytes, .. }) => {
                out::print_raw(printable(&String::from_utf8_lossy(&bytes)).as_bytes())
            }
            Some(Sight::Event(record) | Sight::Past(record)) => match record.event {
                Event::AttemptStarted(attempt) => out::print_raw(heading(attempt).as_bytes()),
                _ => true,
            },
        };
        if !open {
            break;
        }
    }
    Ok(Code::Done.into())
}

fn heading(attempt: AttemptId) -> String {
    format!("== iteration {attempt}\n")
}
