//! The right to drive a loop, as a value: whoever holds it drives it, or hands it on.

use std::sync::Arc;

use camino::Utf8Path;
use refrain_core::{Live, LoopId, LoopState, Step, next_step};
use refrain_store::{Journal, RunnerLock, WorktreeLock, catalog};

use crate::dispatcher::Drive;
use crate::follow::Follower;
use crate::pulse::Pulse;
use crate::service::Host;
use crate::signals::Signals;
use crate::{EngineError, now};

/// A loop that this process has the right to drive.
#[derive(Debug)]
pub struct Runner {
    pub(crate) journal: Journal,
    pub(crate) lock: RunnerLock,
    /// Its share in its worktree.
    pub(crate) worktree: WorktreeLock,
    /// Loops that work in the same worktree.
    pub(crate) neighbours: Vec<String>,
    /// Its own worktree was gone, and was made anew from its branch.
    pub(crate) is_restored: bool,
    pub(crate) pulse: Arc<Pulse>,
    /// The events up to this one are of before it was started or resumed here.
    pub(crate) past: u64,
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
        Self { journal, lock, worktree, neighbours, is_restored: false, pulse: Arc::default(), past }
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

    /// Whether the loop will stop without doing anything.
    #[must_use]
    pub fn ends_at_once(&self) -> bool {
        matches!(next_step(self.journal.state(), &Live::default(), now()), Step::Finish(_))
    }

    /// Follows the loop from its start, or its resumption, in this process.
    #[must_use]
    pub fn follow(&self) -> Follower {
        Follower::of_own(self.journal.dir().clone(), Arc::clone(&self.pulse), self.past)
    }

    /// Drives the loop until it stops, and says how it stands then. `ready` is called once the takeover is on disk.
    ///
    /// # Errors
    /// [`EngineError`] where it cannot go on: what is on disk is what happened, and `resume` goes on from there.
    pub async fn drive(
        self,
        host: &Host,
        signals: Signals,
        ready: impl FnOnce(),
    ) -> Result<LoopState, EngineError> {
        let pulse = Arc::clone(&self.pulse);
        let dir = self.journal.dir().clone();
        let driven = Drive::begin(self, host, signals, ready).await;
        let state = match driven {
            // On the heap: what it holds between two inputs is large.
            Ok(drive) => Box::pin(drive.run()).await,
            Err(error) => Err(error),
        };
        pulse.update(|beat| beat.over = true);
        // Only a convenience: what is not noted, the next one who lists finds. Nothing else runs in this thread any more.
        let _ = catalog::note(&host.data_home, &dir);
        state
    }
}
