//! The system's limits for a loop and its agents.

use refrain_core::sandbox::{Mechanism, SandboxMode, SandboxSpec};
use refrain_core::view::checkup::{Finding, Subject};
use refrain_core::view::garbage::size;
use refrain_proc::limits;
use refrain_store::config::AgentChoice;

use super::cure::Diagnosis;
use crate::{Service, sandbox};

/// Open files that a runner, its keeper and an agent with its language servers get by with; and those without trouble.
const OPEN_FILES: (u64, u64) = (256, 1024);
/// Processes and threads likewise: agents on node and bun start some dozen each, and builds more.
const PROCESSES: (u64, u64) = (128, 1024);

/// Whether agents can run in a sandbox: it is made, and `true` runs in it.
pub(super) fn sandbox(service: &Service, variables: bool) -> Vec<Diagnosis> {
    let settings = service.settings(AgentChoice::default(), variables).ok();
    let mode = settings.and_then(|settings| settings.config.sandbox.mode).unwrap_or_default();
    let probe = |mechanism| sandbox::probe_machine(service.host(), mechanism);
    let (namespaces, files) = (probe(Mechanism::Namespaces), probe(Mechanism::Files));
    let finding = match (namespaces, files, mode) {
        (_, Err(error), SandboxMode::Files) => {
            let found = format!("no sandbox for files can be made: {error}");
            Finding::problem(Subject::Sandbox, found, error.cause.remedy(&error.refusal))
        }
        (_, Ok(()), SandboxMode::Files) => Finding::ok(
            Subject::Sandbox,
            "agents can run in a sandbox for files (--sandbox=files): Landlock and seccomp",
        ),
        (Ok(()), ..) => {
            let bounds = match sandbox::bounds(&SandboxSpec::default()).memory {
                Some(bytes) => format!("memory bounded to {}", size(bytes)),
                None => "memory and CPU not bounded, as no cgroup is delegated (systemd-run --user --scope refrain has one)".to_owned(),
            };
            let found = format!(
                "agents can run in a sandbox: namespaces, seccomp, and Landlock as far as the kernel has it; {bounds}"
            );
            Finding::ok(Subject::Sandbox, found)
        }
        (Err(error), files, mode) => {
            let less =
                if files.is_ok() { "; --sandbox=files can be made, which limits files alone" } else { "" };
            let (found, advice) =
                (format!("no sandbox can be made: {error}{less}"), error.cause.remedy(&error.refusal));
            match mode {
                SandboxMode::On => Finding::problem(Subject::Sandbox, found, advice),
                SandboxMode::Auto | SandboxMode::Files | SandboxMode::Off => {
                    Finding::warning(Subject::Sandbox, found, advice)
                }
            }
        }
    };
    vec![finding.into()]
}

pub(super) fn look() -> Vec<Diagnosis> {
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
    tight.into_iter().map(Diagnosis::from).collect()
}
