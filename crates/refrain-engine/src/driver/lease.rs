//! Driving a loop that this machine has for a time only: under a fence, with a witness that makes the journal known to the
//! machine that comes next, and until a deadline that is renewed. The scheduler of the machines (Temporal, or a table in a
//! database) gives and renews the lease.

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use refrain_core::event::End;
use refrain_core::r#loop::{LeaveReason, TakeOverRefusal};
use refrain_core::view::{self, Alive};
use refrain_core::{LoopState, Step};
use refrain_proc::keeper::StopLadder;
use refrain_proc::lease::LeaseDeadline;
use refrain_store::journal::{Durability, JournalError, Unreplicated, Witness};
use tokio::sync::watch;
use tokio::time::sleep;

use crate::EngineError;
use crate::blocking::blocking;
use crate::driver::account::SharedAccounts;
use crate::driver::budget::SharedMoney;
use crate::driver::dispatcher::Drive;
use crate::driver::drive::note;
use crate::driver::input::Driver;
use crate::driver::runner::Runner;
use crate::driver::signals::Signals;
use crate::error::chain;
use crate::host::Host;
use crate::move_error::MoveError;
use crate::service::mirror;

/// How long records that nothing waits for are collected before they are replicated.
const COLLECT: Duration = Duration::from_secs(30);

/// How long to wait before a record is replicated again.
const AGAIN: Duration = Duration::from_secs(1);

/// The right to drive a loop for a time.
#[derive(Debug)]
pub struct Lease {
    /// Higher than that of every machine that had the loop before.
    pub fence: u64,
    /// What makes the journal known beyond this machine: before anything that costs money or changes something outside,
    /// when a request was recorded, and at the end. [`crate::RemoteWitness`] is one over git.
    pub witness: Arc<dyn Witness>,
    /// When the lease ends. The supervisor process ends the agent then, even if this process is frozen or dead.
    pub deadline: LeaseDeadline,
    /// How long the journal may fail to be replicated until the drive ends as [`DriveEnd::Unable`].
    pub replicate_within: Duration,
    /// Whether the drive is to end after the iteration, for another machine to continue.
    pub drain: watch::Receiver<bool>,
    /// The ledger that machines share. Without it the caps of the loop hold on each machine for itself.
    pub money: Option<Arc<dyn SharedMoney>>,
    /// The gates of accounts that machines share.
    pub accounts: Option<Arc<dyn SharedAccounts>>,
}

/// How the drive of a loop under a lease ended. All processes of the loop are gone, and except after [`DriveEnd::Unable`],
/// [`DriveEnd::Fenced`] and [`DriveEnd::Lapsed`] every record is known beyond this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DriveEnd {
    /// The loop has ended.
    Ended(End),
    /// The loop waits for a request, for this reason.
    Parked(String),
    /// The loop has nothing to do before this time.
    Resting(Timestamp),
    /// It was asked to end after the iteration.
    Yielded,
    /// This machine cannot continue the loop, for this reason; another may be able to.
    Unable(String),
    /// Another machine has taken the loop over.
    Fenced,
    /// The lease was not renewed in time.
    Lapsed,
}

/// Why a drive stopped.
pub(super) enum Stop {
    /// There is nothing to do until a request comes.
    Rest,
    /// Only under a lease.
    Leaves(DriveEnd),
}

/// A lease, and how replication goes.
pub(super) struct LeaseState {
    lease: Lease,
    tried: Instant,
    failing_since: Option<Instant>,
}

impl LeaseState {
    pub(super) fn new(lease: Lease) -> Self {
        Self { lease, tried: Instant::now(), failing_since: None }
    }

    pub(super) fn accounts(&self) -> Option<&Arc<dyn SharedAccounts>> {
        self.lease.accounts.as_ref()
    }

    fn is_over(&self) -> bool {
        self.lease.deadline.until().has_passed()
    }

    /// When the drive has to look at the lease again.
    pub(super) fn look_again(&self, is_replicated: bool) -> Duration {
        let collected = COLLECT.saturating_sub(self.tried.elapsed());
        let left = self.lease.deadline.until().left();
        if is_replicated { left } else { left.min(collected) }
    }

    /// Notes how it went; says whether it may be tried again.
    fn note_try(&mut self, is_unreachable: bool) -> bool {
        self.tried = Instant::now();
        if !is_unreachable {
            self.failing_since = None;
            return false;
        }
        let since = *self.failing_since.get_or_insert(self.tried);
        since.elapsed() < self.lease.replicate_within && !self.is_over()
    }

    /// Returns when it is asked to end after the iteration.
    pub(super) async fn drained(&mut self) {
        if self.lease.drain.changed().await.is_err() {
            std::future::pending().await
        }
    }
}

impl EngineError {
    /// Whether records are on disk and not known beyond this machine yet.
    pub(crate) fn is_unreachable(&self) -> bool {
        matches!(self, Self::Journal(JournalError::Unreplicated(Unreplicated::Unreachable(_))))
    }
}

impl From<EngineError> for DriveEnd {
    fn from(error: EngineError) -> Self {
        let is_fenced = matches!(
            error,
            EngineError::Journal(JournalError::Unreplicated(Unreplicated::Fenced))
                | EngineError::Move {
                    why: MoveError::NotTaken { why: TakeOverRefusal::Fenced { .. }, .. },
                    ..
                }
        );
        if is_fenced { Self::Fenced } else { Self::Unable(chain(&error)) }
    }
}

