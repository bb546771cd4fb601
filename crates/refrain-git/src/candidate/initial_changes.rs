//! Files that were dirty before the loop began: they are the user's, and the loop's changes to them are not
//! committed.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use refrain_core::git::{Base, LeftOutReason, OmittedPath, RepoPath};

use crate::candidate::status::Status;
use crate::repository::Repository;

/// The files that were dirty before the loop began.
pub(crate) struct Before(BTreeMap<Vec<u8>, Option<u64>>);

impl Before {
    pub(crate) fn of(base: &Base) -> Self {
        // The path of a nested repository ends with a slash.
        let bare = |path: Vec<u8>| path.strip_suffix(b"/").map_or_else(|| path.clone(), <[u8]>::to_vec);
        Self(base.dirty.iter().map(|dirty| (bare(dirty.path.to_bytes()), dirty.stamp)).collect())
    }

    /// The stamp of the path then; none if it was clean.
    pub(crate) fn stamp(&self, path: &[u8]) -> Option<Option<u64>> {
        self.0.get(path.strip_suffix(b"/").unwrap_or(path)).copied()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the path is the user's, or is inside a repository of theirs.
    pub(crate) fn has(&self, path: &[u8]) -> bool {
        self.stamp(path).is_some() || self.is_in_the_way(path)
    }

    /// The user's changes that the agent reverted or removed: git does not show them any more.
    pub(crate) fn lost(&self, repository: &Repository, status: &Status) -> Vec<OmittedPath> {
        let shown: BTreeSet<_> =
            status.entries.iter().map(|entry| entry.path.strip_suffix(b"/").unwrap_or(&entry.path)).collect();
        let is_lost = |(path, stamp): &(&Vec<u8>, &Option<u64>)| {
            !shown.contains(path.as_slice()) && repository.stamp(path) != **stamp
        };
        let lost = self.0.iter().filter(is_lost);
        lost.map(|(path, _)| OmittedPath {
            path: RepoPath::from_bytes(path),
            why: LeftOutReason::DirtyBefore,
        })
        .collect()
    }

    /// Whether the path is in place of a folder of the user's, or the other way round: one cannot be committed
    /// without losing the other.
    pub(crate) fn is_in_the_way(&self, path: &[u8]) -> bool {
        let above = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        let folder = [path, b"/"].concat();
        let below = self.0.range::<[u8], _>((Bound::Included(folder.as_slice()), Bound::Unbounded)).next();
        above.map(|(end, _)| &path[..end]).any(|folder| self.0.contains_key(folder))
            || below.is_some_and(|(dirty, _)| dirty.starts_with(&folder))
    }
}

#[cfg(test)]
mod tests {
    use refrain_core::git::Dirty;

    use super::*;

    #[test]
    fn a_file_where_a_folder_of_the_persons_was_is_in_the_way_and_the_other_way_round() {
        let dirty = [b"notes".as_slice(), b"docs/a/plan", b"nested/"];
        let dirty = dirty.map(|path| Dirty { path: RepoPath::from_bytes(path), stamp: None });
        let before = Before::of(&Base { dirty: dirty.to_vec(), ..Base::default() });
        for (path, is) in [
            ("notes/one", true),
            ("notes-two", false),
            ("docs/a", true),
            ("docs", true),
            ("docs/b", false),
            ("docs/a/plan/x", true),
            ("nested/file", true),
            ("other", false),
        ] {
            assert_eq!(before.is_in_the_way(path.as_bytes()), is, "{path}");
        }
        assert_eq!(before.stamp(b"nested/"), Some(None));
    }
}
