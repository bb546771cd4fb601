//! The supervisors that this process runs under. A supervisor is a subreaper, so every descendant of an attempt has
//! it among its ancestors, with any environment and session.

use camino::Utf8PathBuf;
use refrain_core::event::Process;

use super::KEEPER_NAME;
use crate::identity::{self, Stat};
use crate::system;

/// A supervisor among the ancestors of this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnclosingSupervisor {
    /// The data folder of its loop. It is on its command line, which another program can imitate: the journal in that
    /// folder names the runner too.
    pub loop_dir: Option<Utf8PathBuf>,
    pub runner: Option<Process>,
}

/// The supervisors above this process, nearest first.
pub fn enclosing() -> Vec<EnclosingSupervisor> {
    let ancestors = identity::ancestors();
    let with_parent = ancestors.iter().enumerate().map(|(at, stat)| (stat, ancestors.get(at + 1)));
    with_parent.filter_map(|(stat, parent)| supervisor(stat, parent)).collect()
}

/// Whether a process was started as a supervisor, by its arguments.
pub(crate) fn is_keeper(arguments: &[u8]) -> bool {
    arguments.split(|byte| *byte == 0).next() == Some(KEEPER_NAME.as_bytes())
}

fn supervisor(stat: &Stat, parent: Option<&Stat>) -> Option<EnclosingSupervisor> {
    let arguments = system::arguments(stat.process.pid);
    if !is_keeper(&arguments) {
        return None;
    }
    let loop_dir = arguments.split(|byte| *byte == 0).nth(1).and_then(|word| std::str::from_utf8(word).ok());
    let loop_dir = loop_dir.filter(|word| !word.is_empty()).map(Utf8PathBuf::from);
    Some(EnclosingSupervisor { loop_dir, runner: parent.map(|parent| parent.process) })
}
