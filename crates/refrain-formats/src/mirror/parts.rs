//! What the files of several systems have in common.

use jiff::Timestamp;
use refrain_core::event::{ClaimSource, End};
use refrain_core::ids::LoopId;
use refrain_core::r#loop::LoopState;
use refrain_core::prompt::state_file::front_matter;
use serde::{Deserialize, Serialize};

/// How a loop stands, in the only words that those systems have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LoopPhase {
    /// It runs, or can continue as it is: a pause is none of their ends.
    Running,
    Completed,
    Cancelled,
    MaxIterationsReached,
    /// It broke off, for any other reason.
    Crashed,
}

impl LoopPhase {
    /// How a loop stands; one that has not ended and has no runner broke off.
    pub fn of(state: &LoopState, is_driven: bool) -> Self {
        match state.ended.map(|ended| ended.end) {
            None if is_driven => Self::Running,
            Some(End::Paused | End::Blocked { .. }) => Self::Running,
            Some(End::IterationCap | End::Completed { claim: ClaimSource::Count }) => {
                Self::MaxIterationsReached
            }
            Some(End::Completed { .. }) => Self::Completed,
            Some(End::Cancelled) => Self::Cancelled,
            None | Some(End::Stuck | End::TimedOut | End::BudgetExceeded { .. }) => Self::Crashed,
        }
    }
}

/// The fields that every file of Refrain's has besides those of its format.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Mark {
    pub(super) refrain_loop: LoopId,
    pub(super) refrain_started: Timestamp,
}

impl Mark {
    pub(super) fn of(state: &LoopState) -> Self {
        Self { refrain_loop: state.spec.id.clone(), refrain_started: state.started_at }
    }

    pub(super) fn found(text: &str) -> Option<Self> {
        match front_matter(text) {
            Some((matter, _)) => serde_saphyr::from_str(&text[matter]).ok(),
            None => serde_json::from_str(text).ok(),
        }
    }
}

/// Pretty JSON, ended like a text.
pub(super) fn pretty(value: &impl Serialize) -> String {
    // Nothing that is written here cannot be: maps have texts for keys, and numbers are numbers.
    serde_json::to_string_pretty(value).map(|json| json + "\n").unwrap_or_default()
}
