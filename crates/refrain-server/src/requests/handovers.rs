//! Requests that start a detached runner: a stopping server waits for them.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

#[derive(Clone, Debug, Default)]
pub struct Handovers(Arc<Count>);

#[derive(Debug, Default)]
struct Count {
    running: Mutex<u32>,
    ended: Condvar,
}

pub(super) struct Handover(Handovers);

impl Handovers {
    pub(super) fn begin(&self) -> Handover {
        *self.running() += 1;
        Handover(self.clone())
    }

    /// Waits until none is at work, or for this long.
    pub fn wait(&self, at_most: Duration) {
        // Past that time the process ends all the same.
        let _ = self.0.ended.wait_timeout_while(self.running(), at_most, |running| *running > 0);
    }

    fn running(&self) -> MutexGuard<'_, u32> {
        self.0.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Handover {
    fn drop(&mut self) {
        *self.0.running() -= 1;
        self.0.0.ended.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_waits_for_requests_at_work() {
        let handovers = Handovers::default();
        handovers.wait(Duration::from_secs(60));
        let (handover, other) = (handovers.begin(), handovers.clone());
        let waiting = std::thread::spawn(move || other.wait(Duration::from_secs(60)));
        drop(handover);
        waiting.join().unwrap();
        let _at_work = handovers.begin();
        handovers.wait(Duration::ZERO);
    }
}
