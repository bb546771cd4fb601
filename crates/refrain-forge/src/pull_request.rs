//! A pull request (a merge request in GitLab), and its project.

use refrain_core::git::Oid;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullRequest {
    /// Its number in the project.
    pub number: u64,
    /// The page for users.
    pub url: String,
    pub state: State,
    /// A draft cannot be merged yet.
    pub draft: bool,
    pub title: String,
    /// Its description.
    pub body: String,
    /// Its head commit.
    pub head: Oid,
    /// Its head branch.
    pub branch: String,
    /// Its base branch.
    pub base: String,
    /// The merge commit.
    pub merged_as: Option<Oid>,
}

/// The state of a pull request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Open,
    /// It was closed without being merged.
    Closed,
    Merged,
}

/// A project of a forge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    /// The default base of pull requests.
    pub default_branch: String,
    /// Whether the login may push there; none if the forge does not report it.
    pub may_push: Option<bool>,
}
