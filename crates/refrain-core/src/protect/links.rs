//! Symbolic links that lead out of the worktree: their target is in no tree, and differs from machine to machine.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::git::RepoPath;
use crate::text::printable;

/// A link of the candidate that leads out of the worktree, or to what no checkout of the candidate has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OutsideLink {
    /// The link.
    pub path: RepoPath,
    /// Its target, as it stands in the link.
    pub target: String,
    /// It stays inside, and leads to what no commit has.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inside: bool,
}

impl fmt::Display for OutsideLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, target, inside } = self;
        let what = match inside {
            true => "is a symbolic link to what no commit has:",
            false => "is a symbolic link out of the worktree, to",
        };
        write!(f, "{path} {what} {}", printable(target))
    }
}

/// Whether a link at `path` leads out of the worktree by what its target says: by an absolute path, above the
/// worktree's top, or into git's own folder.
pub fn leads_out(path: &[u8], target: &[u8]) -> bool {
    if target.starts_with(b"/") {
        return true;
    }
    let mut at: Vec<&[u8]> = path.split(|byte| *byte == b'/').collect();
    at.pop();
    for part in target.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." if at.pop().is_none() => return true,
            b".." => {}
            part => at.push(part),
        }
    }
    at.first().is_some_and(|first| first.eq_ignore_ascii_case(b".git"))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("a", "b", false)]
    #[case("a/b", "../c", false)]
    #[case("a/b", "./../c/../d//e", false)]
    #[case("a", "/home/me/sum.sh", true)]
    #[case("a", "..", true)]
    #[case("a/b", "../../c", true)]
    #[case("a/b", "../c/../../d", true)]
    #[case("a/b", "../.git/hooks", true)]
    #[case("a/b", ".git/hooks", false)]
    fn a_link_leads_out_by_its_target(#[case] path: &str, #[case] target: &str, #[case] is_out: bool) {
        assert_eq!(leads_out(path.as_bytes(), target.as_bytes()), is_out);
    }
}
