//! Symbolic links of a tree that point outside the worktree.

use std::fs;

use refrain_core::git::{Oid, RepoPath};
use refrain_core::protect::{OutsideLink, leads_out};

use crate::candidate::protect::{Difference, content, diff_trees, differences, empty_tree};
use crate::error::GitError;
use crate::repository::Repository;

/// How many links are checked. A tree with more new ones is refused because of the first of them that points outside.
const MOST: usize = 1000;

impl Repository {
    /// The links of `tree` that point outside the worktree and differ from the commit or tree `base`, or from
    /// nothing. Earlier links are the user's own.
    pub fn outside_links(&self, base: Option<&Oid>, tree: &Oid) -> Result<Vec<OutsideLink>, GitError> {
        let git = self.git();
        let base = base.map_or_else(|| empty_tree(git), |base| Ok(base.to_string()))?;
        let printed = diff_trees(git, (&base, tree.as_str()), &["--diff-filter=AMT"])?;
        let mut links = differences(&printed)?;
        links.retain(|difference| difference.now.0 == "120000");
        if links.len() > MOST {
            return Err(GitError::TooManyLinks { most: MOST });
        }
        let top = fs::canonicalize(self.root()).ok();
        let mut outside = Vec::new();
        for Difference { path, now: (_, object), .. } in links {
            let target = content(git, object)?;
            // It may point outside through another link.
            let is_elsewhere = || {
                let real = fs::canonicalize(self.on_disk(path)).ok();
                top.as_ref().zip(real).is_some_and(|(top, real)| !real.starts_with(top))
            };
            if leads_out(path, &target) || is_elsewhere() {
                let target = String::from_utf8_lossy(&target).into_owned();
                outside.push(OutsideLink { path: RepoPath::from_bytes(path), target });
            }
        }
        Ok(outside)
    }
}
