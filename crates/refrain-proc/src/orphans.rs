//! Processes of loops anywhere on the machine: found by the variables that every agent and all its descendants
//! inherit. The caller decides whether they should still run.

use std::collections::BTreeMap;
use std::path::Path;

use refrain_core::event::Process;

use crate::{identity, system};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Orphan {
    pub process: Process,
    /// Its command line, words joined by blanks. Untrusted data.
    pub command: String,
    /// The requested variables that it has. Untrusted data.
    pub variables: BTreeMap<&'static str, String>,
}

/// Every living process, except this one, whose environment can be read and contains all of these variables. The `other`
/// ones are read as far as it has them.
pub fn bearing(variables: &[&'static str], other: &[&'static str]) -> Vec<Orphan> {
    let own = identity::own().process.pid;
    let all = identity::all().filter(|stat| !stat.zombie && stat.process.pid != own);
    all.filter_map(|stat| look(stat.process, variables, other)).collect()
}

/// Every living process, except this one, whose environment can be read and contains this variable, `NAME=value`.
pub fn marked(variable: &str) -> Vec<Orphan> {
    let own = identity::own().process.pid;
    let all = identity::all().filter(|stat| !stat.zombie && stat.process.pid != own);
    let bears = |pid| system::environment(pid).split(|byte| *byte == 0).any(|it| it == variable.as_bytes());
    all.filter(|stat| bears(stat.process.pid))
        .filter_map(|stat| described(stat.process, BTreeMap::new()))
        .collect()
}

fn look(process: Process, needed: &[&'static str], other: &[&'static str]) -> Option<Orphan> {
    let mut variables = BTreeMap::new();
    for entry in system::environment(process.pid).split(|byte| *byte == 0) {
        let entry = String::from_utf8_lossy(entry);
        let Some((name, value)) = entry.split_once('=') else { continue };
        if let Some(name) = needed.iter().chain(other).find(|wanted| **wanted == name) {
            variables.insert(*name, value.to_owned());
        }
    }
    if needed.iter().any(|name| !variables.contains_key(name)) {
        return None;
    }
    described(process, variables)
}

fn described(process: Process, variables: BTreeMap<&'static str, String>) -> Option<Orphan> {
    let command = system::arguments(process.pid);
    let command = String::from_utf8_lossy(&command).trim_end_matches('\0').replace('\0', " ");
    // Its number may have been reused.
    identity::is_running(process).then_some(Orphan { process, command, variables })
}

/// Whether a process with this name prefix works in `dir` or below it. One whose working folder cannot be read
/// counts.
pub fn has_process_in(dir: &Path, name: &str) -> bool {
    let pids = identity::all().filter(|stat| !stat.zombie).map(|stat| stat.process.pid);
    // One that ended meanwhile has no folder either.
    let lives = |pid| identity::stat(pid).is_some_and(|stat| !stat.zombie);
    pids.filter(|pid| system::name(*pid).is_some_and(|found| found.starts_with(name)))
        .any(|pid| system::folder(pid).map_or_else(|| lives(pid), |found| found.starts_with(dir)))
}

/// A process that works in `dir` or below it, as far as that can be seen.
pub fn process_in(dir: &Path) -> Option<Process> {
    let is_there = |pid| system::folder(pid).is_some_and(|found| found.starts_with(dir));
    identity::all().find(|stat| !stat.zombie && is_there(stat.process.pid)).map(|stat| stat.process)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_works_in_a_folder_is_found() {
        let name = system::name(identity::own().process.pid).unwrap();
        let here = std::env::current_dir().unwrap();
        assert!(has_process_in(&here, name.trim()));
        assert!(!has_process_in(&here.join("none"), name.trim()));
        assert!(!has_process_in(&here, "no-such-program"));
        assert!(process_in(&here).is_some());
        assert_eq!(process_in(&here.join("none")), None);
    }
}
