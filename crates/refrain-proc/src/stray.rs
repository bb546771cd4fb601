//! Processes of loops, wherever they are: found by the variables that every agent, and whatever it starts, is given. Whether
//! they should still be there is for somebody else to say.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use refrain_core::event::Process;

use crate::identity;

/// A process that bears a loop's mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stray {
    /// The process.
    pub process: Process,
    /// Its command line, words joined by blanks. Data.
    pub command: String,
    /// Those of the variables asked for that it has. Data.
    pub variables: BTreeMap<&'static str, String>,
}

/// Every living process but this one whose environment can be read and holds all of these variables.
#[must_use]
pub fn bearing(variables: &[&'static str]) -> Vec<Stray> {
    let own = identity::own().process.pid;
    let all = identity::all().filter(|stat| !stat.zombie && stat.process.pid != own);
    all.filter_map(|stat| look(stat.process, variables)).collect()
}

fn look(process: Process, wanted: &[&'static str]) -> Option<Stray> {
    let mut variables = BTreeMap::new();
    for entry in environment(process.pid).split(|byte| *byte == 0) {
        let entry = String::from_utf8_lossy(entry);
        let Some((name, value)) = entry.split_once('=') else { continue };
        if let Some(name) = wanted.iter().find(|wanted| **wanted == name) {
            variables.insert(*name, value.to_owned());
        }
    }
    if variables.len() < wanted.len() {
        return None;
    }
    let command = arguments(process.pid);
    let command = String::from_utf8_lossy(&command).trim_end_matches('\0').replace('\0', " ");
    // Its number may be another's by now.
    identity::is_running(process).then_some(Stray { process, command, variables })
}

/// Whether anybody whose name begins so works in `dir` or below it. One who hides where it works might.
#[must_use]
pub fn anyone_works_in(dir: &Path, name: &str) -> bool {
    let pids = identity::all().filter(|stat| !stat.zombie).map(|stat| stat.process.pid);
    pids.filter(|pid| self::name(*pid).is_some_and(|found| found.starts_with(name)))
        .any(|pid| folder(pid).is_none_or(|found| found.starts_with(dir)))
}

fn environment(pid: i32) -> Vec<u8> {
    fs::read(format!("/proc/{pid}/environ")).unwrap_or_default()
}

fn arguments(pid: i32) -> Vec<u8> {
    fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default()
}

fn name(pid: i32) -> Option<String> {
    fs::read_to_string(format!("/proc/{pid}/comm")).ok()
}

fn folder(pid: i32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/cwd")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_works_in_a_folder_is_seen_by_name() {
        let name = name(identity::own().process.pid).unwrap();
        let here = std::env::current_dir().unwrap();
        assert!(anyone_works_in(&here, name.trim()));
        assert!(!anyone_works_in(&here.join("none"), name.trim()));
        assert!(!anyone_works_in(&here, "no-such-program"));
    }
}
