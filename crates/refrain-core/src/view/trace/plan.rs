//! The spans of a plan: the plan itself, from each start or resumption to its stop, and the rounds of its tasks. The
//! spans within a round are made by its loop, in the same trace.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{Kind, Parent, Span, SpanBuilder, SpanId, TraceId, Value};
use crate::Record;
use crate::machine::{Damage, Machine};
use crate::plan::{PlanEvent, PlanSpec, PlanState, Stage, TaskEnd, TaskId};
use crate::view::StatusWord;

/// The parent span of a task's loop, in its `round`-th round, from 1, if the plan was started then.
pub fn of_task(plan: &PlanSpec, started_at: Timestamp, task: &TaskId, round: u32) -> Parent {
    let own = TraceId::of(&plan.id, started_at);
    Parent { trace: trace_of(plan, own), span: round_span(own, task, round) }
}

fn round_span(own: TraceId, task: &TaskId, round: u32) -> SpanId {
    own.span(&format!("round {round} of task {task}"))
}

fn trace_of(plan: &PlanSpec, own: TraceId) -> TraceId {
    plan.each.trace.map_or(own, |parent| parent.trace)
}

/// Makes spans of the records of a plan's journal, one after the other.
#[derive(Clone, Debug)]
pub struct PlanTracer {
    state: PlanState,
    own: TraceId,
    /// When it was started or resumed last, and the span of that run.
    since: Option<(Timestamp, SpanId)>,
    /// Rounds that are not over: since when, and in which run they began.
    rounds: BTreeMap<TaskId, (u32, Timestamp, Option<SpanId>)>,
}

impl SpanBuilder for PlanTracer {
    type Event = PlanEvent;

    fn begin(record: &Record<PlanEvent>) -> Result<Self, Damage> {
        let state = PlanState::begin(record)?;
        let own = TraceId::of(&state.spec.id, state.started_at);
        let since = Some((record.at, own.span("run 1")));
        Ok(Self { state, own, since, rounds: BTreeMap::new() })
    }

    fn own(&self) -> TraceId {
        self.own
    }

    fn see(&mut self, record: &Record<PlanEvent>) -> Result<Vec<Span>, Damage> {
        self.state.apply(record)?;
        let mut spans = Vec::new();
        if let PlanEvent::Resumed { .. } = record.event {
            self.since = Some((record.at, self.own.span(&format!("run {}", record.seq))));
        } else if let PlanEvent::TaskStarted(started) = &record.event {
            let run = self.since.map(|(_, id)| id);
            self.rounds.insert(started.task.clone(), (started.round, record.at, run));
        } else if let PlanEvent::TaskEnded(ended) = &record.event {
            // A task that only rests continues later.
            if !self.is_running(&ended.task) {
                spans.extend(self.end_round(&ended.task, Some(&ended.end), record.at));
            }
        } else if let PlanEvent::Ended(_) = record.event {
            if self.state.is_final() {
                let left: Vec<_> = self.rounds.keys().cloned().collect();
                spans.extend(left.iter().filter_map(|task| self.end_round(task, None, record.at)));
            }
            spans.extend(self.end_run(record.at));
        }
        Ok(spans)
    }
}

impl PlanTracer {
    fn is_running(&self, task: &TaskId) -> bool {
        self.state.task(task).is_some_and(|task| matches!(task.stage, Stage::Running(_)))
    }

    fn end_round(&mut self, task: &TaskId, end: Option<&TaskEnd>, at: Timestamp) -> Option<Span> {
        let (round, start, parent) = self.rounds.remove(task)?;
        let (outcome, is_well) = match end {
            Some(TaskEnd::Proven { .. }) => ("proven", true),
            Some(TaskEnd::Stopped(_)) => ("stopped", false),
            Some(TaskEnd::OutOfMoney) => ("out-of-money", false),
            Some(TaskEnd::CapReached { .. }) => ("cap-reached", false),
            Some(TaskEnd::Hindered { .. }) => ("hindered", false),
            Some(TaskEnd::Rests) | None => ("left", true),
        };
        let plan = &self.state.spec;
        let mut attributes = vec![
            ("refrain.plan.id", Value::Text(plan.id.to_string())),
            ("refrain.task.id", Value::Text(task.to_string())),
            ("refrain.task.round", Value::Count(round.into())),
            ("refrain.task.outcome", Value::Text(outcome.to_owned())),
            ("refrain.loop.id", Value::Text(plan.loop_of(task, round).to_string())),
        ];
        let wave = self.state.graph.index(task).and_then(|task| self.state.wave_number(task));
        attributes.extend(wave.map(|wave| ("refrain.plan.wave", Value::Count(wave.into()))));
        Some(Span {
            parent,
            error: (!is_well).then(|| outcome.to_owned()),
            ..self.span(
                Kind::Task,
                round_span(self.own, task, round),
                format!("task {task}"),
                (start, at),
                attributes,
            )
        })
    }

    fn end_run(&mut self, at: Timestamp) -> Option<Span> {
        let (start, id) = self.since.take()?;
        let status = StatusWord::from(self.state.ended?.end);
        let mut attributes = vec![
            ("refrain.plan.id", Value::Text(self.state.spec.id.to_string())),
            ("refrain.plan.status", Value::Text(status.as_str().to_owned())),
            ("refrain.plan.tasks", Value::Count(self.state.tasks.len() as u64)),
            ("refrain.plan.waves", Value::Count(self.state.waves.len() as u64)),
            ("refrain.iterations", Value::Count(self.state.used.into())),
        ];
        attributes.extend(self.state.spent.map(|cost| ("refrain.cost_usd", Value::Number(cost.into()))));
        let at_least = self.state.spent_at_least && self.state.spent.is_some();
        attributes.extend(at_least.then_some(("refrain.at_least", Value::Flag(true))));
        let is_well = matches!(status, StatusWord::Completed | StatusWord::Cancelled | StatusWord::Paused);
        let parent = self.state.spec.each.trace.map(|parent| parent.span);
        let error = (!is_well).then(|| status.as_str().to_owned());
        Some(Span { parent, error, ..self.span(Kind::Plan, id, "plan".to_owned(), (start, at), attributes) })
    }

    fn span(
        &self,
        kind: Kind,
        id: SpanId,
        name: String,
        (start, end): (Timestamp, Timestamp),
        attributes: Vec<super::Attribute>,
    ) -> Span {
        let trace = trace_of(&self.state.spec, self.own);
        Span { trace, id, parent: None, name, kind, start, end, attributes, error: None }
    }
}
