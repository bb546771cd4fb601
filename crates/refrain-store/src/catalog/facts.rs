//! The fields of a status object that lists and forecasts need beside a [`Brief`].

use jiff::Timestamp;
use refrain_core::spec::Millis;
use refrain_core::view::Kind;
use serde::Deserialize;

use super::Brief;

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Facts {
    pub agent: String,
    /// The latest of the iteration.
    pub attempt: u32,
    pub model: Option<String>,
    pub started_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    /// How long it had worked at its last event; none if the object is of a version that does not say it.
    pub active_ms: Option<Millis>,
    pub waits_for: Option<String>,
    pub question: Option<String>,
    /// What a person has to do before it continues.
    pub needs: Option<String>,
    pub usage: TotalUsage,
    pub limits: Caps,
    pub gates: Vec<GateFact>,
    pub approval: Option<ApprovalFact>,
    pub tag: Option<String>,
    /// The tasks of a plan that need you.
    pub blocked: Vec<BlockedFact>,
    /// The tasks of a plan that are worked on.
    pub current: Vec<CurrentFact>,
    pub tasks_done: usize,
    pub tasks_total: usize,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct TotalUsage {
    pub cost_usd: Option<f64>,
    /// Of a loop: its cost is not known in full.
    cost_at_least: bool,
    /// Of a plan: the same. Of a loop it may be about tokens alone.
    at_least: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Caps {
    pub max_cost_usd: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct GateFact {
    pub name: String,
    pub hard: bool,
    pub passed: bool,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct BlockedFact {
    pub task: String,
    pub title: String,
    pub reason: String,
    pub question: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct CurrentFact {
    /// What its agent said last.
    pub preview: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ApprovalFact {
    pub state: String,
    pub tree: Option<String>,
}

impl TotalUsage {
    /// Whether it cost more than is known.
    pub fn is_more(&self, kind: Kind) -> bool {
        if kind == Kind::Plan { self.at_least } else { self.cost_at_least }
    }
}

impl Brief {
    /// The fields of its status object; none if it has none, or one that cannot be parsed.
    pub fn facts(&self) -> Option<Facts> {
        serde_json::from_str(self.object.as_deref()?).ok()
    }
}
