//! Cache of commits: their trees and parents never change, so git is asked once for each, for all worktrees of a
//! repository.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use refrain_core::git::Oid;

/// How many commits are cached; beyond that the cache is cleared.
const MOST: usize = 20_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) tree: Oid,
    pub(crate) parents: Vec<Oid>,
}

#[derive(Debug, Default)]
pub(crate) struct ObjectCache(Mutex<HashMap<Oid, Head>>);

impl ObjectCache {
    pub(crate) fn get(&self, commit: &Oid) -> Option<Head> {
        self.commits().get(commit).cloned()
    }

    pub(crate) fn learn(&self, commit: &Oid, head: Head) {
        let mut commits = self.commits();
        if commits.len() >= MOST {
            commits.clear();
        }
        commits.insert(commit.clone(), head);
    }

    fn commits(&self) -> MutexGuard<'_, HashMap<Oid, Head>> {
        // Every entry is correct or absent, even if a holder of the lock panicked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
