//! How git is run: where, in which environment, and with which of the person's settings overruled.

use std::ffi::{OsStr, OsString};
use std::time::Duration;

use camino::Utf8Path;
use refrain_core::git::Oid;
use refrain_core::text::printable;
use refrain_proc::tool::{Begun, Cancel, Done, Tool};

use crate::error::GitError;
use crate::forge::FROM_FILE;

/// What overrules the person's configuration: each only where the answer, or the person's comfort, would suffer.
const SETTINGS: &[&str] = &[
    // Paths come as they are.
    "-c",
    "core.quotePath=false",
    // Housekeeping would be paid for by an iteration; the person's next git does it.
    "-c",
    "gc.auto=0",
    "-c",
    "maintenance.auto=0",
    // A watcher that missed something would hide a change; the private index has none of its own either.
    "-c",
    "core.fsmonitor=false",
    // A private index that is split would leave its other half in the repository.
    "-c",
    "core.splitIndex=false",
];

/// The variables with which a git that we run below (a hook, `git rebase --exec`) would bend ours to its own place.
/// What `git rev-parse --local-env-vars` says, but for the configuration of a `git -c`.
const BENDING: &[&str] = &[
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_DIR",
    "GIT_GLOB_PATHSPECS",
    "GIT_GRAFT_FILE",
    "GIT_ICASE_PATHSPECS",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_INTERNAL_SUPER_PREFIX",
    "GIT_LITERAL_PATHSPECS",
    "GIT_NAMESPACE",
    "GIT_NOGLOB_PATHSPECS",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_QUARANTINE_PATH",
    "GIT_REFLOG_ACTION",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
];

/// What is set for every git: no questions, no editor, no lock for the mere comfort of the next one.
const SET: &[(&str, &str)] = &[
    ("LC_ALL", "C"),
    ("LANGUAGE", ""),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_EDITOR", "true"),
    ("GIT_SEQUENCE_EDITOR", "true"),
    ("GIT_PAGER", "cat"),
    ("GIT_MERGE_AUTOEDIT", "no"),
    ("GIT_OPTIONAL_LOCKS", "0"),
];

/// The environment for git made from the person's.
pub(crate) fn environment(person: &[(OsString, OsString)]) -> Vec<(OsString, OsString)> {
    let is_kept = |name: &OsStr| {
        let name = name.to_str().unwrap_or_default();
        !BENDING.contains(&name)
            && name != FROM_FILE
            && !name.starts_with("GIT_TRACE")
            && !SET.iter().any(|(set, _)| *set == name)
    };
    let mut env: Vec<_> = person.iter().filter(|(name, _)| is_kept(name)).cloned().collect();
    env.extend(SET.iter().map(|(name, value)| ((*name).into(), (*value).into())));
    env
}

/// Whose work a commit is: name, address, and when it was done, as [`AUTHOR`] tells them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Author(pub(crate) [OsString; 3]);

/// The variables that say whose work a commit is (git-commit-tree(1)).
const AUTHOR: [&str; 3] = ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_DATE"];

/// Git in one place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Git<'a> {
    dir: &'a Utf8Path,
    env: &'a [(OsString, OsString)],
    index: Option<&'a Utf8Path>,
    /// The git folder of a place that has none of its own.
    git_dir: Option<&'a Utf8Path>,
    cancel: Option<&'a Cancel>,
    attributes: Option<&'a str>,
    author: Option<&'a Author>,
    limit: Option<Duration>,
}

impl<'a> Git<'a> {
    /// Git in `dir`, in an environment that [`environment`] made.
    pub(crate) fn new(dir: &'a Utf8Path, env: &'a [(OsString, OsString)]) -> Self {
        Self {
            dir,
            env,
            index: None,
            git_dir: None,
            limit: None,
            cancel: None,
            attributes: None,
            author: None,
        }
    }

    /// The same for the files in `folder`, which is no worktree of this git folder and is not known to it.
    pub(crate) fn for_files_in(self, folder: &'a Utf8Path, git_dir: &'a Utf8Path) -> Self {
        Self { dir: folder, git_dir: Some(git_dir), ..self }
    }

    /// The same in another folder.
    pub(crate) fn inside(self, dir: &'a Utf8Path) -> Self {
        Self { dir, ..self }
    }

    /// The same with another index than the person's.
    pub(crate) fn with_index(self, index: &'a Utf8Path) -> Self {
        Self { index: Some(index), ..self }
    }

    /// The same with the attributes of this tree, and not those of the project's files (git 2.41; an older one heeds those).
    pub(crate) fn with_attributes_of(self, tree: &'a str) -> Self {
        Self { attributes: Some(tree), ..self }
    }

