//! `refrain report`.

use std::process::ExitCode;

use camino::Utf8PathBuf;
use jiff::Timestamp;
use refrain_core::LoopId;

use crate::cli::Context;
use crate::error::{CliError, Code};
use crate::report::{document, page, text};
use crate::telling::clock;
use crate::{out, values};

/// Report on a loop: what was asked and claimed, what proved it, what it took
///
/// It is made from the journal, the kept logs and the repository, and can be checked with refrain verify. Secrets, and
/// values that --env set, are left out.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Which; the only one, where it is left out
    id: Option<LoopId>,
    /// Print the report as an object
    #[arg(long)]
    json: bool,
    /// Print one page of HTML that needs nothing else
    #[arg(long, conflicts_with = "json")]
    html: bool,
    /// Write it to FILE in place of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<Utf8PathBuf>,
}

/// Prints or writes the report.
pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CliError> {
    let service = context.service()?;
    let id = values::only_loop(&service, args.id.as_ref(), "refrain report", |_| true)?;
    let report = service.report(&id)?;
    let failed = |error: &dyn std::fmt::Display| {
        CliError::new(Code::Failed, format!("the report on {id} cannot be made: {error}"))
    };
    let is_shown = args.output.is_none();
    let text = if args.json {
        let text = serde_json::to_string_pretty(&report).map_err(|error| failed(&error))?;
        format!("{text}\n")
    } else if args.html {
        let made = format!(
            "Made by Refrain {} from the journal of loop {id}. Times are those of UTC.",
            report.refrain.reported
        );
        page(&document(&report, &utc), &made).map_err(|error| failed(&error))?
    } else {
        text(&document(&report, &clock), if is_shown { out::terminal_width() } else { None })
    };
    match &args.output {
        Some(path) => out::write_file(&context.dir.join(path), &text)?,
        // On a page and in an object nothing is a colour.
        None if args.json || args.html => out::print_whole(&text)?,
        None => out::print(&text),
    }
    Ok(Code::Done.into())
}

/// A time that is the same for everybody who reads it.
fn utc(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M:%S").to_string()
}
