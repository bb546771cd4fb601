//! How far an attempt got that took too long.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use crate::r#loop::{Attempt, LoopState, Outcome};
use crate::spec::Millis;

/// An attempt that took too long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Overrun {
    /// How long it ran.
    #[serde(rename = "elapsed_ms")]
    pub elapsed: Millis,
    /// How long it may; null where that limit is taken back by now.
    #[serde(rename = "limit_ms")]
    pub limit: Option<Millis>,
    /// The tool that it used last; null where its agent does not say.
    pub last_tool: Option<String>,
}

impl Overrun {
    pub(crate) fn of(state: &LoopState, attempt: &Attempt) -> Option<Self> {
        let report = attempt.finished.as_ref().and_then(|finished| finished.report.as_ref());
        (attempt.outcome == Outcome::TimeLimit).then(|| Self {
            elapsed: attempt.ended_at.duration_since(attempt.started_at).unsigned_abs().into(),
            limit: state.limits.timeout,
            last_tool: report.and_then(|report| report.last_tool.clone()),
        })
    }
}

impl fmt::Display for Overrun {
    /// As in `it ran 30m 2s, where 30m 0s is the limit, last in its tool Bash`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it ran {}", self.elapsed)?;
        if let Some(limit) = self.limit {
            write!(f, ", where {limit} is the limit")?;
        }
        match &self.last_tool {
            Some(tool) => write!(f, ", last in its tool {tool}"),
            None => Ok(()),
        }
    }
}
