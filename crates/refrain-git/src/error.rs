use std::io;

use camino::Utf8PathBuf;
use refrain_core::git::Oid;
use refrain_core::text::printable;
use refrain_proc::tool::ToolError;

use crate::OLDEST;

/// Git cannot be asked, or its answer is no use. What merely forbids a commit is no error, but
/// [`refrain_core::git::Skipped`].
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    #[error("git cannot be started; install it, or do without commits, branches and worktrees")]
    Missing(#[source] io::Error),
    #[error("there is no folder {0}: it was moved or removed")]
    FolderGone(Utf8PathBuf),
    #[error("git is not in PATH, and this is a repository; install git {major}.{minor} or newer", major = OLDEST.0, minor = OLDEST.1)]
    MissingHere,
    #[error("git {0} is older than {major}.{minor}, which Refrain needs; install a newer one", major = OLDEST.0, minor = OLDEST.1)]
    TooOld(String),
    #[error("{0} is in no git repository; run `git init` there first")]
    NotARepository(Utf8PathBuf),
    #[error("{0} is in a git repository without a working tree; run it in a worktree of that repository")]
    Bare(Utf8PathBuf),
    /// A clone whose settings come from another folder.
    #[error(
        "{0} makes git use the settings of another folder, and git itself never makes it in a clone: an agent may have; \
         remove it before you run git there: rm {0}"
    )]
    Planted(Utf8PathBuf),
    /// What an agent did to places that its sandbox protects.
    #[error("{0}; an agent did that to keep git from the place: mend it by hand, then resume the loop")]
    Protected(String),
    /// A linked worktree whose files are elsewhere.
    #[error(
        "the .git file of {path} leads git to the files of {root}: an agent may have changed it; git worktree repair {path} \
         in the project mends it"
    )]
    OtherRoot { path: Utf8PathBuf, root: Utf8PathBuf },
    /// A linked worktree that no longer leads to its repository.
    #[error("{worktree} has lost the link to its repository: {why}; {cure}")]
    LostLink { worktree: Utf8PathBuf, why: &'static str, cure: String },
    /// Git does not trust the folder's owner (its `safe.directory`).
    #[error("git does not use the repository of {path}, as another user owns it: {said}")]
    NotOurs { path: Utf8PathBuf, said: String },
    #[error(
        "the path of {0:?}, or of its git folder, has a line break in it, and git's answers about it cannot be read; \
         rename that folder"
    )]
    LineBreak(Utf8PathBuf),
    /// More changes than a loop can remember.
    #[error(
        "more than {most} files are changed or new; remove them, commit them, name them in .gitignore, or start with \
         --worktree"
    )]
    TooManyChanges { most: usize },
    /// More files than can be searched for protected ones.
    #[error(
        "more than {most} files and folders lie in the worktree, too many to look for protected ones; name what is built \
         or installed in .gitignore before the start"
    )]
    TooLarge { most: usize },
    #[error("more than {most} files and folders; name what is built or installed in .gitignore")]
    TooManyFiles { most: usize },
    #[error(
        "more than {most} symbolic links are new, too many to see where they lead; commit them, or name them in .gitignore"
    )]
    TooManyLinks { most: usize },
    /// An object whose content does not match its name.
    #[error(
        "git's object of {0} is not what its name says: the repository is damaged, or the object was forged; run `git fsck` \
         to see it"
    )]
    ForgedObject(String),
    /// A path of a tree or an index that `git add` does not make; printable.
    #[error(
        "git has a path \"{0}\" here, which no checkout can have: an agent may have made it; git reset COMMIT in this worktree goes \
         back to a commit without it and keeps the files"
    )]
    BadPath(String),
    /// A tree, or the tree of a commit, that git cannot list.
    #[error(
        "git cannot read the files of {of} ({said}): an agent may have made it; git reset COMMIT in this worktree goes back to \
         another commit and keeps the files"
    )]
    BadTree { of: String, said: String },
    /// The first commit was rewritten.
    #[error(
        "commits {} and {} have no commit in common: the history was written anew; `git merge --allow-unrelated-histories {}` \
         merges it by hand",
        began.short(), work.short(), work.short()
    )]
    Unrelated { began: Oid, work: Oid },
    /// The protected files cannot be read.
    #[error(transparent)]
    Glob(#[from] refrain_core::glob::GlobError),
    #[error("git was stopped")]
    Cancelled,
    #[error("`{command}` failed: {said}")]
    Failed {
        command: String,
        /// Its message, printable.
        said: String,
    },
    #[error("`git {command}` answered something that cannot be understood: {answer:?}")]
    Answer {
        /// The first words of the command line.
        command: &'static str,
        answer: String,
    },
    #[error("{0:?} cannot be the name of a branch; git-check-ref-format(1) says which can")]
    BadBranch(String),
    #[error("a branch {0:?} exists already; choose another name, or delete it")]
    BranchTaken(String),
    /// A folder of another user in a worktree; printable.
    #[error(
        "{0} cannot be removed: it belongs to another user; nothing was removed; sudo rm -r {0} removes it, then try again"
    )]
    Unremovable(String),
    /// Git cannot have a branch below another one.
    #[error(
        "branch {name:?} cannot be made while there is a branch {by:?}: an agent may have made it; git branch -m {by} \
         old-{by} renames it, git branch -D {by} deletes it"
    )]
    BranchInTheWay { name: String, by: String },
    #[error(
        "branch {name:?} cannot be made: {path} is no folder; an agent may have made it; remove it: rm {path}"
    )]
    FileInTheWay { name: String, path: Utf8PathBuf },
    #[error(
        "{0} is not what git writes there, and no git works: an agent may have made it; remove it: rm {0} (in a clone that is \
         shallow, run git fetch --depth 1 after that)"
    )]
    Shallow(Utf8PathBuf),
    #[error(
        "{path} has more than {} MiB, which no repository needs: an agent may have made it; move it away: mv {path} \
         {path}.aside (git reflog and git fetch bring back branches that only it had)", .most >> 20
    )]
    LargeReferences {
        path: Utf8PathBuf,
        /// The limit, in bytes.
        most: u64,
    },
    #[error("the repository at {0} has no commit yet; make the first one: git add . && git commit -m Begin")]
    Unborn(Utf8PathBuf),
    #[error(
        "git does not know who commits: git config --global user.name NAME; git config --global user.email ADDRESS"
    )]
    NoIdentity,
    #[error("{0} was moved by another process in the middle of this; try again")]
    ReferenceMoved(String),
    /// What a plan has landed and not handed over does not go onto a commit of the user.
    #[error(
        "commit {}, which the plan has landed, conflicts with {}, which came meanwhile: undo that, or mend it so that the two \
         agree, then try again", landed.short(), onto.short()
    )]
    LandedConflict { landed: Oid, onto: Oid },
    #[error("{0:?} names no commit here; give a branch, a tag or a commit")]
    NoCommit(String),
    /// A folder that would be missing in a worktree.
    #[error(
        "{folder} is not in commit {commit}, so a worktree from there would not have it; commit it first, name another \
         --base, or start from the project's root"
    )]
    NoFolder {
        /// The folder, relative to the root.
        folder: Utf8PathBuf,
        commit: String,
    },
    #[error(
        "the loop's worktree is gone, and so is its branch {branch:?}{}",
        .last.as_ref().map(|last| format!("; git branch {branch} {last} brings that back")).unwrap_or_default()
    )]
    BranchGone { branch: String, last: Option<Oid> },
    /// A worktree is gone, and its branch is checked out in another.
    #[error(
        "the loop's worktree is gone, and its branch {branch:?} is checked out in {by}; switch that to another branch"
    )]
    BranchInUse { branch: String, by: Utf8PathBuf },
    #[error("branch {branch:?} is checked out in {by}; switch that to another branch")]
    BranchElsewhere { branch: String, by: Utf8PathBuf },
    #[error("{0} exists already and is no worktree of this branch; move it away")]
    Occupied(Utf8PathBuf),
    #[error("the git program {0} was changed since the loop started; start a new loop to use it")]
    OtherProgram(Utf8PathBuf),
    /// A setting that no other setting can replace.
    #[error("the name of the setting {key} in {origin} is not UTF-8; rename or remove it")]
    UnnamableSetting { key: String, origin: String },
    /// Attributes differ from the pinned ones.
    #[error(
        "{0} was changed since the loop started, so no checkout holds just what the tree holds; change it back"
    )]
    OtherAttributes(Utf8PathBuf),
    /// What git said; printable.
    #[error(
        "a filter of your git settings fails outside of the project, where it finds no script that the agent wrote: {0}; look \
         at the work, then merge it with git"
    )]
    Filter(String),
    /// A file of a git folder on which git would block.
    #[error(
        "{0} is no regular file, and git would wait for it; remove it and put the file back (`git reset` writes a new index)"
    )]
    NoFile(Utf8PathBuf),
    /// Why a git takes long, as it was found; printable.
    #[error("{0}")]
    Waits(String),
    #[error(
        "{0} is a symbolic link to something else, and git would write there: an agent may have made it; look where it \
         leads, and put back what belongs there"
    )]
    Link(Utf8PathBuf),
    #[error("{path} has more than {} MiB, which is no index of git; remove it, and `git reset` writes a new one", .most >> 20)]
    LargeIndex {
        path: Utf8PathBuf,
        /// The limit, in bytes.
        most: u64,
    },
    #[error("{action} {path}")]
    Disk { action: &'static str, path: Utf8PathBuf, source: io::Error },
    /// A system error while git ran.
    #[error(transparent)]
    Tool(ToolError),
}