impl Runner {
    /// Drives the loop under a lease until the drive ends, as [`Runner::drive`] does.
    ///
    /// What is wrong with this machine does not block the loop. After [`DriveEnd::Fenced`] and [`DriveEnd::Lapsed`] the
    /// records that no other machine has stay in the journal here, until the loop is taken over again.
    pub async fn drive_leased(
        self,
        host: &Host,
        signals: Signals,
        lease: Lease,
        ready: impl FnOnce(),
    ) -> DriveEnd {
        let (dir, remembrance, at) = (self.journal.dir().clone(), self.remembrance.clone(), host.clone());
        let live_progress = Arc::clone(&self.live_progress);
        let end = match Box::pin(Drive::begin(self, (host, signals), Some(lease), ready)).await {
            Ok(drive) => Box::pin(drive.run_leased()).await,
            Err(error) => error.into(),
        };
        live_progress.update(|snapshot| snapshot.over = true);
        blocking(move || remembrance.set(note(&at, &dir))).await;
        end
    }
}

impl Drive<'_> {
    /// Whether the lease ends the drive.
    pub(super) fn check_lease(&self) -> Option<Stop> {
        let is_over = self.lease.as_ref().is_some_and(LeaseState::is_over);
        is_over.then_some(Stop::Leaves(DriveEnd::Lapsed))
    }

    /// Whether this step is not for this machine.
    pub(super) fn leaves(&self, step: Step, now: Timestamp) -> Option<Stop> {
        let LeaseState { lease, .. } = self.lease.as_ref()?;
        let (state, is_drained) = (self.driver.journal.state(), *lease.drain.borrow());
        let end = match state.leaves(step, is_drained, now)? {
            LeaveReason::Unable(why) => DriveEnd::Unable(view::blocked(state, why)),
            LeaveReason::Drained => DriveEnd::Yielded,
            LeaveReason::Rests(until) => DriveEnd::Resting(until),
        };
        Some(Stop::Leaves(end))
    }

    /// Replicates what was collected long enough. What cannot be replicated now is tried again.
    pub(super) async fn replicate_collected(&mut self) -> Result<(), EngineError> {
        let is_due = self.lease.as_ref().is_some_and(|held| held.tried.elapsed() >= COLLECT);
        if !is_due || self.driver.journal.is_replicated() {
            return Ok(());
        }
        match self.try_commit(Durability::Replicated).await {
            (Err(_), true) => Ok(()),
            (result, _) => result,
        }
    }

    /// Makes everything so far as durable as that. Without a lease it is never replicated.
    pub(super) async fn commit(&mut self, durability: Durability) -> Result<(), EngineError> {
        loop {
            match self.try_commit(durability).await {
                (Err(_), true) => sleep(AGAIN).await,
                (result, _) => return result,
            }
        }
    }

    /// The same, tried once; says whether it may be tried again.
    async fn try_commit(&mut self, durability: Durability) -> (Result<(), EngineError>, bool) {
        let committed = self.driver.commit(durability).await;
        let is_unreachable = committed.as_ref().is_err_and(EngineError::is_unreachable);
        let again = match &mut self.lease {
            Some(held) if durability == Durability::Replicated => held.note_try(is_unreachable),
            Some(_) | None => false,
        };
        let done = match committed {
            // The process that deleted the journal may have deleted the lock of the worktree with it.
            Ok(true) => self.keep_worktree().await,
            Ok(false) => Ok(()),
            Err(error) => Err(error),
        };
        (done, again)
    }

    async fn run_leased(mut self) -> DriveEnd {
        let stopped = self.steps().await;
        let end = match stopped {
            Ok(Stop::Rest) => stopped_end(self.driver.journal.state()),
            Ok(Stop::Leaves(end)) => end,
            Err(_) if self.check_lease().is_some() => DriveEnd::Lapsed,
            Err(error) => error.into(),
        };
        // The agent first: it is what costs money.
        if self.flight.is_some() {
            self.supervisor.end(StopLadder::default()).await;
        } else {
            self.supervisor.dismiss().await;
        }
        if let Some(mut work) = self.work.take() {
            work.abandon();
            let _ = work.done().await;
        }
        let end = self.make_known(end).await;
        let Self { driver, ground, .. } = self;
        let Driver { journal, locks, .. } = driver;
        let is_known = !matches!(end, DriveEnd::Fenced | DriveEnd::Lapsed | DriveEnd::Unable(_));
        blocking(move || {
            if is_known && journal.state().ended.is_some() {
                mirror::close(journal.state(), journal.dir());
            }
            if let Some(checkout) = ground.lock().unwrap_or_else(PoisonError::into_inner).take() {
                checkout.leave();
            }
            drop((journal, locks));
        })
        .await;
        end
    }

    /// Makes what led to the end known, if that is possible.
    async fn make_known(&mut self, end: DriveEnd) -> DriveEnd {
        let failure = match &end {
            DriveEnd::Fenced | DriveEnd::Lapsed => None,
            DriveEnd::Ended(_) | DriveEnd::Parked(_) | DriveEnd::Resting(_) | DriveEnd::Yielded => {
                self.commit(Durability::Replicated).await.err()
            }
            DriveEnd::Unable(_) => {
                let failure = self.try_commit(Durability::Replicated).await.0.err();
                return failure.map(DriveEnd::from).filter(|end| *end == DriveEnd::Fenced).unwrap_or(end);
            }
        };
        failure.map_or(end, DriveEnd::from)
    }
}

/// How a loop stopped that has nothing to do until a request comes.
fn stopped_end(state: &LoopState) -> DriveEnd {
    match state.ended.map(|ended| ended.end) {
        None | Some(End::Blocked { .. } | End::Paused) => {
            DriveEnd::Parked(view::status(state, Alive::NO_RUNNER).reason)
        }
        Some(end) => DriveEnd::Ended(end),
    }
}
