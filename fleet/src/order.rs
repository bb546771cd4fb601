//! What the server of the fleet gets: ids, numbers and addresses. Prompts, texts and reasons stay in git.

use std::collections::VecDeque;
use std::time::Duration;

use refrain_app::verbs::fleet::FleetRequest;
use serde::{Deserialize, Serialize};

/// A loop that workers drive, one at a time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Order {
    pub(crate) id: String,
    /// The git remote that has its journal and its branch.
    pub(crate) remote: String,
    /// Where `origin` of its repository leads: what it publishes goes there.
    pub(crate) origin: Option<String>,
    pub(crate) pool: String,
    /// The kind of its agent.
    pub(crate) agent: String,
    /// The names of its project, of its plan if it works on a task, and of its team.
    pub(crate) project: String,
    pub(crate) plan: Option<String>,
    pub(crate) team: Option<String>,
    /// Whether the namespace has the search attributes of `labels.rs`. A workflow that sets an unknown one does not continue.
    pub(crate) is_labelled: bool,
    pub(crate) terms: Terms,
    /// That of the last take-over.
    pub(crate) fence: u64,
    /// How often in a row its worker was lost.
    pub(crate) lost: u32,
    /// Workers that could not continue it.
    pub(crate) avoid: Vec<String>,
    /// Requests that no journal has yet.
    pub(crate) waiting: VecDeque<WaitingRequest>,
}

/// The shortest lease, the shortest time between two signs of a worker, and the longest span, in milliseconds.
const SHORTEST_LEASE: u64 = 6_000;
const SHORTEST_BEAT: u64 = 100;
const LONGEST_SPAN: u64 = 86_400_000;

/// The spans of a lease, in milliseconds.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Terms {
    pub(crate) lease_ms: u64,
    pub(crate) beat_ms: u64,
    pub(crate) replicate_ms: u64,
}

impl Default for Terms {
    fn default() -> Self {
        Self { lease_ms: 90_000, beat_ms: 20_000, replicate_ms: 60_000 }
    }
}

impl Terms {
    /// After how long without a sign of its worker a loop is given to another.
    pub(crate) fn lease(&self) -> Duration {
        Duration::from_millis(self.lease_ms)
    }

    /// After how long without an accepted sign the worker ends what it runs: before another can have the loop.
    pub(crate) fn fence(&self) -> Duration {
        self.lease() * 2 / 3
    }

    pub(crate) fn beat(&self) -> Duration {
        Duration::from_millis(self.beat_ms)
    }

    /// Whether a loop can be driven under them; an order may come from anyone who reaches the server.
    pub(crate) fn are_fit(&self) -> bool {
        let Self { lease_ms, beat_ms, replicate_ms } = *self;
        (SHORTEST_LEASE..=LONGEST_SPAN).contains(&lease_ms)
            && (SHORTEST_BEAT..=lease_ms / 3).contains(&beat_ms)
            && (1..=LONGEST_SPAN).contains(&replicate_ms)
    }

    pub(crate) fn replicate(&self) -> Duration {
        Duration::from_millis(self.replicate_ms)
    }
}

/// A request, whose text is at the git remote under its id.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct WaitingRequest {
    pub(crate) id: String,
    pub(crate) what: FleetRequest,
}

/// How a drive ended, as [`refrain_engine::DriveEnd`] without its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Ending {
    Ended,
    /// It waits for a request.
    Parked,
    /// It has nothing to do for so many milliseconds.
    Resting(u64),
    Yielded,
    Unable,
    /// Another machine has the loop, under this fence if it is known.
    Fenced(Option<u64>),
    Lapsed,
}

/// How a drive ended, and what it brought into the journal.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) ending: Ending,
    pub(crate) host: String,
    pub(crate) taken: Vec<String>,
}

/// The sign of a worker.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Beat {
    pub(crate) host: String,
    pub(crate) fence: u64,
}

/// The queue that workflows wait in.
pub(crate) const LOOPS: &str = "refrain.loops";

/// The queue of claims for loops of a kind of agent.
pub(crate) fn claims(pool: &str, agent: &str) -> String {
    format!("refrain.pool.{pool}.{agent}")
}

/// The queue of one worker.
pub(crate) fn own_queue(host: &str) -> String {
    format!("refrain.host.{host}")
}

/// A loop's own name at the server: a second start is refused there.
pub(crate) fn workflow_id(remote: &str, id: &str) -> String {
    format!("refrain/{remote}/{id}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_has_spans_that_can_be_kept() {
        let fit = Terms::default();
        assert!(fit.are_fit());
        for unfit in [
            Terms { lease_ms: 5_999, ..fit },
            Terms { lease_ms: u64::MAX, ..fit },
            Terms { beat_ms: 0, ..fit },
            Terms { beat_ms: 30_001, ..fit },
            Terms { replicate_ms: 0, ..fit },
            Terms { replicate_ms: u64::MAX, ..fit },
        ] {
            assert!(!unfit.are_fit(), "{unfit:?}");
        }
    }
}
