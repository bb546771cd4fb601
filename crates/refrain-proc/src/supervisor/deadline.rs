//! What a supervisor's keeper owes it, and by when. A keeper that is stopped (SIGSTOP) does nothing. While it owes an
//! answer it gets SIGCONT repeatedly, and is given up if that does not help.

use std::time::{Duration, Instant};

use refrain_core::event::Process;
use rustix::process::Signal;

use crate::keeper::LEFTOVER_BOUND;
use crate::sweep::ROUNDS_BOUND;
use crate::{identity, system};

/// The longest time that a running keeper needs to start an agent, to notice its end, or to end itself.
pub(super) const PROMPTLY: Duration = Duration::from_secs(5);

const AGAIN: Duration = Duration::from_secs(1);

/// How much longer a keeper that is not stopped may take: it may be ending processes that resist, or wait for a slow
/// disk.
const SLACK: Duration = LEFTOVER_BOUND.saturating_add(ROUNDS_BOUND).saturating_add(Duration::from_secs(15));

#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline {
    next: Instant,
    /// After this, a stopped keeper is given up.
    until: Instant,
    at_last: Instant,
}

impl Deadline {
    /// A deadline for an answer of a keeper, at most `longest` from now.
    pub(super) fn within(longest: Duration) -> Self {
        let now = Instant::now();
        let until = now + longest;
        Self { next: until.min(now + AGAIN), until, at_last: until + SLACK }
    }

    /// The time until the next check.
    pub(super) fn left(&self) -> Duration {
        self.next.saturating_duration_since(Instant::now())
    }

    pub(super) fn is_late(&self) -> bool {
        Instant::now() >= self.until
    }

    /// Checks the keeper if it is time to; returns whether it is given up. Otherwise it gets SIGCONT.
    pub(super) fn is_given_up(&mut self, keeper: Option<Process>) -> bool {
        let now = Instant::now();
        if now < self.next {
            return false;
        }
        self.next = now + AGAIN;
        if now >= self.at_last || now >= self.until && keeper.is_some_and(identity::is_stopped) {
            return true;
        }
        proceed(keeper);
        false
    }
}

/// Sends SIGCONT to a keeper, in case it is stopped.
pub(super) fn proceed(keeper: Option<Process>) {
    if let Some(keeper) = keeper {
        system::signal(keeper, Signal::CONT);
    }
}
