//! The state that all connections of one model share: the lanes with their scripts, and the requests received.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::request::{ConnectionEnd, Request, TakenTurn};
use super::script::{Script, Turn};

#[derive(Debug)]
pub(super) struct State {
    started: Instant,
    inner: Mutex<Inner>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Inner {
    lanes: BTreeMap<String, Lane>,
    requests: Vec<Request>,
    is_stopped: bool,
}

#[derive(Debug)]
struct Lane {
    script: Script,
    taken: usize,
}

impl State {
    pub(super) fn new() -> Self {
        Self { started: Instant::now(), inner: Mutex::default(), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A test that panicked elsewhere must still be able to look.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a lane its script, from the beginning.
    pub(super) fn set_lane(&self, name: &str, script: Script) {
        self.lock().lanes.insert(name.to_owned(), Lane { script, taken: 0 });
    }

    /// Stores a request, and takes the next turn of its lane if it belongs to the main conversation. `None` if there
    /// is no such lane.
    pub(super) fn take(&self, mut request: Request, wants_turn: bool) -> Option<(usize, Option<Turn>)> {
        let mut inner = self.lock();
        request.at = self.started.elapsed();
        let mut turn = None;
        let lane = inner.lanes.get_mut(&request.lane)?;
        if wants_turn {
            let (took, next) = match lane.script.at(lane.taken) {
                Some((place, next)) => (TakenTurn::Turn(place), next.clone()),
                None => (TakenTurn::Past, lane.script.past(&request)),
            };
            request.took = took;
            turn = Some(next);
            lane.taken += 1;
        }
        inner.requests.push(request);
        let number = inner.requests.len() - 1;
        drop(inner);
        self.changed.notify_all();
        Some((number, turn))
    }

    pub(super) fn end(&self, number: usize, ending: ConnectionEnd) {
        self.lock().requests[number].ending = ending;
        self.changed.notify_all();
    }

    pub(super) fn requests(&self) -> Vec<Request> {
        self.lock().requests.clone()
    }

    /// Waits until the requests are as wanted; returns whether they were, in time.
    pub(super) fn wait(&self, limit: Duration, mut is_so: impl FnMut(&[Request]) -> bool) -> bool {
        let inner = self.lock();
        let waited = self.changed.wait_timeout_while(inner, limit, |inner| !is_so(&inner.requests));
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    pub(super) fn stop(&self) {
        self.lock().is_stopped = true;
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.lock().is_stopped
    }
}
