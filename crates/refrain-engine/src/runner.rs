//! The right to drive a loop, as a value: whoever holds it drives it, or hands it on.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::{Live, LoopId, LoopState, Spec, Step, next_step};
use refrain_git::Repository;
use refrain_store::{Journal, LoopDir, RunnerLock, WorktreeLock, catalog};

use crate::dispatcher::{Drive, blocking};
use crate::follow::Follower;
use crate::memory::{Remembrance, look_back_on, remember};
use crate::pulse::Pulse;
use crate::service::Host;
use crate::signals::Signals;
use crate::{EngineError, now};

/// A loop that this process has the right to drive.
#[derive(Debug)]
pub struct Runner {
    /// On the heap, as the state is large and futures hold what they are given several times over.
    pub(crate) journal: Box<Journal>,
    pub(crate) locks: Locks,
    /// Loops that work in the same worktree.
    pub(crate) neighbours: Vec<String>,
    /// Its worktree, where git was asked about it already.
    pub(crate) opened: Option<Repository>,
    /// Its own worktree was gone, and was made anew from its branch.
    pub(crate) is_restored: bool,
    pub(crate) pulse: Arc<Pulse>,
    /// Why it was told less of earlier loops than it might have been.
    pub(crate) forgetful: Option<String>,
    /// What goes wrong with what it leaves behind.
    pub(crate) remembrance: Remembrance,
    /// The events up to this one are of before it was started or resumed here.
    pub(crate) past: u64,
}

/// The locks of a loop that is driven, as all who hold them share them.
pub(crate) type Locks = Arc<RunnerLocks>;

/// What a loop holds while it is driven: its share in its worktree, and the right to drive it. Everybody who does something
/// for it holds it too, so that it is not free before they are done, whoever was dropped meanwhile.
#[derive(Debug)]
pub(crate) struct RunnerLocks {
    worktree: Mutex<WorktreeLock>,
    _runner: RunnerLock,
}

impl RunnerLocks {
    /// The lock file of the worktree.
    pub(crate) fn worktree_file(&self) -> Utf8PathBuf {
        self.worktree().path()
    }

    /// Whether the share in the worktree still keeps others out.
    pub(crate) fn has_worktree(&self) -> bool {
        self.worktree().is_in_place()
    }

    /// Takes the share in the worktree again if its lock file was deleted.
    ///
    /// # Errors
    /// [`EngineError::WorktreeTaken`] if another loop took it meanwhile.
    pub(crate) fn keep_worktree(&self, spec: &Spec) -> Result<(), EngineError> {
        let (worktree, needs_alone) = (spec.worktree.clone(), spec.needs_worktree_alone());
        self.worktree().renew()?.map_err(|by| EngineError::WorktreeTaken { worktree, by, needs_alone })
    }

    fn worktree(&self) -> MutexGuard<'_, WorktreeLock> {
        self.worktree.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A loop's share in its worktree, and whom it shares it with.
pub(crate) type Share = (WorktreeLock, Vec<String>);

impl Runner {
    pub(crate) fn new(
        journal: Journal,
        lock: RunnerLock,
        (mut worktree, neighbours): Share,
        past: u64,
    ) -> Self {
        worktree.sign(&journal.state().spec.id);
        let held = RunnerLocks { worktree: Mutex::new(worktree), _runner: lock };
        let (journal, locks) = (Box::new(journal), Arc::new(held));
        Self {
            journal,
            locks,
            neighbours,
            opened: None,
            is_restored: false,
            pulse: Arc::default(),
            forgetful: None,
            remembrance: Remembrance::default(),
            past,
        }
    }

    /// The loop.
    #[must_use]
    pub fn id(&self) -> &LoopId {
        &self.journal.state().spec.id
    }

    /// Where the loop works.
    #[must_use]
    pub fn worktree(&self) -> &Utf8Path {
        &self.journal.state().spec.worktree
    }

    /// Loops that work in the same worktree, which they and this one allow.
    #[must_use]
    pub fn neighbours(&self) -> &[String] {
        &self.neighbours
    }

    /// Whether its own worktree was gone, and was made anew from its branch: what was not committed is lost.
    #[must_use]
    pub fn is_restored(&self) -> bool {
        self.is_restored
    }

    /// How many memories of earlier loops it is told.
    #[must_use]
    pub fn recalled(&self) -> usize {
        self.journal.state().spec.memory.as_ref().map_or(0, |memory| memory.recalled.len())
    }

    /// Why it is told less of earlier loops than it might be.
    #[must_use]
    pub fn forgetful(&self) -> Option<&str> {
        self.forgetful.as_deref()
    }

    /// What will have gone wrong, once it has been driven, with what it leaves for later loops.
    #[must_use]
    pub fn remembrance(&self) -> Remembrance {
        self.remembrance.clone()
    }

    /// Whether the loop will stop without doing anything.
    #[must_use]
    pub fn ends_at_once(&self) -> bool {
        matches!(next_step(self.journal.state(), &Live::default(), now()), Step::Finish(_))
    }

    /// Follows the loop from its start, or its resumption, in this process.
    #[must_use]
    pub fn follow(&self) -> Follower {
        Follower::of_own(&self.journal, Arc::clone(&self.pulse), self.past)
    }

    /// Drives the loop until it stops, and says how it stands then. `ready` is called once the takeover is on disk.
    ///
    /// One thread can drive many: what it returns need not be moved to another (`spawn_local`), and whatever blocks is done on
    /// the runtime's own threads for that. Whoever drops it ends the loop's processes as if this process had died: the loop
    /// has crashed, and its locks are free once they are gone, which is when the runtime is, at the latest.
    ///
    /// # Errors
    /// [`EngineError`] where it cannot go on: what is on disk is what happened, and `resume` goes on from there.
    pub async fn drive(
        self,
        host: &Host,
        signals: Signals,
        ready: impl FnOnce(),
    ) -> Result<LoopState, EngineError> {
        let (dir, remembrance, at) = (self.journal.dir().clone(), self.remembrance.clone(), host.clone());
        let state = self.drive_unnoted(host, signals, ready).await;
        blocking(move || remembrance.set(note(&at, &dir))).await;
        state
    }

    /// The same, where somebody else is to [`note`] it.
    pub(crate) async fn drive_unnoted(
        self,
        host: &Host,
        signals: Signals,
        ready: impl FnOnce(),
    ) -> Result<LoopState, EngineError> {
        let pulse = Arc::clone(&self.pulse);
        // Gone once it has begun.
        let driven = Box::pin(Drive::begin(self, host, signals, ready)).await;
        let state = match driven {
            // On the heap: what it holds between two inputs is large.
            Ok(drive) => Box::pin(drive.run()).await,
            Err(error) => Err(error),
        };
        pulse.update(|beat| beat.over = true);
        state
    }
}

/// Notes in the catalog of the user's loops how one ended, and what there is to remember of it; answers with why that was not.
/// Only a convenience: what is not noted, the next one who lists finds.
pub(crate) fn note(host: &Host, dir: &LoopDir) -> Option<String> {
    let _ = catalog::note(&host.data_home, dir);
    let trouble = remember(host, dir);
    look_back_on(host, dir);
    trouble
}