    /// The same for commits that are somebody else's work; the person's where there is none.
    pub(crate) fn by(self, author: Option<&'a Author>) -> Self {
        Self { author, ..self }
    }

    /// The same, until somebody says stop; who could before still may where nobody else is named.
    pub(crate) fn until(self, cancel: Option<&'a Cancel>) -> Self {
        Self { cancel: cancel.or(self.cancel), ..self }
    }

    /// The same, which has so long for each answer.
    pub(crate) fn within(self, limit: Option<Duration>) -> Self {
        Self { limit, ..self }
    }

    /// The same, which nobody may stop.
    pub(crate) fn to_its_end(self) -> Self {
        Self { cancel: None, ..self }
    }

    fn tool<S: AsRef<OsStr>>(self, args: impl IntoIterator<Item = S>, input: &'a [u8]) -> Tool<'a> {
        let tool = Tool::new("git", self.dir.as_std_path()).env(self.env).args(SETTINGS).args(args);
        let mut tool = tool.input(input).cancel(self.cancel);
        if let Some(limit) = self.limit {
            tool = tool.limit(limit);
        }
        if let Some(git_dir) = self.git_dir {
            tool = tool.with("GIT_DIR", git_dir).with("GIT_WORK_TREE", self.dir);
        }
        let tool = match self.index {
            Some(index) => tool.with("GIT_INDEX_FILE", index),
            None => tool,
        };
        let tool = match self.attributes {
            Some(tree) => tool.with("GIT_ATTR_SOURCE", tree),
            None => tool,
        };
        let author = self.author.into_iter().flat_map(|author| AUTHOR.iter().zip(&author.0));
        author.fold(tool, |tool, (name, value)| tool.with(name, value))
    }

    /// What git printed.
    ///
    /// # Errors
    /// [`GitError`], also where it says no.
    pub(crate) fn output<S: AsRef<OsStr>>(
        self,
        args: impl IntoIterator<Item = S>,
        input: &'a [u8],
    ) -> Result<Vec<u8>, GitError> {
        Ok(self.tool(args, input).output()?)
    }

    /// What git printed, as text and without the line break at its end.
    pub(crate) fn text<S: AsRef<OsStr>>(
        self,
        args: impl IntoIterator<Item = S>,
        input: &'a [u8],
    ) -> Result<String, GitError> {
        let printed = self.output(args, input)?;
        Ok(String::from_utf8_lossy(&printed).trim_end_matches('\n').to_owned())
    }

    /// Git that waits for what it is to read.
    pub(crate) fn begin<S: AsRef<OsStr>>(
        self,
        args: impl IntoIterator<Item = S>,
    ) -> Result<Begun<'a>, GitError> {
        Ok(self.tool(args, &[]).begin()?)
    }

    /// What git did, whatever its exit code.
    pub(crate) fn run<S: AsRef<OsStr>>(
        self,
        args: impl IntoIterator<Item = S>,
        input: &'a [u8],
    ) -> Result<Done, GitError> {
        Ok(self.tool(args, input).run()?)
    }
}

/// The object's name that git printed.
pub(crate) fn oid(command: &'static str, answer: &str) -> Result<Oid, GitError> {
    answer.trim().parse().map_err(|_| GitError::Answer { command, answer: answer.to_owned() })
}

/// What git says of its version, as seen from `dir` in the person's environment, within `limit`: `git version 2.47.3`.
///
/// # Errors
/// [`GitError::Missing`] without a git program; else where it cannot be asked.
pub fn version(dir: &Utf8Path, env: &[(OsString, OsString)], limit: Duration) -> Result<String, GitError> {
    Git::new(dir, &environment(env)).within(Some(limit)).text(["--version"], &[])
}

/// How much of what git or a hook said is kept, in bytes.
const SAID: usize = 2 << 10;

/// The end of what git or a hook said, fit to be shown.
pub(crate) fn said(done: &Done) -> String {
    let text = [done.stdout.as_slice(), done.stderr.as_slice()].concat();
    let text = String::from_utf8_lossy(&text);
    let text = printable(text.trim());
    let mut from = text.len().saturating_sub(SAID);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    text[from..].trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_surrounding_git_does_not_bend_ours() {
        let person = [("GIT_DIR", "/x"), ("GIT_INDEX_FILE", "/y"), ("LC_ALL", "de_DE"), ("HOME", "/h")];
        let person = person.map(|(name, value)| (name.into(), value.into()));
        let env = environment(&person);
        let value =
            |name: &str| env.iter().filter(|(n, _)| n == name).map(|(_, v)| v.clone()).collect::<Vec<_>>();
        assert!(value("GIT_DIR").is_empty() && value("GIT_INDEX_FILE").is_empty());
        assert_eq!((value("LC_ALL"), value("HOME")), (vec!["C".into()], vec!["/h".into()]));
    }
}
