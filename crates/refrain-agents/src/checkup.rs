//! Information that an agent's program gives before it is run: whether a user is logged in, and what would make it
//! prompt or refuse when unattended. Its own commands are used, and its configuration is read if it has none. Nothing
//! here starts a process; that and its time limit belong to the engine.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::view::checkup::{Finding, Subject};
use refrain_proc::probe::ProbeOutput;
use serde_json::Value;

/// The largest configuration file that is read, in bytes.
const LARGEST: u64 = 4 << 20;

/// The place and the environment of an agent.
#[derive(Clone, Copy, Debug)]
pub struct AgentDirs<'a> {
    pub env: &'a [(OsString, OsString)],
    pub dir: &'a Utf8Path,
    /// The repository's main worktree, which some programs trust by name.
    pub root: &'a Utf8Path,
}

impl AgentDirs<'_> {
    /// The value of a variable, unless it is empty.
    pub fn value(&self, name: &str) -> Option<&str> {
        let last = self.env.iter().rev().find(|(set, _)| set == name);
        last.and_then(|(_, value)| value.to_str()).filter(|value| !value.is_empty())
    }

    /// The folder in a variable, or else this one in the user's home.
    pub(crate) fn home(&self, variable: &str, otherwise: &str) -> Option<Utf8PathBuf> {
        let own = self.value(variable).map(Utf8PathBuf::from);
        own.or_else(|| Some(Utf8Path::new(self.value("HOME")?).join(otherwise)))
    }

    /// The entry of the nearest folder, this one or one above it, in a table of folders.
    pub(crate) fn nearest<'v, T>(&self, of: impl Fn(&Utf8Path) -> Option<&'v T>) -> Option<&'v T> {
        self.dir.ancestors().find_map(&of).or_else(|| of(self.root))
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Question {
    pub args: &'static [&'static str],
    pub env: &'static [(&'static str, &'static str)],
}

/// How an agent can be checked before it is run; by default there is no known way.
pub trait Checkup: Sync {
    fn questions(&self) -> &'static [Question] {
        &[]
    }

    /// Evaluates the answers, one per question in their order, and its files. None is an answer that did not arrive
    /// in time.
    fn findings(&self, _place: &AgentDirs<'_>, _answers: &[Option<ProbeOutput>]) -> Vec<Finding> {
        Vec::new()
    }
}

/// The finding for a program without a readable answer.
pub(crate) fn silent(answer: Option<&ProbeOutput>, ask: &str) -> Finding {
    let found = match answer {
        Some(_) => "what the program says of its login cannot be read",
        None => "the program did not say in time whether it is logged in",
    };
    Finding::warning(Subject::Login, found, format!("run {ask}, and see what a first run by hand says"))
}

/// A configuration file; none if it does not exist or is no text of a reasonable size.
pub(crate) fn text(path: &Utf8Path) -> Option<String> {
    // A FIFO would block.
    let meta = std::fs::metadata(path).ok().filter(|meta| meta.is_file() && meta.len() <= LARGEST)?;
    let mut text = String::with_capacity(usize::try_from(meta.len()).unwrap_or_default());
    File::open(path).ok()?.take(LARGEST).read_to_string(&mut text).ok()?;
    Some(text)
}

/// A JSON configuration file; null if it does not exist, or is something else.
pub(crate) fn json(path: &Utf8Path) -> Value {
    text(path).and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
}
