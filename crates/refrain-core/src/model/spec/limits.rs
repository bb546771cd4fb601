use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::agent::Usd;
use crate::event::StopReason;

use super::Millis;

/// Where a loop stops, and where an attempt does. `None` is no limit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Limits {
    /// Iterations that may be charged.
    pub max_iterations: Option<u32>,
    /// The loop's own duration: wall time less pauses and waits, and less the time without a runner.
    #[serde(rename = "max_duration_ms")]
    pub max_duration: Option<Millis>,
    /// One attempt's duration.
    #[serde(rename = "timeout_ms")]
    pub timeout: Option<Millis>,
    /// How long one attempt may print nothing.
    #[serde(rename = "idle_timeout_ms")]
    pub idle_timeout: Option<Millis>,
    /// Rest between iterations.
    #[serde(rename = "pause_ms")]
    pub pause: Option<Millis>,
    /// Money that may be spent.
    #[serde(default, rename = "max_cost_usd")]
    pub max_cost: Option<Usd>,
    /// Tokens that may be used, in and out.
    #[serde(default)]
    pub max_tokens: Option<u64>,
    /// How long the loop may wait for a provider in a row; none is 24 h for a limit and 2 h for an outage.
    #[serde(default, rename = "retry_for_ms")]
    pub retry_for: Option<Millis>,
    /// How long an agent that its time limit stops has to come to an end by itself, once it was asked to, before it is made
    /// to; none is as long as its adapter gives it.
    #[serde(default, rename = "timeout_grace_ms")]
    pub timeout_grace: Option<Millis>,
}

impl Limits {
    /// The default cap (all seeds but one agree on it; section 8, conflict 1).
    pub const DEFAULT_ITERATIONS: u32 = 20;
    /// How long a known agent may print nothing by default: none of them gives up on a model that hangs (agent-clis.md,
    /// trap 5).
    pub const DEFAULT_SILENCE: Millis = Millis(30 * 60 * 1000);
    /// The most that one `start`, or one `resume` on top of what is charged, may grant (seed 000, FR-NL13).
    pub const MAX_GRANT: u32 = 200;

    /// The total to offer after this many iterations: twice as many, but 2 to 20 more.
    #[must_use]
    pub fn larger_total(used: u32) -> u32 {
        used.saturating_add(used.clamp(2, Self::DEFAULT_ITERATIONS))
    }

    /// How long an attempt that is stopped for this reason has to end by itself, if configured.
    pub fn grace(&self, because: StopReason) -> Option<Millis> {
        self.timeout_grace.filter(|_| because == StopReason::TimeLimit)
    }
}
