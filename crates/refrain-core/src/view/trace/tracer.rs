use jiff::Timestamp;

use super::{Attribute, Kind, Parent, Span, SpanBuilder, SpanId, TraceId, Value};
use crate::Record;
use crate::agent::{AgentReport, Usage};
use crate::event::Event;
use crate::gate::Verdict;
use crate::ids::AttemptId;
use crate::r#loop::{Attempt, LoopState, Outcome};
use crate::machine::Damage;
use crate::spec::{AgentKind, AgentSpec};
use crate::view::{self, StatusWord};

/// The span for an agent's environment, as W3C has it (`TRACEPARENT`).
pub fn traceparent(state: &LoopState, attempt: AttemptId) -> String {
    let own = TraceId::of(&state.spec.id, state.started_at);
    Parent { trace: trace_of(state, own), span: own.span(&format!("attempt {attempt}")) }.to_string()
}

/// The trace that a loop's spans are in: its parent's, else its own.
fn trace_of(state: &LoopState, own: TraceId) -> TraceId {
    state.spec.trace.map_or(own, |parent| parent.trace)
}

/// Makes spans of a journal's records, one after the other.
#[derive(Clone, Debug)]
pub struct Tracer {
    state: LoopState,
    /// Its own, which its spans are named by, in any trace.
    own: TraceId,
    /// When it was started or resumed last, and the span of that run.
    since: Option<(Timestamp, SpanId)>,
    iteration: Option<(u32, Timestamp, SpanId)>,
    gate: Option<(String, Timestamp, u32)>,
    /// Since when a reviewer or a critic is at it.
    judge: Option<Timestamp>,
}

impl SpanBuilder for Tracer {
    type Event = Event;

    fn begin(record: &Record) -> Result<Self, Damage> {
        let state = LoopState::begin(record)?;
        let own = TraceId::of(&state.spec.id, state.started_at);
        let since = Some((record.at, own.span("run 1")));
        Ok(Self { state, own, since, iteration: None, gate: None, judge: None })
    }

    fn own(&self) -> TraceId {
        self.own
    }

    fn see(&mut self, record: &Record) -> Result<Vec<Span>, Damage> {
        let (attempts, judged) = (self.state.attempts.len(), self.state.judged.len());
        let (heard_last, judging) =
            (self.state.updated_at, self.judge.and_then(|_| self.state.runs().cloned()));
        self.state.apply(record)?;
        let mut spans = Vec::new();
        if let Some(attempt) = self.state.attempts.get(attempts) {
            spans.push(self.worker(attempt));
        }
        if let (Some(spent), Some(agent)) = (self.state.judged.get(judged), judging) {
            let over = if let Event::RunnerStarted { .. } = record.event { heard_last } else { record.at };
            spans.push(self.judge(&agent, report_of(&record.event), spent.usage, over));
        }
        if let Event::LoopResumed { .. } = record.event {
            self.since = Some((record.at, self.own.span(&format!("run {}", record.seq))));
        } else if let Event::IterationBegun { iteration, .. } = record.event {
            spans.extend(self.end_iteration(record.at));
            self.begin_iteration(iteration, record.at);
        } else if let Event::AttemptStarted(id) = record.event
            && self.iteration.is_none()
        {
            // One that continues after a pause.
            self.begin_iteration(id.iteration, record.at);
        } else if let Event::GateStarted { gate, run } = &record.event {
            self.gate = Some((gate.to_string(), record.at, *run));
            self.judge = Some(record.at);
        } else if let Event::CritiqueStarted { .. } = record.event {
            self.judge = Some(record.at);
        } else if let Event::GateFinished(finished) = &record.event {
            let passed = match &finished.review {
                Some(reviewed) => reviewed.verdict == Verdict::Pass,
                None => finished.is_pass(),
            };
            spans.extend(self.end_gate(record.at, passed, &finished.preview));
        } else if let Event::GateSpawnFailed { error } = &record.event {
            spans.extend(self.end_gate(record.at, false, error));
        } else if let Event::LoopEnded(_) = record.event {
            spans.extend(self.end_iteration(record.at));
            spans.extend(self.end_run(record.at));
        }
        if !self.state.is_busy() {
            (self.gate, self.judge) = (None, None);
        }
        Ok(spans)
    }
}

impl Tracer {
    fn parent(&self) -> Option<SpanId> {
        self.iteration.map(|(_, _, id)| id).or(self.since.map(|(_, id)| id))
    }

    fn begin_iteration(&mut self, iteration: u32, at: Timestamp) {
        let run = self.since.map(|(_, id)| id.to_string()).unwrap_or_default();
        self.iteration = Some((iteration, at, self.own.span(&format!("iteration {iteration} of {run}"))));
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
        let name = format!("iteration {iteration}");
        Some(Span { parent, ..self.span(Kind::Iteration, id, name, (start, at), attributes) })
    }

    fn gate_span(&self) -> Option<SpanId> {
        let (name, start, run) = self.gate.as_ref()?;
        let of = self.iteration.map_or(0, |(iteration, ..)| iteration);
        Some(self.own.span(&format!("gate {name} {run} behind {of} at {}", start.as_nanosecond())))
    }

