//! `refrain list`.

use std::process::ExitCode;

use jiff::Timestamp;
use refrain_core::spec::Millis;
use refrain_core::text::printable;
use refrain_core::view::Status;
use refrain_engine::{Listed, Service};

use crate::cli::Context;
use crate::error::{CliError, Code, chain};
use crate::{out, phrase};

/// List the loops of this project
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Those of every project that refrain has worked in
    #[arg(long)]
    all_projects: bool,
    /// Print an array of status objects
    #[arg(long)]
    json: bool,
}

/// Prints the list; what is damaged is named, and does not keep the rest from being shown.
pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CliError> {
    let service = context.service()?;
    let mut services = vec![service.clone()];
    if args.all_projects {
        let others = service.other_projects();
        services.extend(others.iter().filter_map(|root| Service::open(root, context.host.clone()).ok()));
    }
    let mut loops: Vec<Status> = Vec::new();
    for service in &services {
        for row in service.list()? {
            match row {
                Listed::Loop(status) => loops.push(*status),
                Listed::Damaged { name, error } => {
                    out::tell(&format!("refrain: {name}: {}\n", chain(&error)))
                }
            }
        }
    }
    if args.json {
        out::print_json(&loops)?;
    } else if loops.is_empty() {
        out::print("No loops in this project.\n");
    } else {
        let now = refrain_engine::now();
        loops.iter().for_each(|status| out::print(&row(status, now, args.all_projects)));
    }
    Ok(Code::Done.into())
}

fn row(status: &Status, now: Timestamp, with_project: bool) -> String {
    let ago = Millis::from(now.duration_since(status.updated_at).unsigned_abs());
    let project = if with_project { format!("  {}", status.project) } else { String::new() };
    let line = format!(
        "{:<24} {:<14} {:>7}  {ago:>8} ago  {}{project}",
        status.id,
        status.status.as_str(),
        phrase::progress(status.iteration, status.max_iterations),
        status.reason
    );
    format!("{}\n", printable(&line).replace('\n', " "))
}
