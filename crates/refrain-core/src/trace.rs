//! What happened to a loop, as spans of OpenTelemetry: made from its journal after the fact, so that whoever reads that again
//! finds the same ones. Their ids follow from the loop and from what they are of, not from chance: an agent can be told of its
//! own before anything of it is sent.
//!
//! The loop (from each start or resumption to its stop) holds its iterations, an iteration its agents and its gates. Names
//! and attributes of agents are those of the GenAI conventions; they are in development, and this is the one file that has
//! them.

mod otlp;

use std::fmt;

use jiff::Timestamp;

use crate::event::Event;
use crate::ids::{AttemptId, LoopId};
use crate::r#loop::{Attempt, Damage, LoopState, Outcome};
use crate::spec::AgentKind;
use crate::view::StatusWord;
use crate::{Record, agent};

pub use otlp::otlp;

/// Which loop's: the same for all that ever happens to it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TraceId([u8; 16]);

/// Which of its spans.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SpanId([u8; 8]);

/// Something that took time.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// Of which loop.
    pub trace: TraceId,
    /// Which.
    pub id: SpanId,
    /// What it is a part of.
    pub parent: Option<SpanId>,
    /// What it is.
    pub name: String,
    /// Something else was asked to do it: an agent.
    pub is_client: bool,
    /// From when.
    pub start: Timestamp,
    /// Until when.
    pub end: Timestamp,
    /// What is known of it.
    pub attributes: Vec<(&'static str, Value)>,
    /// Why it failed; none where it did not.
    pub error: Option<String>,
}

/// What an attribute says.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A text.
    Text(String),
    /// A whole number.
    Count(u64),
    /// A number.
    Number(f64),
    /// Yes or no.
    Flag(bool),
}

impl TraceId {
    /// That of the loop which was started then: a name can be given again.
    fn of(id: &LoopId, started_at: Timestamp) -> Self {
        let hash = blake3::hash(format!("{id} {}", started_at.as_nanosecond()).as_bytes());
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&hash.as_bytes()[..16]);
        Self(bytes)
    }

    fn span(self, what: &str) -> SpanId {
        let hash = blake3::hash(format!("{self} {what}").as_bytes());
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&hash.as_bytes()[..8]);
        SpanId(bytes)
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Debug for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What an agent is told of the span that it works in, as W3C has it (`TRACEPARENT`).
#[must_use]
pub fn traceparent(state: &LoopState, attempt: AttemptId) -> String {
    let trace = TraceId::of(&state.spec.id, state.started_at);
    format!("00-{trace}-{}-01", trace.span(&format!("attempt {attempt}")))
}

/// Makes spans of a journal's records, one after the other.
#[derive(Clone, Debug)]
pub struct Tracer {
    state: LoopState,
    trace: TraceId,
    /// Since when it goes on, and which of its runs that is.
    since: Option<(Timestamp, SpanId)>,
    iteration: Option<(u32, Timestamp, SpanId)>,
    gate: Option<(String, Timestamp, u32)>,
}

impl Tracer {
    /// Of a journal that begins so.
    ///
    /// # Errors
    /// [`Damage`] where none can begin so.
    pub fn begin(record: &Record) -> Result<Self, Damage> {
        let state = LoopState::begin(record)?;
        let trace = TraceId::of(&state.spec.id, state.started_at);
        let since = Some((record.at, trace.span("run 1")));
        Ok(Self { state, trace, since, iteration: None, gate: None })
    }

    /// The spans that have come to their end with this record.
    ///
    /// # Errors
    /// [`Damage`] where it cannot follow.
    pub fn see(&mut self, record: &Record) -> Result<Vec<Span>, Damage> {
        let attempts = self.state.attempts.len();
        self.state.apply(record)?;
        let mut spans = Vec::new();
        if let Some(attempt) = self.state.attempts.get(attempts) {
            spans.push(self.agent(attempt));
        }
        if let Event::LoopResumed { .. } = record.event {
            self.since = Some((record.at, self.trace.span(&format!("run {}", record.seq))));
        } else if let Event::IterationBegun { iteration } = record.event {
            spans.extend(self.end_iteration(record.at));
            self.begin_iteration(iteration, record.at);
        } else if let Event::AttemptStarted(id) = record.event
            && self.iteration.is_none()
        {
            // One that goes on behind a pause.
            self.begin_iteration(id.iteration, record.at);
        } else if let Event::GateStarted { gate, run } = &record.event {
            self.gate = Some((gate.to_string(), record.at, *run));
        } else if let Event::GateFinished(finished) = &record.event {
            spans.extend(self.end_gate(record.at, Some(finished.preview.as_str())));
        } else if let Event::GateSpawnFailed { error } = &record.event {
            spans.extend(self.end_gate(record.at, Some(error)));
        } else if let Event::LoopEnded(_) = record.event {
            spans.extend(self.end_iteration(record.at));
            spans.extend(self.end_run(record.at));
        }
        Ok(spans)
    }

    fn parent(&self) -> Option<SpanId> {
        self.iteration.map(|(_, _, id)| id).or(self.since.map(|(_, id)| id))
    }

    fn begin_iteration(&mut self, iteration: u32, at: Timestamp) {
        let run = self.since.map(|(_, id)| id.to_string()).unwrap_or_default();
        self.iteration = Some((iteration, at, self.trace.span(&format!("iteration {iteration} of {run}"))));
    }

