//! The time until which a machine may run the processes of a loop that other machines may take over. The clock is that
//! of the system, which no program can set, and which runs while the machine sleeps: the runner and its keeper read the
//! same one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::system::since_boot;

/// A time by that clock, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LeaseTime(u64);

impl LeaseTime {
    pub fn now() -> Self {
        Self(millis(since_boot()))
    }

    #[must_use]
    pub fn after(self, span: Duration) -> Self {
        Self(self.0.saturating_add(millis(span)))
    }

    /// How long it is until then; nothing if it has passed.
    pub fn left(self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(Self::now().0))
    }

    pub fn has_passed(self) -> bool {
        self <= Self::now()
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// When a lease ends, shared by the worker that renews it and all that must not outlive it.
#[derive(Clone, Debug)]
pub struct LeaseDeadline(Arc<AtomicU64>);

impl LeaseDeadline {
    pub fn new(until: LeaseTime) -> Self {
        Self(Arc::new(AtomicU64::new(until.0)))
    }

    /// The lease ends at this time from here on. Reckon it from before the renewal was *sent*, not from its answer.
    pub fn renew(&self, until: LeaseTime) {
        self.0.store(until.0, Ordering::SeqCst);
    }

    pub fn until(&self) -> LeaseTime {
        LeaseTime(self.0.load(Ordering::SeqCst))
    }
}

/// When to look for a renewal, if this end of the lease is the last that was passed on.
pub(crate) fn look_again(passed_on: LeaseTime) -> Duration {
    (passed_on.left() / 2).clamp(Duration::from_millis(50), Duration::from_secs(10))
}
