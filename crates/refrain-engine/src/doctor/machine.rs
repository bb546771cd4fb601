//! The system's limits for a loop and its agents.

use refrain_core::view::checkup::{Finding, Subject};
use refrain_proc::limits;

use super::cure::Found;

/// Open files that a runner, its keeper and an agent with its language servers get by with; and those without trouble.
const OPEN_FILES: (u64, u64) = (256, 1024);
/// Processes and threads likewise: agents on node and bun start some dozen each, and builds more.
const PROCESSES: (u64, u64) = (128, 1024);

pub(super) fn look() -> Vec<Found> {
    let limits = limits::own();
    let judge = |what: &str, flag: &str, limit: Option<u64>, (least, enough): (u64, u64)| {
        let limit = limit.filter(|limit| *limit < enough)?;
        let found = format!("only {limit} {what} are allowed");
        let advice = format!("raise it before the start, ulimit {flag} {enough}, or for good in limits.conf");
        Some(match limit < least {
            true => Finding::problem(Subject::Limits, found, advice),
            false => Finding::warning(Subject::Limits, found, advice),
        })
    };
    let tight: Vec<Finding> = [
        judge("open files", "-n", limits.open_files, OPEN_FILES),
        judge("processes", "-u", limits.processes, PROCESSES),
    ]
    .into_iter()
    .flatten()
    .collect();
    if tight.is_empty() {
        let number = |limit: Option<u64>| limit.map_or("any number of".to_owned(), |limit| limit.to_string());
        let found = format!(
            "{} open files, {} processes are allowed",
            number(limits.open_files),
            number(limits.processes)
        );
        return vec![Finding::ok(Subject::Limits, found).into()];
    }
    tight.into_iter().map(Found::from).collect()
}
