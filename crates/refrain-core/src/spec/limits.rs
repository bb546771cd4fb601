//! Where a loop and its attempts stop, in numbers.

use std::fmt;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::agent::Usd;
use crate::event::StopReason;

/// Where a loop stops, and where an attempt does. `None` is no limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
    /// How long a known agent may print nothing unless something else is said: none of them gives up on a model that hangs
    /// (agent-clis.md, trap 5).
    pub const DEFAULT_SILENCE: Millis = Millis(30 * 60 * 1000);
    /// The most that one `start`, or one `resume` on top of what is charged, may grant (seed 000, FR-NL13).
    pub const MAX_GRANT: u32 = 200;

    /// How long an attempt that is stopped for this has to come to an end by itself, where that was said.
    #[must_use]
    pub fn grace(&self, because: StopReason) -> Option<Millis> {
        self.timeout_grace.filter(|_| because == StopReason::TimeLimit)
    }
}

/// A duration in whole milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Millis(pub u64);

impl From<Millis> for Duration {
    fn from(Millis(ms): Millis) -> Self {
        Duration::from_millis(ms)
    }
}

impl From<Duration> for Millis {
    /// Rounds down; the longest duration becomes the largest number.
    fn from(duration: Duration) -> Self {
        Self(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for Millis {
    /// As a person would say it: `0.4s`, `12s`, `2m 15s`, `1h 5m`, `3d 4h`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = self.0 / 1000;
        match s {
            0..10 => write!(f, "{s}.{}s", self.0 % 1000 / 100),
            10..60 => write!(f, "{s}s"),
            60..3600 => write!(f, "{}m {}s", s / 60, s % 60),
            3600..86400 => write!(f, "{}h {}m", s / 3600, s % 3600 / 60),
            _ => write!(f, "{}d {}h", s / 86400, s % 86400 / 3600),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_people_say_them() {
        for (ms, shown) in [
            (0, "0.0s"),
            (449, "0.4s"),
            (9_999, "9.9s"),
            (59_999, "59s"),
            (135_000, "2m 15s"),
            (3_900_000, "1h 5m"),
            (273_600_000, "3d 4h"),
        ] {
            assert_eq!(Millis(ms).to_string(), shown);
        }
    }
}
