//! Symbolic links of a tree that lead out of the worktree.

use std::fs;

use refrain_core::git::{Oid, RepoPath};
use refrain_core::protect::{OutsideLink, leads_out};

use crate::error::GitError;
use crate::protect::{content, empty_tree, really};
use crate::repository::Repository;

/// How many links are looked at. A tree that has more new ones is refused by the first that leads out among them.
const MOST: usize = 1000;

impl Repository {
    /// The links of `tree` that lead out of the worktree and that the commit or tree `base` does not have like that, or
    /// nothing. The user's own links of before are theirs.
    ///
    /// # Errors
    /// [`GitError`] where git cannot be asked, and where the tree has too many new links to look at.
    pub fn outside_links(&self, base: Option<&Oid>, tree: &Oid) -> Result<Vec<OutsideLink>, GitError> {
        let git = self.git();
        let base = base.map_or_else(|| empty_tree(git), |base| Ok(base.to_string()))?;
        let asked =
            ["diff-tree", "-r", "-z", "--raw", "--no-renames", "--diff-filter=AMT", &base, tree.as_str()];
        let printed = git.output(really(&asked), &[])?;
        let mut fields = printed.split(|byte| *byte == 0);
        let mut links = Vec::new();
        while let (Some(record), Some(path)) = (fields.next(), fields.next()) {
            // `:<mode before> <mode> <object before> <object> <status>`
            let words: Vec<&str> = str::from_utf8(record).unwrap_or_default().split(' ').collect();
            if let [_, "120000", _, object, ..] = words[..] {
                links.push((path, object));
            }
        }
        if links.len() > MOST {
            return Err(GitError::TooManyLinks { most: MOST });
        }
        let top = fs::canonicalize(self.root()).ok();
        let mut outside = Vec::new();
        for (path, object) in links {
            let target = content(git, object)?;
            // By way of another link, it may lead out all the same.
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