impl GitError {
    /// The same where git failed to list the files of a tree, or of the tree of a commit.
    pub(crate) fn of_tree(self, treeish: &Oid) -> Self {
        match self {
            Self::Failed { said, .. } => Self::BadTree { of: treeish.short().to_owned(), said },
            error => error,
        }
    }

    /// Whether objects are to blame that an agent may have made without git: only what has them is hindered.
    pub fn is_of_objects(&self) -> bool {
        matches!(self, Self::ForgedObject(_) | Self::BadPath(_) | Self::BadTree { .. })
    }
}

impl From<ToolError> for GitError {
    fn from(error: ToolError) -> Self {
        match error {
            ToolError::Missing { source, .. } => Self::Missing(source),
            ToolError::NoFolder { dir, .. } => Self::FolderGone(dir.to_string_lossy().into_owned().into()),
            ToolError::Failed { command, complaint } => {
                Self::Failed { command, said: printable(&complaint).into_owned() }
            }
            ToolError::Cancelled { .. } => Self::Cancelled,
            ToolError::Blocked { by, .. } => Self::Waits(by),
            other @ (ToolError::TimedOut { .. } | ToolError::TooMuch { .. } | ToolError::Io { .. }) => {
                Self::Tool(other)
            }
        }
    }
}

pub(crate) trait OnPath<T> {
    fn on(self, action: &'static str, path: impl Into<Utf8PathBuf>) -> Result<T, GitError>;
}

impl<T, E: Into<io::Error>> OnPath<T> for Result<T, E> {
    fn on(self, action: &'static str, path: impl Into<Utf8PathBuf>) -> Result<T, GitError> {
        self.map_err(|error| GitError::Disk { action, path: path.into(), source: error.into() })
    }
}
