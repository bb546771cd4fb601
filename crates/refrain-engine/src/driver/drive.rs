//! Driving a loop from its takeover to its end, and what is noted of it then.

use crate::EngineError;
use crate::blocking::blocking;
use crate::driver::dispatcher::Drive;
use crate::driver::runner::Runner;
use crate::driver::signals::Signals;
use crate::host::Host;
use crate::memory::{look_back_on, remember};
use refrain_core::LoopState;
use refrain_store::{LoopDir, catalog};
use std::sync::Arc;
impl Runner {
    /// Drives the loop until it stops, and returns its state. `ready` is called once the takeover is on disk.
    ///
    /// One thread can drive many: the returned future need not be `Send` (`spawn_local`), and blocking work runs on the
    /// runtime's own threads for that. Dropping it ends the loop's processes as if this process had died: the loop has
    /// crashed, and its locks are free once the processes are gone, at the latest when the runtime is.
    /// Errors: [`EngineError`] if it cannot continue: what is on disk is what happened, and `resume` continues from
    /// there.
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

    /// The same, if the caller is to [`note`] it.
    pub(crate) async fn drive_unnoted(
        self,
        host: &Host,
        signals: Signals,
        ready: impl FnOnce(),
    ) -> Result<LoopState, EngineError> {
        let live_progress = Arc::clone(&self.live_progress);
        // Gone once it has begun.
        let driven = Box::pin(Drive::begin(self, (host, signals), None, ready)).await;
        let state = match driven {
            // On the heap: what it holds between two inputs is large.
            Ok(drive) => Box::pin(drive.run()).await,
            Err(error) => Err(error),
        };
        live_progress.update(|snapshot| snapshot.over = true);
        state
    }
}

/// Notes in the catalog how a loop ended, and keeps its memories; returns why these could not be kept. Only a
/// convenience: the next list finds what was not noted.
pub(crate) fn note(host: &Host, dir: &LoopDir) -> Option<String> {
    let _ = catalog::note(&host.data_home, dir, &host.signing());
    let trouble = remember(host, dir);
    look_back_on(host, dir);
    trouble
}
