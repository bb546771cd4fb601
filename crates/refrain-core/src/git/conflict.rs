//! Why two sides of a history cannot be merged automatically.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RepoPath;

/// A path that a person, or an agent, has to decide about.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Conflict {
    /// Which.
    pub path: RepoPath,
    /// In which way.
    pub kind: ConflictKind,
}

/// In which way both sides are at odds over a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, strum::Display)]
#[serde(rename_all = "kebab-case")]
pub enum ConflictKind {
    /// Both changed the same lines, or added it with another content each.
    #[strum(to_string = "changed on both sides")]
    Content,
    /// One changed it, the other took it away.
    #[strum(to_string = "changed on one side, deleted on the other")]
    Deleted,
    /// One renamed it, the other renamed it otherwise or took it away, or both made one path of two.
    #[strum(to_string = "renamed on one side, and renamed otherwise or deleted on the other")]
    Renamed,
    /// It is a file on one side and a folder on the other.
    #[strum(to_string = "a file on one side, a folder on the other")]
    Folder,
    /// Both changed it, and it has no lines.
    #[strum(to_string = "changed on both sides, and no text")]
    Binary,
    /// Both have another commit of a repository in the repository.
    #[strum(to_string = "another commit of the submodule on each side")]
    Submodule,
    /// It is a file on one side, and a link or another repository on the other.
    #[strum(to_string = "of another kind on each side")]
    Type,
    /// Git says of it only that it cannot be merged.
    #[strum(to_string = "not to be merged")]
    Other,
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.kind)
    }
}
