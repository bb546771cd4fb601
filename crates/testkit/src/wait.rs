//! Waiting for other processes. The only place in the tests that sleeps: a condition is polled with a short back-off
//! until it holds or a deadline has passed.

use std::time::{Duration, Instant};

/// How long anything may take before a test fails. Far more than it needs: machines that run tests are busy.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

/// Polls until `look` returns something; fails the test after half a minute, naming what it waited for.
#[track_caller]
pub fn eventually<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    within(DEADLINE, what, look)
}

/// Looks until there is something; fails the test once `limit` has passed.
#[track_caller]
pub fn within<T>(limit: Duration, what: &str, look: impl FnMut() -> Option<T>) -> T {
    poll(limit, look).unwrap_or_else(|| panic!("waited {limit:?} in vain: {what}"))
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one place that looks again; other processes send us no events"
)]
pub(crate) fn poll<T>(limit: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let start = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(found) = look() {
            return Some(found);
        }
        if start.elapsed() > limit {
            return None;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(25));
    }
}
