//! The effects of a loop outside its own repository, and their results: pushes, pull requests, their checks and merges.
//! What comes next is decided in `loop/publish.rs`; `refrain-git` talks to remotes and forges.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Conflict, Oid};

/// Something that is done outside. Each is looked for at the other end before it is done: it may have been done, and its
/// runner died before it could say so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, strum::Display)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// The branch is sent to its remote; what the remote has and the loop has not comes first, underneath the loop's own.
    #[strum(to_string = "push")]
    Push,
    /// A pull request is opened, as a draft.
    #[strum(to_string = "open a pull request")]
    Open,
    /// The pull request says what was proven, and is a draft no more.
    #[strum(to_string = "say in the pull request what was proven")]
    Ready,
    /// The checks of the head are looked at. It changes nothing outside.
    #[strum(to_string = "look at the checks")]
    Look,
    /// The pull request is merged, with exactly this head.
    #[strum(to_string = "merge the pull request")]
    Merge,
    /// The branch is done with: the worktree goes back to the base, and the branch away.
    #[strum(to_string = "go back to the base")]
    Return,
}

impl Effect {
    /// Whether it leaves something outside that a crash must not double: its intent is recorded first.
    pub fn leaves_something(self) -> bool {
        match self {
            Self::Push | Self::Open | Self::Ready | Self::Merge | Self::Return => true,
            Self::Look => false,
        }
    }
}

/// What came of an effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PublishReport {
    /// Of which.
    pub effect: Effect,
    /// What.
    pub result: PublishResult,
}

impl PublishReport {
    /// Whether something was done outside, or made known there.
    pub fn is_done(&self) -> bool {
        use PublishResult::{Merged, Pushed, Rebased, Requested, Returned};
        let result = &self.result;
        matches!(result, Pushed { .. } | Rebased { .. } | Requested(_) | Merged { .. } | Returned { .. })
    }
}

/// The same, in detail.
#[serde_with::apply(Option => #[serde(default, skip_serializing_if = "Option::is_none")])]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PublishResult {
    /// The remote has the head.
    Pushed {
        /// The remote's name.
        remote: String,
        /// The branch there.
        branch: String,
    },
    /// The remote had more: the loop's commits lie on top of that now, and nothing is pushed yet.
    Rebased {
        /// The newest of them.
        head: Oid,
        /// Its tree.
        tree: Oid,
        /// All of them, oldest first.
        commits: Vec<Oid>,
    },
    /// The remote has what does not go together with the loop's commits. Nothing was changed.
    Conflict {
        /// What the remote has.
        theirs: Oid,
        /// Where both are at odds.
        paths: Vec<Conflict>,
    },
    /// There is a pull request that says so.
    Requested(PullRequest),
    /// What the checks say.
    Checked(Checks),
    /// It is merged.
    Merged {
        /// The commit on the base; none where the forge does not say.
        commit: Option<Oid>,
    },
    /// The worktree is on the base, and the branch is gone.
    Returned {
        /// Why it is not, where something would be lost.
        kept: Option<String>,
    },
    /// Not now, but it may pass by itself.
    Later {
        /// Why.
        said: String,
        /// When it is worth trying again, where the forge says so.
        until: Option<Timestamp>,
    },
    /// A person has to do something about it.
    Refused {
        /// What kind of thing.
        why: Refusal,
        /// What was said.
        said: String,
    },
}

/// A pull request (GitLab: a merge request).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PullRequest {
    /// Its number in its repository.
    pub number: u64,
    /// Where people look at it.
    pub url: String,
}

/// What the checks of one commit say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Checks {
    /// Of which.
    pub head: Oid,
    /// All in all.
    pub verdict: ChecksVerdict,
    /// How many there are.
    pub total: u32,
    /// How many are over.
    pub over: u32,
    /// Those that failed, in the forge's order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<FailedCheck>,
}

/// What checks amount to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ChecksVerdict {
    /// All passed, or said that they do not apply.
    Green,
    /// One failed at least.
    Red,
    /// Some are not over.
    Pending,
    /// There should be some, and there are none yet.
    NotStarted,
    /// None are configured.
    None,
}

/// A check that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FailedCheck {
    /// Its name.
    pub name: String,
    /// Where people look at it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// What a person has to do something about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Refusal {
    /// There is no remote, or not one that is meant.
    NoRemote,
    /// No account is logged in there, or the program that asks is missing.
    Login,
    /// The account that is logged in may not do it.
    Permission,
    /// The branch is protected against it.
    Protected,
    /// A hook of the remote's, or of the repository's, said no.
    Hook,
    /// What looks like a secret would go out with it.
    Secret,
    /// The branch, or the pull request, was taken away or closed meanwhile.
    Gone,
    /// A review has to approve it first.
    Review,
    /// The forge does not merge it as it is.
    Unmergeable,
    /// What was to be published is not all committed.
    Uncommitted,
    /// Neither a gate here nor a check there has proven what is to be merged.
    Unproven,
    /// The checks did not begin in time.
    NoChecks,
    /// What has to come first did not come in time: the remote, or its checks.
    Patience,
    /// The remote has what does not go together with the loop's commits, again and again.
    Conflict,
    /// Something else.
    Other,
}

impl Refusal {
    /// What a person does about it; the text that says how the loop continues follows it.
    pub fn cure(self) -> &'static str {
        match self {
            Self::NoRemote => {
                "make its remote reachable again at the address that the loop began with (another address needs a new loop)"
            }
            Self::Login => "log in to the forge (gh auth login, or glab auth login)",
            Self::Permission => "ask an owner of the repository for the right to push and to merge",
            Self::Protected => "lift the protection of the branch, or start a loop with --git-workflow pr",
            Self::Hook => "correct what the hook objects to",
            Self::Secret => "take the secret out of the commits",
            Self::Gone => "reopen the pull request, or bring the branch back",
            Self::Review => "have it approved",
            Self::Unmergeable => "correct what the forge objects to",
            Self::Uncommitted => "remove what keeps git from committing",
            Self::Unproven => "look it through: going on merges it",
            Self::NoChecks => "start the checks",
            Self::Patience => "see what keeps it",
            Self::Conflict => "bring the remote's commits in by hand",
            Self::Other => "see what is wrong there",
        }
    }
}
