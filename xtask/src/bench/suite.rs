//! The list of subjects, and the run of one after the other.

use std::time::Instant;

use clap::Args;

use super::loops::{
    agents, cancel, confined, idle, iteration, lingering, output, plan, plan_run, repository, sessions,
};
use super::measure::tools::Tools;
use super::measure::{counts, schedule};
use super::report::Verdict;
use super::surfaces::subject::{Bench, Subject};
use super::surfaces::{build, catalog, growth, hosts, serve, startup, top};
use super::{page, report};
use crate::failure::{Result, fail};
use crate::workspace::Workspace;

/// How to run the benchmarks.
#[derive(Args)]
pub(crate) struct Options {
    /// Few rounds and small sizes: only checks that every benchmark runs and the program behaves, judges no figure
    #[arg(long)]
    smoke: bool,
    /// Renew docs/explanation/performance.md with the figures of this run
    #[arg(long, conflicts_with = "smoke")]
    write: bool,
    /// Only these subjects
    #[arg(value_name = "SUBJECT", value_parser = names())]
    subjects: Vec<String>,
}

const SUBJECTS: &[(&str, Subject)] = &[
    ("iteration", iteration::run),
    ("counts", counts::run),
    ("growth", growth::run),
    ("output", output::run),
    ("startup", startup::run),
    ("sessions", sessions::run),
    ("idle", idle::run),
    ("top", top::run),
    ("serve", serve::run),
    ("lingering", lingering::run),
    ("cancel", cancel::run),
    ("commit", repository::commit),
    ("work", repository::work),
    ("worktree", repository::worktree),
    ("catalog", catalog::run),
    ("hosts", hosts::run),
    ("plan", plan::run),
    ("plan-run", plan_run::run),
    ("schedule", schedule::run),
    ("agents", agents::run),
    ("sandbox", confined::run),
    ("build", build::run),
];

fn names() -> Vec<&'static str> {
    SUBJECTS.iter().map(|(name, _)| *name).collect()
}

/// Runs the subjects and shows the table. A missed goal does not fail a run, because a loaded machine would miss it.
/// A subject fails the run if it could not be measured, because the program misbehaved.
pub(crate) fn run(options: &Options) -> Result<()> {
    let workspace = Workspace::load()?;
    let tools = Tools::prepare(&workspace, options.smoke)?;
    let bench = Bench { workspace, tools, smoke: options.smoke };
    let before = page::load_average();
    let (mut rows, mut broken, mut not_measured) = (Vec::new(), Vec::new(), Vec::new());
    for (name, subject) in SUBJECTS {
        if !options.subjects.is_empty() && !options.subjects.iter().any(|asked| asked == name) {
            not_measured.push(*name);
            continue;
        }
        eprint!("bench {name} … ");
        let from = Instant::now();
        match subject(&bench) {
            Ok(found) => {
                eprintln!("{:.1} s", from.elapsed().as_secs_f64());
                rows.extend(found);
            }
            Err(failure) => {
                eprintln!("FAILED: {failure}");
                broken.push(*name);
            }
        }
    }
    if options.smoke {
        // Few rounds give no reliable speed: the figure is shown without a verdict. Counts are exact.
        for row in rows.iter_mut().filter(|row| !row.is_steady) {
            row.verdict.spare();
        }
    }
    print!("{}", report::table(&rows));
    if !broken.is_empty() {
        return fail(format!("could not be measured: {} (the reason stands above)", broken.join(", ")));
    }
    let missed: Vec<String> = rows
        .iter()
        .filter(|row| row.verdict == Verdict::Missed)
        .map(|row| format!("{}, {}: {}, goal {}", row.subject, row.what, row.ours, row.goal))
        .collect();
    if options.smoke && !missed.is_empty() {
        return fail(format!("beyond bounds that no load changes, find the cause: {}", missed.join("; ")));
    }
    if options.smoke {
        println!(
            "\nsmoke: everything ran and behaved; of so few rounds only counts, pages and memory are judged"
        );
    }
    if !missed.is_empty() {
        println!("{} goal(s) MISSED in this run", missed.len());
    }
    if options.write {
        page::write(&bench, &rows, &not_measured, &before)?;
    }
    Ok(())
}