    fn end_iteration(&mut self, at: Timestamp) -> Option<Span> {
        let (iteration, start, id) = self.iteration.take()?;
        let last = self.state.attempts.iter().rev().find(|attempt| attempt.id.iteration == iteration);
        let attributes = vec![
            ("refrain.loop.id", Value::Text(self.state.spec.id.to_string())),
            ("refrain.iteration", Value::Count(iteration.into())),
            ("refrain.iteration.charged", Value::Flag(last.is_some_and(|attempt| attempt.charged))),
        ];
        let parent = self.since.map(|(_, id)| id);
        Some(Span { parent, ..self.span(id, format!("iteration {iteration}"), (start, at), attributes) })
    }

    fn end_gate(&mut self, at: Timestamp, said: Option<&str>) -> Option<Span> {
        let (name, start, run) = self.gate.take()?;
        let result = self
            .state
            .gate_results()
            .find(|result| result.spec(&self.state.spec).is_some_and(|gate| gate.name.to_string() == name));
        let passed = result.is_some_and(|result| result.passed());
        let attributes = vec![
            ("refrain.gate.name", Value::Text(name.clone())),
            ("refrain.gate.passed", Value::Flag(passed)),
            ("refrain.gate.run", Value::Count(run.into())),
        ];
        let of = self.iteration.map_or(0, |(iteration, ..)| iteration);
        let id = self.trace.span(&format!("gate {name} {run} behind {of} at {}", start.as_nanosecond()));
        let error = (!passed).then(|| said.unwrap_or("it did not pass").to_owned());
        Some(Span { error, ..self.span(id, format!("gate {name}"), (start, at), attributes) })
    }

    fn end_run(&mut self, at: Timestamp) -> Option<Span> {
        let (start, id) = self.since.take()?;
        let status = StatusWord::from(self.state.ended?.end);
        let mut attributes = vec![
            ("refrain.loop.id", Value::Text(self.state.spec.id.to_string())),
            ("refrain.loop.status", Value::Text(status.as_str().to_owned())),
            ("refrain.iterations", Value::Count(self.state.charged.into())),
            ("refrain.loop.verified", Value::Flag(self.state.is_proven())),
        ];
        attributes.extend(self.state.spent.cost.map(|cost| ("refrain.cost_usd", Value::Number(cost.into()))));
        let is_well = matches!(status, StatusWord::Completed | StatusWord::Cancelled | StatusWord::Paused);
        let error = (!is_well).then(|| status.as_str().to_owned());
        Some(Span { parent: None, error, ..self.span(id, "loop".to_owned(), (start, at), attributes) })
    }

    fn agent(&self, attempt: &Attempt) -> Span {
        let spec = &self.state.spec.agent;
        let report = attempt.finished.as_ref().and_then(|finished| finished.report.as_ref());
        let session = report.map(|report| &report.session);
        let agent::Usage { tokens, cost, .. } = attempt.usage;
        let mut attributes = vec![
            ("gen_ai.operation.name", Value::Text("invoke_agent".to_owned())),
            ("gen_ai.agent.name", Value::Text(spec.kind.to_string())),
            ("refrain.attempt", Value::Text(attempt.id.to_string())),
        ];
        let provider = match spec.kind {
            AgentKind::Claude => Some("anthropic"),
            AgentKind::Codex => Some("openai"),
            AgentKind::Gemini => Some("gcp.gemini"),
            AgentKind::Generic | AgentKind::Opencode | AgentKind::Acp => None,
        };
        let texts = [
            ("gen_ai.provider.name", provider.map(str::to_owned)),
            ("gen_ai.request.model", spec.model.clone()),
            ("gen_ai.response.model", session.and_then(|session| session.model.clone())),
            ("gen_ai.conversation.id", session.and_then(|session| session.id.clone())),
        ];
        attributes.extend(texts.into_iter().filter_map(|(name, text)| Some((name, Value::Text(text?)))));
        let counts = [
            ("gen_ai.usage.input_tokens", tokens.input),
            ("gen_ai.usage.cache_read.input_tokens", tokens.cached_input),
            ("gen_ai.usage.output_tokens", tokens.output),
        ];
        attributes.extend(counts.into_iter().filter_map(|(name, count)| Some((name, Value::Count(count?)))));
        attributes.extend(cost.map(|cost| ("refrain.cost_usd", Value::Number(cost.into()))));
        let outcome = serde_json::to_value(attempt.outcome).ok();
        let outcome = outcome.as_ref().and_then(|outcome| outcome.as_str()).unwrap_or_default().to_owned();
        let is_well = matches!(attempt.outcome, Outcome::Claimed | Outcome::Ended);
        attributes.push(("refrain.outcome", Value::Text(outcome.clone())));
        let id = self.trace.span(&format!("attempt {}", attempt.id));
        let name = format!("invoke_agent {}", spec.kind);
        let span = self.span(id, name, (attempt.started_at, attempt.ended_at), attributes);
        Span { is_client: true, error: (!is_well).then_some(outcome), ..span }
    }

    fn span(
        &self,
        id: SpanId,
        name: String,
        (start, end): (Timestamp, Timestamp),
        attributes: Vec<(&'static str, Value)>,
    ) -> Span {
        let (trace, parent) = (self.trace, self.parent());
        Span { trace, id, parent, name, is_client: false, start, end, attributes, error: None }
    }
}

#[cfg(test)]
mod tests;
