//! A pull request (a merge request in GitLab), and its project.

use refrain_core::git::Oid;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullRequest {
    pub number: u64,
    pub url: String,
    pub state: State,
    /// A draft cannot be merged yet.
    pub draft: bool,
    pub title: String,
    pub body: String,
    pub head: Oid,
    pub branch: String,
    pub base: String,
    pub merged_as: Option<Oid>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Open,
    /// It was closed without being merged.
    Closed,
    Merged,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    pub default_branch: String,
    /// Whether the login may push there; none if the forge does not report it.
    pub may_push: Option<bool>,
}
