//! Faults of the provider, or of what the agent needs: how a loop reacts to a fault, and how long it waits (the table
//! "Errors are classified" of the design).

mod shared_gate;

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::agent::{FaultKind, Until};
use crate::event::{BlockReason, Wait, WaitKind};
use crate::ids::{AttemptId, LoopId};
use crate::spec::Millis;

pub use shared_gate::{GateChange, SharedGateState};

/// The first wait for an outage, or for something to do; each further one is twice as long, up to the longest.
const FIRST: Duration = Duration::from_secs(5);
const LONGEST: Duration = Duration::from_secs(600);
/// How long one loop waits for a provider in a row by default.
const LIMIT_BOUND: Millis = Millis(24 * 3600 * 1000);
pub(super) const OUTAGE_BOUND: Millis = Millis(2 * 3600 * 1000);
/// The longest delay that a program may sleep before it tries again itself.
const LONGEST_SLEEP: Duration = Duration::from_secs(60);
/// How long a program may be silent after it said that it was limited, without a delay.
const SILENT_SLEEP: Duration = Duration::from_secs(120);
/// By how much waits differ between loops, at most, as a part of the whole: not all come back at once.
const JITTER: u64 = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reaction {
    /// It is the provider's: refunded, and tried again after a wait.
    Wait(WaitKind),
    /// It needs a person: refunded, and blocked.
    Person(BlockReason),
    /// The agent's own budget is used up: charged.
    Budget,
    /// It is the work's own: charged, a failure like any other.
    Charge,
}

pub(super) fn answer(fault: FaultKind) -> Reaction {
    match fault {
        FaultKind::Limit => Reaction::Wait(WaitKind::Limit),
        FaultKind::RateLimit | FaultKind::Overloaded | FaultKind::Connection | FaultKind::Busy => {
            Reaction::Wait(WaitKind::Outage)
        }
        FaultKind::Login => Reaction::Person(BlockReason::Login),
        FaultKind::Forbidden => Reaction::Person(BlockReason::Forbidden),
        FaultKind::Credit => Reaction::Person(BlockReason::Credit),
        FaultKind::Model => Reaction::Person(BlockReason::Model),
        FaultKind::Setup => Reaction::Person(BlockReason::Setup),
        FaultKind::Session => Reaction::Person(BlockReason::Session),
        FaultKind::Budget => Reaction::Budget,
        FaultKind::Context
        | FaultKind::OutputLimit
        | FaultKind::Refused
        | FaultKind::Turns
        | FaultKind::Aborted
        | FaultKind::Other => Reaction::Charge,
    }
}

/// When a program is ended that waits for its provider itself; never, if it tries again soon.
pub(super) fn ends_sleep(retrying: &ProviderRetry) -> Option<Timestamp> {
    if !matches!(answer(retrying.kind), Reaction::Wait(_)) {
        return None;
    }
    let sleep = match retrying.until {
        Some(Until::At(at)) => Duration::try_from(at.duration_since(retrying.since)).ok(),
        Some(Until::After(delay)) => Some(delay.into()),
        None => None,
    };
    let is_limit = matches!(retrying.kind, FaultKind::Limit | FaultKind::RateLimit);
    match sleep.is_some_and(|sleep| sleep > LONGEST_SLEEP) {
        true => Some(retrying.since),
        false => is_limit.then(|| plus(retrying.since, SILENT_SLEEP)),
    }
}

/// A program that tries again itself after its provider failed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProviderRetry {
    pub kind: FaultKind,
    /// When it tries again, if it says so.
    pub until: Option<Until>,
    pub since: Timestamp,
}

/// Waits for a provider, one after another without an attempt between them that used a token or was charged.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Trouble {
    pub(super) next: Option<Wait>,
    waited: Duration,
    times: u32,
    /// The message of the last program that met it.
    pub(super) said: Option<String>,
}

impl Trouble {
    /// The hours to wait that `--retry-for` would have to allow.
    pub(super) fn hours(&self) -> u64 {
        self.waited.as_secs().div_ceil(3600).saturating_add(1)
    }

    /// A wait that is still to be waited, and nothing counted.
    pub(super) fn only(next: Option<Wait>) -> Self {
        Self { next, ..Self::default() }
    }

    /// One more fault: there is a wait now, or the loop is blocked because it would be too long.
    pub(super) fn meet(
        &mut self,
        (kind, until): (WaitKind, Option<Until>),
        at: Timestamp,
        (id, attempt): (&LoopId, AttemptId),
        bound: Option<Millis>,
    ) -> Option<BlockReason> {
        let backoff = doubled(self.times);
        self.times += 1;
        let earliest = plus(at, backoff + spread(id, attempt, backoff));
        let until = match until {
            // Loops with the same reset time must not all come at that time.
            Some(Until::At(reset)) => plus(reset, spread(id, attempt, LONGEST / 10)),
            Some(Until::After(after)) => plus(at, Duration::from(after)),
            None => earliest,
        };
        let until = until.max(earliest);
        let (bound, blocked) = match kind {
            WaitKind::Limit => (bound.unwrap_or(LIMIT_BOUND), BlockReason::Limit),
            WaitKind::Outage | WaitKind::Pace | WaitKind::Checks | WaitKind::Remote => {
                (bound.unwrap_or(OUTAGE_BOUND), BlockReason::Outage)
            }
        };
        let wait = Duration::try_from(until.duration_since(at)).unwrap_or_default();
        self.waited = self.waited.saturating_add(wait);
        let fits = self.waited <= Duration::from(bound);
        self.next = fits.then_some(Wait { kind, until });
        (!fits).then_some(blocked)
    }
}

/// The wait after so many others in a row.
pub(super) fn doubled(times: u32) -> Duration {
    FIRST.saturating_mul(1 << times.min(10)).min(LONGEST)
}

/// A part of `whole` that is another for every loop and attempt, and always the same for one.
fn spread(id: &LoopId, attempt: AttemptId, whole: Duration) -> Duration {
    let mixed = id.as_str().bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| mix(hash ^ u64::from(byte)));
    let mixed = mix(mixed ^ (u64::from(attempt.iteration) << 32 | u64::from(attempt.attempt)));
    let ms = u64::try_from(whole.as_millis()).unwrap_or(u64::MAX) / JITTER;
    Duration::from_millis(if ms == 0 { 0 } else { mixed % ms })
}

/// One round of FNV-1a, and a shift that brings the high bits down.
fn mix(hash: u64) -> u64 {
    let hash = hash.wrapping_mul(0x0100_0000_01b3);
    hash ^ (hash >> 29)
}

pub(super) fn plus(at: Timestamp, duration: Duration) -> Timestamp {
    let duration = SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX);
    at.checked_add(duration).unwrap_or(Timestamp::MAX)
}
