//! Cache of commits: their trees and parents never change, so git is asked once for each, for all worktrees of a
//! repository. The same holds for the scan of a file with this name and content. Positions of references change and
//! are not cached, except that new branches are remembered until their task starts.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use refrain_core::git::Oid;

/// How many commits, and how many files, are cached; beyond that the cache is cleared.
const MOST: usize = 20_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) tree: Oid,
    pub(crate) parents: Vec<Oid>,
}

#[derive(Debug, Default)]
pub(crate) struct ObjectCache(Mutex<CachedObjects>);

#[derive(Debug, Default)]
struct CachedObjects {
    /// The commits that were made here, or that git was asked about.
    commits: HashMap<Oid, Head>,
    /// The references that were created and not used yet.
    expected: HashSet<String>,
    /// Files without suspected secrets, by path and content.
    clean: HashSet<(Vec<u8>, Oid)>,
}

impl ObjectCache {
    pub(crate) fn get(&self, commit: &Oid) -> Option<Head> {
        self.all(|kept| kept.commits.get(commit).cloned())
    }

    pub(crate) fn learn(&self, commit: &Oid, head: Head) {
        self.all(|CachedObjects { commits, .. }| {
            if commits.len() >= MOST {
                commits.clear();
            }
            commits.insert(commit.clone(), head);
        });
    }

    /// Remembers that these references were created and are not used yet.
    pub(crate) fn expect(&self, names: impl Iterator<Item = String>) {
        self.all(|kept| kept.expected.extend(names));
    }

    /// Whether a reference was created and not used yet: true only for the first call.
    pub(crate) fn take_expected(&self, name: &str) -> bool {
        self.all(|kept| kept.expected.remove(name))
    }

    /// Records that a file with this path and content has no suspected secret.
    pub(crate) fn pass(&self, path: &[u8], content: Oid) {
        self.all(|CachedObjects { clean, .. }| {
            if clean.len() >= MOST {
                clean.clear();
            }
            clean.insert((path.to_vec(), content));
        });
    }

    /// Whether the file is known to be clean.
    pub(crate) fn has_passed(&self, path: &[u8], content: &Oid) -> bool {
        let file = (path.to_vec(), content.clone());
        self.all(|kept| kept.clean.contains(&file))
    }

    fn all<T>(&self, ask: impl FnOnce(&mut CachedObjects) -> T) -> T {
        // Every entry is correct or absent, even if a holder of the lock panicked.
        ask(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
