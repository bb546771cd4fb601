//! What can go wrong when git is asked.

use std::io;

use camino::Utf8PathBuf;
use refrain_core::text::printable;
use refrain_proc::tool::ToolError;

/// Git cannot be asked, or its answer is no use. What merely forbids a commit is no error, but
/// [`refrain_core::git::Skipped`].
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// There is no git program.
    #[error("git cannot be started; install it, or do without commits, branches and worktrees")]
    Missing(#[source] io::Error),
    /// A plain folder.
    #[error("{0} is in no git repository; run `git init` there first")]
    NotARepository(Utf8PathBuf),
    /// A repository without files.
    #[error("{0} is in a git repository without a working tree; run it in a worktree of that repository")]
    Bare(Utf8PathBuf),
    /// Git does not trust the folder's owner (its `safe.directory`).
    #[error("git does not use the repository of {path}, as somebody else owns it: {said}")]
    NotOurs {
        /// Where.
        path: Utf8PathBuf,
        /// What git said.
        said: String,
    },
    /// More is changed than can be kept in mind.
    #[error(
        "more than {most} files are changed or new; commit them, name them in .gitignore, or start with --worktree"
    )]
    TooManyChanges {
        /// How many there may be.
        most: usize,
    },
    /// More files than can be looked at for what is protected.
    #[error(
        "more than {most} files and folders lie in the worktree, too many to look for protected ones; name what is built \
         or installed in .gitignore before the start"
    )]
    TooLarge {
        /// How many there may be.
        most: usize,
    },
    /// What is to be protected cannot be read.
    #[error(transparent)]
    Glob(#[from] refrain_core::protect::GlobError),
    /// Somebody asked to stop.
    #[error("git was stopped")]
    Cancelled,
    /// Git said no.
    #[error("`{command}` failed: {said}")]
    Failed {
        /// What it was told.
        command: String,
        /// What it said, fit to be shown.
        said: String,
    },
    /// Git answered something else than was asked.
    #[error("`git {command}` answered something that cannot be understood: {answer:?}")]
    Answer {
        /// What it was told, the first words of it.
        command: &'static str,
        /// The beginning of what it answered.
        answer: String,
    },
    /// A name that no branch can have.
    #[error("{0:?} cannot be the name of a branch; git-check-ref-format(1) says which can")]
    BadBranch(String),
    /// A branch that is there already.
    #[error("a branch {0:?} exists already; choose another name, or delete it")]
    BranchTaken(String),
    /// A text that names no commit.
    #[error("{0:?} names no commit here; give a branch, a tag or a commit")]
    NoCommit(String),
    /// A place for a worktree where something else is.
    #[error("{0} exists already and is no worktree of this branch; move it away")]
    Occupied(Utf8PathBuf),
    /// A file operation that failed.
    #[error("{action} {path}")]
    Disk {
        /// What was tried, as in "write".
        action: &'static str,
        /// On what.
        path: Utf8PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The system failed us while git ran.
    #[error(transparent)]
    Tool(ToolError),
}

impl From<ToolError> for GitError {
    fn from(error: ToolError) -> Self {
        match error {
            ToolError::Missing { source, .. } => Self::Missing(source),
            ToolError::Failed { command, complaint } => {
                Self::Failed { command, said: printable(&complaint).into_owned() }
            }
            ToolError::Cancelled { .. } => Self::Cancelled,
            other @ (ToolError::TimedOut { .. } | ToolError::TooMuch { .. } | ToolError::Io { .. }) => {
                Self::Tool(other)
            }
        }
    }
}

/// Names the file in a failed operation.
pub(crate) trait OnPath<T> {
    fn on(self, action: &'static str, path: impl Into<Utf8PathBuf>) -> Result<T, GitError>;
}

impl<T, E: Into<io::Error>> OnPath<T> for Result<T, E> {
    fn on(self, action: &'static str, path: impl Into<Utf8PathBuf>) -> Result<T, GitError> {
        self.map_err(|error| GitError::Disk { action, path: path.into(), source: error.into() })
    }
}
