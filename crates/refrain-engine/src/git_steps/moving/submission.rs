//! Handing over a loop that was started and has not begun: its branch is made here, and no agent and no gate runs.

use std::sync::Arc;
use std::time::Duration;

use camino::Utf8Path;
use refrain_core::MachineEnd;
use refrain_proc::lease::{LeaseDeadline, LeaseTime};
use refrain_store::journal::{Unreplicated, Witness};
use tokio::sync::watch;

use super::MovedAway;
use crate::driver::lease::{DriveEnd, Lease};
use crate::driver::runner::Runner;
use crate::driver::signals::Signals;
use crate::move_error::MoveError;
use crate::{EngineError, Service};

/// How long making the branch and the worktree may take.
const PREPARING: Duration = Duration::from_mins(5);

/// The first fence: the next machine has a higher one.
const FIRST: u64 = 1;

/// Of a loop that no other machine has yet: the departure makes its journal known.
#[derive(Debug)]
struct NoWitness;

impl Witness for NoWitness {
    fn replicate(&self, _: u64, _: &[u8]) -> Result<(), Unreplicated> {
        Ok(())
    }

    fn covers(&self, _: u64) -> bool {
        true
    }
}

impl Service {
    /// Hands over a loop that was just started, as [`Service::move_to`] does with one that has stopped. If that fails, the
    /// loop is here, and can be resumed.
    pub async fn submit(&self, runner: Runner, to: (&str, &Utf8Path)) -> Result<MovedAway, EngineError> {
        let id = runner.id().clone();
        let lease = Lease {
            fence: FIRST,
            witness: Arc::new(NoWitness),
            deadline: LeaseDeadline::new(LeaseTime::now().after(PREPARING)),
            replicate_within: PREPARING,
            drain: watch::channel(true).1,
            money: None,
            accounts: None,
        };
        let why = match runner.drive_leased(self.host(), Signals::None, lease, || {}).await {
            DriveEnd::Yielded => return self.move_to(&id, to, false),
            DriveEnd::Parked(why) | DriveEnd::Unable(why) => why,
            DriveEnd::Ended(end) => end.name().to_owned(),
            DriveEnd::Resting(_) | DriveEnd::Fenced | DriveEnd::Lapsed => "it took too long".to_owned(),
        };
        Err(EngineError::Move { id, why: MoveError::NotPrepared(why) })
    }
}
