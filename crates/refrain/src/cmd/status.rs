//! `refrain status`.

use std::process::ExitCode;

use refrain_core::LoopId;
use refrain_core::spec::Millis;
use refrain_core::text::printable;
use refrain_core::view::Status;
use refrain_engine::Listed;

use crate::cli::Context;
use crate::error::{CliError, Code};
use crate::screen::clock;
use crate::{out, values};

/// Show how a loop stands
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Which; where it is left out, the only one, or the only one that has not stopped
    id: Option<LoopId>,
    /// Print the status object
    #[arg(long)]
    json: bool,
}

/// Prints the status.
pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CliError> {
    let service = context.service()?;
    let mut loops = match args.id {
        Some(_) => Vec::new(),
        None => service.list()?,
    };
    loops.retain(|row| matches!(row, Listed::Loop(status) if !status.has_stopped()));
    let alive = loops.len() == 1;
    let id = values::only_loop(&service, args.id.as_ref(), "refrain status", |status| {
        !alive || !status.has_stopped()
    })?;
    let status = service.status(&id)?;
    if args.json {
        out::print_json(&status)?;
    } else {
        out::print(&text(&status));
    }
    Ok(Code::Done.into())
}

/// One fact a line.
fn text(status: &Status) -> String {
    let cap = status.max_iterations.map_or_else(|| "∞".to_owned(), |cap| cap.to_string());
    let mut rows = vec![
        ("loop", status.id.to_string()),
        ("status", format!("{}: {}", status.status.as_str(), status.reason)),
        (
            "iteration",
            format!("{}/{cap} ({} charged, {} attempts)", status.iteration, status.charged, status.started),
        ),
        ("runs", format!("{} ({})", status.command.join(" "), status.agent)),
        ("in", status.worktree.clone()),
        ("started", clock(status.started_at)),
        ("last event", clock(status.updated_at)),
    ];
    if let Some(promise) = &status.completion_promise {
        rows.push(("promise", promise.clone()));
    }
    if let Some(wait) = status.wait {
        rows.push(("waits until", clock(wait.until)));
    }
    if let Some(runner) = &status.runner {
        let life = match runner.alive {
            Some(true) => "alive",
            Some(false) => "gone",
            None => "out of sight",
        };
        rows.push(("runner", format!("pid {} on {}, {life}", runner.pid, runner.host)));
    }
    if let Some(needs) = &status.needs {
        rows.push(("next", needs.clone()));
    }
    let mut text = String::new();
    for (name, value) in rows {
        text.push_str(&format!("{name:<12} {}\n", printable(&value).replace('\n', " ")));
    }
    let iterations = status.iterations.as_deref().unwrap_or_default();
    for iteration in &iterations[iterations.len().saturating_sub(10)..] {
        let ended = iteration.ended_at.map(|ended| ended.duration_since(iteration.started_at).unsigned_abs());
        let took = ended.map_or_else(|| "running".to_owned(), |took| Millis::from(took).to_string());
        let exit = match (iteration.exit_code, iteration.signal) {
            (Some(code), _) => code.to_string(),
            (None, Some(signal)) => format!("signal {signal}"),
            (None, None) => "-".to_owned(),
        };
        let name = match iteration.attempt {
            1 => iteration.n.to_string(),
            attempt => format!("{}.{attempt}", iteration.n),
        };
        let refunded = if iteration.charged || iteration.ended_at.is_none() { "" } else { " (refunded)" };
        let preview = iteration.preview.as_deref().unwrap_or_default();
        text.push_str(&format!("  {name:<6} {took:>8}  exit {exit:<9} {preview}{refunded}\n"));
    }
    text
}
