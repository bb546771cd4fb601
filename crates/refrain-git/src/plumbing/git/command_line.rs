//! What the arguments of a git say of it.

use std::ffi::{OsStr, OsString};
use std::path::Path;

/// The commands that run filters or merge drivers, if any exist: those that write files or compare them, and those that write
/// an index, which compares files whose times are not old enough.
const FILTERING: &[&str] = &[
    "checkout-index",
    "commit",
    "diff-files",
    "ls-files",
    "merge",
    "merge-tree",
    "read-tree",
    "reset",
    "status",
    "switch",
    "update-index",
    "write-tree",
];

/// The commands that connect to a remote. A remote that is a local folder has hooks and a configuration that an agent
/// can write, and their processes are children of these commands.
const TALKING: &[&str] = &["fetch", "ls-remote", "push"];

/// The words of a git that compares all paths with the patterns of `.gitignore`.
const LOOKING: &[&str] = &["status", "check-ignore", "--others"];

/// The arguments of a git.
#[derive(Debug)]
pub(super) struct CommandLine(Vec<OsString>);

impl CommandLine {
    pub(super) fn new<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Self {
        let mut args: Vec<_> = args.into_iter().map(|arg| arg.as_ref().to_owned()).collect();
        let compares = args.iter().position(|word| word == "diff-tree" || word == "diff-index");
        if let Some(at) = compares {
            // Otherwise git reads .gitmodules of the worktree, which can hide a change, and end git by a wrong value.
            args.insert(at + 1, "--ignore-submodules=none".into());
        }
        Self(args)
    }

    /// Whether its command is one of these.
    pub(super) fn is(&self, commands: &[&str]) -> bool {
        let mut words = self.0.iter().filter_map(|word| word.to_str());
        while let Some(word) = words.next() {
            match word {
                "-c" => drop(words.next()),
                option if option.starts_with('-') => {}
                command => return commands.contains(&command),
            }
        }
        false
    }

    /// Whether it connects to a remote.
    pub(super) fn connects(&self) -> bool {
        self.is(TALKING)
    }

    /// Whether it runs the filters and merge drivers of the settings.
    pub(super) fn filters(&self) -> bool {
        self.is(FILTERING) || self.0.iter().any(|arg| arg == "--filters")
    }

    /// Whether it compares all paths with the patterns of `.gitignore`.
    pub(super) fn is_look(&self) -> bool {
        self.0.iter().any(|word| LOOKING.iter().any(|look| word == look))
    }

    /// The folders that exist around a worktree that it makes or removes.
    pub(super) fn around_worktree(&self) -> impl Iterator<Item = &Path> {
        let args = if self.is(&["worktree"]) { self.0.as_slice() } else { &[] };
        let paths = args.iter().map(Path::new).filter(|path| path.is_absolute());
        paths.filter_map(|path| path.ancestors().skip(1).find(|above| above.is_dir()))
    }

    pub(super) fn args(self) -> Vec<OsString> {
        self.0
    }
}
