//! What happened to a loop or a plan, as spans of OpenTelemetry: made from its journal after the fact, so a second
//! reading gives the same spans. Their ids follow from the loop and from what they are of, not from chance: an agent
//! can get its own before anything of it is sent, and so can the loop of a task that of the plan's span.
//!
//! The loop (from each start or resumption to its stop) holds its iterations, an iteration its agents and its gates; a
//! plan holds its tasks, and each of them its loop. Metrics are sums over spans (`metrics`). Names and attributes of
//! agents are those of the GenAI conventions, which are in development; they are in this folder only, and for people in
//! `docs/reference/telemetry.md`.
//!
//! The crates of OpenTelemetry are not used: their SDK measures its own process now, with its own clock and ids, at
//! fixed intervals. Here times, ids and sums come from a journal, maybe later. What is left is an encoder, which is
//! short (`otlp`).

mod ids;
mod metrics;
mod otlp;
mod plan;
mod tracer;

use jiff::Timestamp;

use crate::Record;
use crate::machine::Damage;

pub use ids::{Parent, ParentError, SpanId, TraceId};
pub use metrics::otlp_metrics;
pub use otlp::{Resource, otlp};
pub use plan::{PlanTracer, of_task};
pub use tracer::{Tracer, traceparent};

#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    pub trace: TraceId,
    pub id: SpanId,
    pub parent: Option<SpanId>,
    pub name: String,
    pub kind: Kind,
    pub start: Timestamp,
    pub end: Timestamp,
    pub attributes: Vec<Attribute>,
    /// Why it failed; none if it did not.
    pub error: Option<String>,
}

/// The kind of work that a span covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A plan, from a start to a stop.
    Plan,
    Task,
    /// A loop, from a start to a stop.
    Loop,
    Iteration,
    /// An agent, which something else was asked for.
    Agent,
    Gate,
}

pub type Attribute = (&'static str, Value);

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Text(String),
    Count(u64),
    Number(f64),
    Flag(bool),
}

/// Makes spans of a journal's records, one after the other.
pub trait SpanBuilder: Sized + Send + 'static {
    type Event;

    fn begin(record: &Record<Self::Event>) -> Result<Self, Damage>;

    fn see(&mut self, record: &Record<Self::Event>) -> Result<Vec<Span>, Damage>;

    /// Its unique id among all loops and plans of all times.
    fn own(&self) -> TraceId;
}

impl Span {
    fn attribute(&self, name: &str) -> Option<&Value> {
        self.attributes.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests;
