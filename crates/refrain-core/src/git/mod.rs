//! What the core knows of a loop's repository: what was there before the loop (its [`Base`]), what each iteration
//! added, and what was omitted from a commit and why. How git is asked is in `refrain-git`.

mod conflict;
mod names;
mod pins;
mod publish;
mod template;

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::glob::PathGlob;
use crate::protect::Program;
use crate::serde_default::is_default;
pub use conflict::{Conflict, ConflictKind};
pub use names::{Oid, OidError, RepoPath};
pub use pins::{GitPin, GitPins, PushTarget};
pub use publish::{
    Checks, ChecksVerdict, Effect, FailedCheck, PublishReport, PublishResult, PullRequest, Refusal,
};
pub use template::{Template, TemplateError, TemplateValues, subject};

/// How the error begins if `[worktrees] setup` failed.
pub const SETUP_FAILED: &str = "[worktrees] setup failed";

/// The most files that may be changed or new for a tree to be made of them. Each is read, screened for secrets, and
/// kept in memory until the loop ends: 200,000 take 200 MB and about a minute. More than that was built or installed,
/// which no commit should have.
pub const MOST_CHANGES: usize = 200_000;

/// What a loop does with git (contract.md, `--git-workflow`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Workflow {
    /// Nothing.
    #[default]
    None,
    /// A commit of the loop's own changes after each iteration that is charged.
    Commit,
    /// The same, and each is pushed.
    Push,
    /// The same, on a branch of the loop's own with a pull request, whose checks prove the work too.
    Pr,
    /// The same, and what they prove is merged.
    PrMerge,
}

impl Workflow {
    pub fn commits(self) -> bool {
        self != Self::None
    }

    pub fn publishes(self) -> bool {
        match self {
            Self::None | Self::Commit => false,
            Self::Push | Self::Pr | Self::PrMerge => true,
        }
    }

    pub fn requests(self) -> bool {
        matches!(self, Self::Pr | Self::PrMerge)
    }
}

/// Where a loop works in its repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Checkout {
    /// In the worktree that it was started in, on whatever is checked out there.
    #[default]
    AsIs,
    /// In that worktree, on a new branch from what is checked out there (`--create-branch`).
    Branch(String),
    /// In a worktree of its own, on a new branch (`--worktree`).
    Worktree {
        /// The new branch.
        branch: String,
        /// What it begins at, as the person gave it: a branch, a tag, a commit; `HEAD` of the worktree started in.
        from: String,
    },
}

impl Checkout {
    /// Whether the worktree is the loop's own.
    #[must_use]
    pub fn is_own_worktree(&self) -> bool {
        matches!(self, Self::Worktree { .. })
    }
}

/// Which iterations of a loop with required gates are committed (`--commit-when`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CommitWhen {
    /// Those whose work the gates verified.
    #[default]
    Verified,
    /// Each, on the loop's own branch.
    Each,
}

/// A loop's use of git, as pinned at its start.
#[serde_with::apply(Option => #[serde(default, skip_serializing_if = "Option::is_none")])]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GitSpec {
    /// What is done after each iteration.
    pub workflow: Workflow,
    /// Where the loop works.
    #[serde(default)]
    pub checkout: Checkout,
    /// The branch that its pull request is for: what was checked out when it was started. None where it has none, or the
    /// forge's own default is meant.
    pub onto: Option<String>,
    /// Other loops may work in the same worktree at the same time, whatever that does to its commits (`--share-worktree`).
    #[serde(default)]
    pub shared: bool,
    /// There are gates, and a repository: what they prove is known by its tree.
    #[serde(default)]
    pub candidates: bool,
    /// What was there before the loop, where nothing but a failure branch ever asks for that.
    pub before: Option<Box<Base>>,
    /// What git runs and where it pushes; none outside of a repository.
    pub pins: Option<Box<GitPins>>,
    /// The message of its commits.
    #[serde(default)]
    pub commit_template: Template,
    /// Which iterations are committed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub commit_when: CommitWhen,
    /// The command that prepares a new worktree, once (`[worktrees] setup`).
    pub setup: Option<String>,
    /// The largest file that is committed, in bytes.
    #[serde(default = "largest_file")]
    pub largest_file: u64,
    /// Where what looks like a secret may be committed: globs of paths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow_secrets: Vec<PathGlob>,
}

/// The largest file that is committed by default: 10 MiB. A larger one was built or downloaded.
pub fn largest_file() -> u64 {
    10 << 20
}

