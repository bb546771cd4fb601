//! Processes of loops, wherever they are: found by the variables that every agent, and whatever it starts, is given. Whether
//! they should still be there is for somebody else to say.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

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
    let environment = fs::read(format!("/proc/{}/environ", process.pid)).ok()?;
    let mut variables = BTreeMap::new();
    for entry in environment.split(|byte| *byte == 0) {
        let entry = String::from_utf8_lossy(entry);
        let Some((name, value)) = entry.split_once('=') else { continue };
        if let Some(name) = wanted.iter().find(|wanted| **wanted == name) {
            variables.insert(*name, value.to_owned());
        }
    }
    if variables.len() < wanted.len() {
        return None;
    }
    let command = fs::read(format!("/proc/{}/cmdline", process.pid)).unwrap_or_default();
    let command = String::from_utf8_lossy(&command).trim_end_matches('\0').replace('\0', " ");
    // Its number may be another's by now.
    identity::is_running(process).then_some(Stray { process, command, variables })
}

/// Whether anybody whose name begins so works in `dir` or below it. One who hides where it works might.
#[must_use]
pub fn anyone_works_in(dir: &Path, name: &str) -> bool {
    identity::all().filter(|stat| !stat.zombie).any(|stat| {
        let at = |file: &str| Path::new("/proc").join(stat.process.pid.to_string()).join(file);
        let is_named = fs::read_to_string(at("comm")).is_ok_and(|found| found.starts_with(name));
        is_named && fs::read_link(at("cwd")).map_or(true, |found| found.starts_with(dir))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_works_in_a_folder_is_seen_by_name() {
        let name = fs::read_to_string("/proc/self/comm").unwrap();
        let here = std::env::current_dir().unwrap();
        assert!(anyone_works_in(&here, name.trim()));
        assert!(!anyone_works_in(&here.join("none"), name.trim()));
        assert!(!anyone_works_in(&here, "no-such-program"));
    }
}
