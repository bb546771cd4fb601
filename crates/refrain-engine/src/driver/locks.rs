use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use camino::Utf8PathBuf;
use refrain_core::Spec;
use refrain_store::{RunnerLock, WorktreeLock};

use crate::EngineError;

/// The locks of a loop that is driven, shared by all their holders.
pub(crate) type Locks = Arc<RunnerLocks>;

/// What a loop holds while it is driven: its share in its worktree, and the right to drive it. All work done for it
/// shares this, so that the locks are not free before that work is done, even if the runner is dropped meanwhile.
#[derive(Debug)]
pub(crate) struct RunnerLocks {
    worktree: Mutex<WorktreeLock>,
    _runner: RunnerLock,
}

impl RunnerLocks {
    pub(crate) fn new(worktree: WorktreeLock, runner: RunnerLock) -> Self {
        Self { worktree: Mutex::new(worktree), _runner: runner }
    }

    pub(crate) fn worktree_file(&self) -> Utf8PathBuf {
        self.worktree().path()
    }

    /// Whether the share in the worktree still keeps other loops out.
    pub(crate) fn has_worktree(&self) -> bool {
        self.worktree().is_in_place()
    }

    /// Takes the share in the worktree again if its lock file was deleted.
    pub(crate) fn keep_worktree(&self, spec: &Spec) -> Result<(), EngineError> {
        let (worktree, needs_alone) = (spec.worktree.clone(), spec.needs_worktree_alone());
        self.worktree().renew()?.map_err(|by| EngineError::WorktreeTaken { worktree, by, needs_alone })
    }

    fn worktree(&self) -> MutexGuard<'_, WorktreeLock> {
        self.worktree.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A loop's share in its worktree, and the loops it shares it with.
pub(crate) type Share = (WorktreeLock, Vec<String>);
