//! Commits of repositories in the repository: a tree names them, but does not hold them.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::git::{Oid, RepoPath};

/// A commit of a submodule that none of its remotes has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LocalCommit {
    /// The submodule.
    pub path: RepoPath,
    /// Its commit in the tree.
    pub commit: Oid,
}

impl fmt::Display for LocalCommit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, commit } = self;
        write!(
            f,
            "{path} is a repository of its own at {}, which no remote of it has; push that commit there, or commit the files of \
             {path} in place of a repository",
            commit.short()
        )
    }
}