impl Default for GitSpec {
    fn default() -> Self {
        Self {
            workflow: Workflow::None,
            checkout: Checkout::AsIs,
            onto: None,
            shared: false,
            candidates: false,
            before: None,
            pins: None,
            commit_template: Template::default(),
            commit_when: CommitWhen::default(),
            setup: None,
            largest_file: largest_file(),
            allow_secrets: Vec::new(),
        }
    }
}

impl GitSpec {
    /// Whether each iteration is committed, whatever the gates say.
    pub fn commits_each(&self) -> bool {
        self.workflow.commits() && self.commit_when == CommitWhen::Each
    }

    /// Whether the loop needs to know what was there before it.
    pub fn needs_base(&self) -> bool {
        self.workflow.commits() || self.checkout != Checkout::AsIs || self.candidates
    }

    /// The branch that the loop makes for itself.
    pub fn new_branch(&self) -> Option<&str> {
        match &self.checkout {
            Checkout::AsIs => None,
            Checkout::Branch(branch) | Checkout::Worktree { branch, .. } => Some(branch),
        }
    }
}

/// What was there before the loop: everything that it adds to this is its own.
#[serde_with::apply(Vec => #[serde(default, skip_serializing_if = "Vec::is_empty")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Base {
    /// What was checked out; none on a branch without a commit.
    pub head: Option<Oid>,
    /// The branch that was checked out, without `refs/heads/`; none where the head was detached.
    pub branch: Option<String>,
    /// What was changed, staged or new already. It is the person's and never becomes part of a candidate.
    pub dirty: Vec<Dirty>,
    /// Paths whose changes git is configured to ignore (`git update-index --skip-worktree` and `--assume-unchanged`).
    pub hidden: Vec<RepoPath>,
    /// The tree of all that is protected, as it was on disk: what was dirty, new or ignored included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protected: Option<Oid>,
    /// The programs that the gates look up, as they were found.
    pub programs: Vec<Program>,
    /// What git was in the middle of: nothing is committed before that is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<Operation>,
}

/// A path that was not as the last commit had it, before the loop began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Dirty {
    /// Which.
    pub path: RepoPath,
    /// What it looked like (size, time, mode): another stamp is another content. None where there was no file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stamp: Option<u64>,
}

/// Something of the loop's that is not committed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct OmittedPath {
    /// Which file.
    pub path: RepoPath,
    /// Why.
    pub why: LeftOutReason,
}

/// Why a path is omitted.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LeftOutReason {
    /// It was dirty before the start, and the agent changed it: the person's part cannot be told from the agent's.
    DirtyBefore,
    /// It looks like a secret.
    Secret {
        /// Which rule says so, in words: `a GitHub token`.
        what: String,
        /// The line, from 1; none where the file's name says it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        line: Option<u32>,
    },
    /// It is larger than what is committed.
    TooLarge {
        /// Its size.
        bytes: u64,
    },
    /// A repository in the repository.
    Repository,
    /// Neither a file nor a link, or one that cannot be read.
    Unreadable,
}

impl fmt::Display for LeftOutReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DirtyBefore => f.write_str("it was changed before the loop began, and by the agent since"),
            Self::Secret { what, line: Some(line) } => write!(f, "line {line} looks like {what}"),
            Self::Secret { what, line: None } => write!(f, "it looks like {what}"),
            Self::TooLarge { bytes } => write!(f, "it is {} MiB large", bytes.div_ceil(1 << 20)),
            Self::Repository => f.write_str("it is a repository of its own"),
            Self::Unreadable => f.write_str("it is no file that can be read"),
        }
    }
}

/// Something that looks like a secret and is in the history.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct ExposedSecret {
    /// The commit.
    pub commit: Oid,
    /// Which file of it.
    pub path: RepoPath,
    /// Which rule says so, in words: `a GitHub token`.
    pub what: String,
    /// The line, from 1; none where the file's name says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// It may be there: the configuration allows it in this file, or a mark on its line.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allowed: bool,
}

impl fmt::Display for ExposedSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of commit {}: ", self.path, self.commit.short())?;
        LeftOutReason::Secret { what: self.what.clone(), line: self.line }.fmt(f)
    }
}

/// What git is in the middle of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::Display)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Operation {
    /// `git merge`, or conflicts that are left from one.
    Merge,
    /// `git rebase`, `git am`.
    Rebase,
    /// `git cherry-pick`.
    CherryPick,
    /// `git revert`.
    Revert,
    /// `git bisect`.
    Bisect,
}

