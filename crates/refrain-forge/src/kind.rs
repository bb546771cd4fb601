use std::fmt::Debug;

use refrain_core::git::Oid;

use crate::checks::Checks;
use crate::error::Trouble;
use crate::mergeability::Mergeable;
use crate::pull_request::{Project, PullRequest};

/// The operations of each kind of forge. Nothing here retries.
pub(super) trait Host: Debug + Send + Sync {
    fn project(&self) -> Result<Project, Trouble>;
    /// The pull requests of a branch, the newest first.
    fn of_branch(&self, branch: &str) -> Result<Vec<PullRequest>, Trouble>;
    fn get(&self, number: u64) -> Result<PullRequest, Trouble>;
    fn create(&self, opening: PullRequestContent<'_>) -> Result<PullRequest, Trouble>;
    fn edit(&self, number: u64, title: Option<&str>, body: &str) -> Result<(), Trouble>;
    fn ready(&self, of: &PullRequest) -> Result<(), Trouble>;
    /// Turns it into a draft again.
    fn draft(&self, of: &PullRequest) -> Result<(), Trouble>;
    fn checks(&self, head: &Oid, base: &str) -> Result<Checks, Trouble>;
    fn log(&self, job: u64) -> Result<Vec<u8>, Trouble>;
    fn mergeable(&self, number: u64) -> Result<Mergeable, Trouble>;
    /// Merges it only at this head; returns the commit.
    fn merge(&self, number: u64, head: &Oid, squash: bool) -> Result<Option<Oid>, Trouble>;
    /// The head of a branch; none if it does not exist.
    fn branch(&self, name: &str) -> Result<Option<Oid>, Trouble>;
    fn delete_branch(&self, name: &str) -> Result<(), Trouble>;
}

#[derive(Clone, Copy, Debug)]
pub struct PullRequestContent<'a> {
    /// Its head branch, which is already at the remote.
    pub branch: &'a str,
    pub base: &'a str,
    pub title: &'a str,
    pub body: &'a str,
    /// A draft cannot be merged yet.
    pub draft: bool,
}
