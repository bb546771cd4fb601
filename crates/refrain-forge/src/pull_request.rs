//! A pull request, which GitLab calls a merge request, and the project that it is for.

use refrain_core::git::Oid;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullRequest {
    /// Its number in the project.
    pub number: u64,
    /// Where a person sees it.
    pub url: String,
    /// What became of it.
    pub state: State,
    /// It is not to be merged yet.
    pub draft: bool,
    pub title: String,
    /// What it says.
    pub body: String,
    /// The commit that it ends at.
    pub head: Oid,
    /// The branch that it is of.
    pub branch: String,
    /// The branch that it is for.
    pub base: String,
    /// The commit that it became.
    pub merged_as: Option<Oid>,
}

/// What became of a pull request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Nothing yet.
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
    /// The login may push there; none where the forge does not say.
    pub may_push: Option<bool>,
}