/// Why an iteration is not committed. It never ends a loop; what was to be committed stays in the worktree, and the next
/// commit has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SkipReason {
    /// It changed nothing that could be committed.
    Nothing,
    /// Another git holds the index lock, or died holding it.
    IndexLocked,
    /// Git is in the middle of something.
    InProgress(Operation),
    /// Another branch is checked out than the loop began on: a commit there was not asked for.
    OtherBranch {
        /// What is checked out now; none where the head is detached.
        now: Option<String>,
    },
    /// A hook said no.
    Hook {
        /// What it said, the end of it.
        said: String,
    },
    /// A hook put into it what is not the loop's (`git add -u`), so it was undone.
    HookTook {
        /// What was not the loop's.
        paths: Vec<RepoPath>,
    },
    /// Git does not know in whose name.
    NoIdentity,
    /// Git could not do it for another reason.
    Failed {
        /// What it said, the end of it.
        said: String,
    },
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("there is nothing to commit"),
            Self::IndexLocked => f.write_str(
                "git's index is locked; if no git is running, remove index.lock from the git folder",
            ),
            Self::InProgress(operation) => write!(f, "a {operation} is in progress"),
            Self::OtherBranch { now: Some(branch) } => {
                write!(f, "branch {branch} is checked out, not the one that the loop began on")
            }
            Self::OtherBranch { now: None } => {
                f.write_str("the head is detached, and not on the branch that the loop began on")
            }
            Self::Hook { said } => write!(f, "a hook refused it: {}", said.trim()),
            Self::HookTook { paths } => {
                let named = path_names(paths, 5);
                write!(
                    f,
                    "a hook put into it what is not the loop's ({named}), so it was undone; have the hook add only files \
                     that are staged already"
                )
            }
            Self::NoIdentity => {
                f.write_str("git does not know who commits; git config user.name and user.email say it")
            }
            Self::Failed { said } => f.write_str(said.trim()),
        }
    }
}

/// The first of the paths, and how many more there are.
pub fn path_names(paths: &[RepoPath], most: usize) -> String {
    let named: Vec<_> = paths.iter().take(most).map(ToString::to_string).collect();
    let named = named.join(", ");
    match paths.len().saturating_sub(most) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

/// What came of the attempt to commit an iteration.
#[serde_with::apply(Vec => #[serde(default, skip_serializing_if = "Vec::is_empty")])]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommitReport {
    /// The iteration.
    pub iteration: u32,
    /// The commit, or why there is none.
    pub result: CommitResult,
    /// Where the head is now; none on a branch without a commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<Oid>,
    /// Commits that the agent made by itself since the last report, oldest first.
    pub by_agent: Vec<Oid>,
    /// Where the head was at the last report, if that is not in the history any more (a reset, a rebase, an amended commit):
    /// all that was lost hangs on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<Oid>,
    /// What looks like a secret and is in the history now: in commits of the agent's own, and where it is allowed.
    pub exposed: Vec<ExposedSecret>,
    /// What a hook put into the commit that is not the loop's, where that could not be undone.
    pub taken: Vec<RepoPath>,
    /// What is in the worktree, is the loop's and is not committed.
    pub left_out: Vec<OmittedPath>,
    /// How much more is omitted than is named.
    #[serde(default, skip_serializing_if = "is_default")]
    pub left_out_more: u64,
}

impl CommitReport {
    /// How many omitted paths are named: a journal is no place for a list of thousands.
    const NAMED: usize = 200;

    /// No commit, and nothing else to report.
    pub fn skipped(iteration: u32, why: SkipReason, head: Option<Oid>) -> Self {
        Self {
            iteration,
            result: CommitResult::Skipped(why),
            head,
            by_agent: Vec::new(),
            lost: None,
            exposed: Vec::new(),
            taken: Vec::new(),
            left_out: Vec::new(),
            left_out_more: 0,
        }
    }

    /// Whether it says why something is not committed.
    pub fn is_explained(&self) -> bool {
        let is_skipped =
            matches!(&self.result, CommitResult::Skipped(why) if !matches!(why, SkipReason::Nothing));
        is_skipped || !self.left_out.is_empty()
    }

    /// The same with what looks like a secret and is in the history now, named as far as a journal has room for.
    #[must_use]
    pub fn exposing(mut self, mut exposed: Vec<ExposedSecret>) -> Self {
        exposed.truncate(Self::NAMED);
        self.exposed = exposed;
        self
    }

    /// The same with what was omitted, named as far as a journal has room for.
    #[must_use]
    pub fn leaving_out(mut self, mut left_out: Vec<OmittedPath>) -> Self {
        self.left_out_more = left_out.len().saturating_sub(Self::NAMED) as u64;
        left_out.truncate(Self::NAMED);
        self.left_out = left_out;
        self
    }
}

/// A commit, or none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CommitResult {
    /// It is in the history.
    Made {
        /// The commit.
        commit: Oid,
        /// Its tree.
        tree: Oid,
    },
    /// Not this time.
    Skipped(SkipReason),
}