    fn end_gate(&mut self, at: Timestamp, passed: bool, said: &str) -> Option<Span> {
        let id = self.gate_span()?;
        let (name, start, run) = self.gate.take()?;
        let attributes = vec![
            ("refrain.gate.name", Value::Text(name.clone())),
            ("refrain.gate.passed", Value::Flag(passed)),
            ("refrain.gate.run", Value::Count(run.into())),
        ];
        let error = (!passed).then(|| said.to_owned());
        Some(Span { error, ..self.span(Kind::Gate, id, format!("gate {name}"), (start, at), attributes) })
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
        attributes.extend(money(self.state.spent));
        let is_well = matches!(status, StatusWord::Completed | StatusWord::Cancelled | StatusWord::Paused);
        let error = (!is_well).then(|| status.as_str().to_owned());
        let parent = self.state.spec.trace.map(|parent| parent.span);
        Some(Span { parent, error, ..self.span(Kind::Loop, id, "loop".to_owned(), (start, at), attributes) })
    }

    fn worker(&self, attempt: &Attempt) -> Span {
        let report = attempt.finished.as_ref().and_then(|finished| finished.report.as_deref());
        let outcome = word(attempt.outcome);
        let is_well = matches!(attempt.outcome, Outcome::Claimed | Outcome::Ended);
        let mut attributes = agent_attributes(&self.state.spec.agent, report, attempt.usage);
        attributes.push(("refrain.agent.role", Value::Text("worker".to_owned())));
        attributes.push(("refrain.attempt", Value::Text(attempt.id.to_string())));
        attributes.push(("refrain.outcome", Value::Text(outcome.clone())));
        let id = self.own.span(&format!("attempt {}", attempt.id));
        let times = (attempt.started_at, attempt.ended_at);
        self.agent(id, &self.state.spec.agent, times, attributes, (!is_well).then_some(outcome))
    }

    /// A reviewer, which is a part of its gate, or a critic.
    fn judge(&self, agent: &AgentSpec, report: Option<&AgentReport>, usage: Usage, over: Timestamp) -> Span {
        let gate = self.gate_span();
        let role = if gate.is_some() { "reviewer" } else { "critic" };
        let start = self.judge.unwrap_or(over);
        let mut attributes = agent_attributes(agent, report, usage);
        attributes.push(("refrain.agent.role", Value::Text(role.to_owned())));
        let fault = report.and_then(|report| report.fault.as_ref()).map(|fault| word(fault.kind));
        let id = self.own.span(&format!("{role} at {}", start.as_nanosecond()));
        let span = self.agent(id, agent, (start, over), attributes, fault);
        Span { parent: gate.or(span.parent), ..span }
    }

    fn agent(
        &self,
        id: SpanId,
        agent: &AgentSpec,
        times: (Timestamp, Timestamp),
        mut attributes: Vec<Attribute>,
        error: Option<String>,
    ) -> Span {
        attributes.extend(error.clone().map(|error| ("error.type", Value::Text(error))));
        let name = format!("invoke_agent {}", agent.kind);
        Span { error, ..self.span(Kind::Agent, id, name, times, attributes) }
    }

    fn span(
        &self,
        kind: Kind,
        id: SpanId,
        name: String,
        (start, end): (Timestamp, Timestamp),
        attributes: Vec<Attribute>,
    ) -> Span {
        let (trace, parent) = (trace_of(&self.state, self.own), self.parent());
        Span { trace, id, parent, name, kind, start, end, attributes, error: None }
    }
}

/// The report of an agent that judged the work.
fn report_of(event: &Event) -> Option<&AgentReport> {
    if let Event::GateFinished(finished) = event {
        finished.review.as_ref()?.report.as_deref()
    } else if let Event::CritiqueFinished(finished) = event {
        finished.report.as_deref()
    } else if let Event::RunnerStarted { judged, .. } = event {
        judged.as_deref()
    } else {
        None
    }
}

/// The attributes of a finished agent, in the words of the GenAI conventions.
fn agent_attributes(spec: &AgentSpec, report: Option<&AgentReport>, usage: Usage) -> Vec<Attribute> {
    let session = report.map(|report| &report.session);
    let tokens = usage.tokens;
    let mut attributes = vec![
        ("gen_ai.operation.name", Value::Text("invoke_agent".to_owned())),
        ("gen_ai.agent.name", Value::Text(spec.kind.to_string())),
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
        ("refrain.pool", report.and_then(|report| report.pool.clone())),
    ];
    attributes.extend(texts.into_iter().filter_map(|(name, text)| Some((name, Value::Text(text?)))));
    let counts = [
        ("gen_ai.usage.input_tokens", tokens.input),
        ("gen_ai.usage.cache_read.input_tokens", tokens.cached_input),
        ("gen_ai.usage.output_tokens", tokens.output),
    ];
    attributes.extend(counts.into_iter().filter_map(|(name, count)| Some((name, Value::Count(count?)))));
    attributes.extend(money(usage));
    attributes
}

/// Spent money and tokens, and whether the numbers are complete.
fn money(usage: Usage) -> impl Iterator<Item = Attribute> {
    let at_least = view::Usage::from(usage).at_least.then_some(("refrain.at_least", Value::Flag(true)));
    let cost = usage.cost.map(|cost| ("refrain.cost_usd", Value::Number(cost.into())));
    cost.into_iter().chain(at_least)
}

fn word(word: impl serde::Serialize) -> String {
    let word = serde_json::to_value(word).ok();
    word.as_ref().and_then(|word| word.as_str()).unwrap_or_default().to_owned()
}
