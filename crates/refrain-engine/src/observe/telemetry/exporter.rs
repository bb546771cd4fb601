//! An observer on a thread of its own in the runner's process: it reads a journal, sends what came to its end when an
//! iteration, or a task, is over, and can change nothing. What a collector does not take for now is kept for the next
//! time, and given up when the loop has stopped; what it refuses for good is given up at once. A span that is sent
//! twice is known by its id; a sum is not, and is given up if it is unknown whether it was taken.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{JoinHandle, spawn};

use jiff::Timestamp;
use refrain_core::event::Event;
use refrain_core::view::trace::{Kind, Resource, Span, SpanBuilder, Tracer, otlp, otlp_metrics};
use refrain_core::{Machine, Record};
use refrain_store::journal::{Journal, Tail};
use tokio::runtime::{Builder, Runtime};

use super::{ExportRefusal, Refusal, Target, Telemetry};
use crate::driver::progress::LiveProgress;
use crate::service::redact::Redactor;

/// How many spans are kept for a collector that takes none; of more, the last. As many are sent at once.
const KEPT: usize = 1000;

/// Exports spans of a locally driven loop or plan.
#[derive(Clone, Debug, Default)]
pub struct Exporter(Arc<Mutex<JournalThread>>);

#[derive(Debug, Default)]
struct JournalThread {
    now: Vec<FollowThread>,
    /// Why something that is over was not exported.
    trouble: Option<String>,
}

/// A thread that follows a journal, and what wakes it.
pub(super) type FollowThread = (JoinHandle<Option<String>>, Arc<LiveProgress>);

impl Exporter {
    pub(super) fn add(&self, following: FollowThread) {
        let mut followed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let JournalThread { now, trouble } = &mut *followed;
        // A plan may have more rounds than there is room for threads that are over.
        let over = now.extract_if(.., |(thread, _)| thread.is_finished());
        *trouble = over.fold(trouble.take(), |trouble, (thread, _)| trouble.or(said(thread)));
        now.push(following);
    }

    /// Nothing is driven any more: waits until all is sent, or given up, and answers with why.
    pub fn finish(self) -> Option<String> {
        let JournalThread { now, trouble } =
            std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let over = |(thread, live_progress): FollowThread| {
            // A loop that was dropped under its runner does not say so.
            live_progress.update(|snapshot| snapshot.over = true);
            thread
        };
        let threads: Vec<_> = now.into_iter().map(over).collect();
        threads.into_iter().fold(trouble, |trouble, thread| trouble.or(said(thread)))
    }
}

/// Why it did not export all. If it panicked, nothing more of it is sent; the loop is unaffected.
fn said(thread: JoinHandle<Option<String>>) -> Option<String> {
    thread.join().unwrap_or(None)
}

/// What a plan's runner needs to export the loops of its tasks, too.
#[derive(Clone, Debug)]
pub(crate) struct TaskExport {
    pub(super) telemetry: Telemetry,
    pub(super) exporter: Exporter,
}

#[derive(Clone, Copy)]
pub(super) enum ExportMode {
    /// What comes after this record, as it comes.
    Behind(u64),
    /// All since it was started, or resumed, when it ends after this record.
    AtTheEnd(u64),
}

pub(super) fn follow<T, S>(
    journal: &Journal<S>,
    live_progress: Arc<LiveProgress>,
    when: ExportMode,
    mut owed: PendingExport,
) -> io::Result<FollowThread>
where
    T: SpanBuilder<Event = S::Event>,
    S: Machine,
    S::Event: Send + 'static,
{
    let (mut tail, woken) = (Tail::of(journal), Arc::clone(&live_progress));
    let thread = spawn(move || {
        let mut tracer: Option<T> = None;
        loop {
            let snapshot = live_progress.snapshot();
            // The runner itself reports what cannot be parsed.
            let records = tail.next(snapshot.journal).unwrap_or_default();
            let mut is_due = snapshot.over;
            for record in &records {
                is_due |= owed.see(&mut tracer, record, when);
            }
            if is_due {
                owed.settle(tracer.as_ref());
            }
            if snapshot.over {
                return owed.trouble.or(owed.lost);
            }
            live_progress.wait_for_records(snapshot, None);
        }
    });
    Ok((thread, woken))
}

/// What is still to be sent to a collector.
pub(super) struct PendingExport {
    telemetry: Telemetry,
    runtime: Runtime,
    redactor: Redactor,
    /// Spans whose journal has not ended yet, if that is waited for.
    held: Vec<Span>,
    traces: Vec<Span>,
    metrics: Vec<Span>,
    since: Option<Timestamp>,
    /// Why the rest was not taken, and is kept.
    trouble: Option<String>,
    lost: Option<String>,
}

impl PendingExport {
    pub(super) fn new(telemetry: Telemetry, redactor: Redactor) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (held, traces, metrics) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Self {
            telemetry,
            runtime,
            redactor,
            held,
            traces,
            metrics,
            since: None,
            trouble: None,
            lost: None,
        })
    }

    /// Takes one more record; returns whether it is time to send.
    fn see<T: SpanBuilder>(
        &mut self,
        tracer: &mut Option<T>,
        record: &Record<T::Event>,
        when: ExportMode,
    ) -> bool {
        let spans = match tracer {
            None => {
                *tracer = T::begin(record).ok();
                Vec::new()
            }
            Some(tracer) => tracer.see(record).unwrap_or_default(),
        };
        // The output of a gate leaves the machine here.
        let clean = |span: Span| Span { error: span.error.map(|it| self.redactor.clean(&it)), ..span };
        let spans: Vec<Span> = spans.into_iter().map(clean).collect();
        let is_whole = spans.iter().any(|span| matches!(span.kind, Kind::Loop | Kind::Plan));
        let is_part = spans.iter().any(|span| matches!(span.kind, Kind::Iteration | Kind::Task));
        match when {
            ExportMode::Behind(past) if record.seq <= past => return false,
            ExportMode::Behind(_) => self.owe(spans),
            ExportMode::AtTheEnd(past) => {
                self.held.extend(spans);
                let held = if is_whole { std::mem::take(&mut self.held) } else { Vec::new() };
                // Of a run that was over before this one, which another process exported.
                if record.seq > past {
                    self.owe(held);
                }
            }
        }
        is_whole || is_part
    }

    fn owe(&mut self, spans: Vec<Span>) {
        let began = spans.iter().map(|span| span.start).min();
        self.since = self.since.or(began);
        if self.telemetry.metrics.is_some() {
            self.metrics.extend(spans.iter().cloned());
        }
        if self.telemetry.traces.is_some() {
            self.traces.extend(spans);
        }
    }

    /// Sends what is owed, as far as it is taken.
    fn settle<T: SpanBuilder>(&mut self, tracer: Option<&T>) {
        let Some(tracer) = tracer else { return };
        let (telemetry, resource) = (&self.telemetry, self.telemetry.resource(tracer.own()));
        let traces = telemetry.traces.as_ref().filter(|_| !self.traces.is_empty());
        let traces = traces.map(|target| send_spans(telemetry, target, &self.traces, &resource));
        let until = self.metrics.iter().map(|span| span.end).max();
        let metrics = telemetry.metrics.as_ref().zip(self.since).and_then(|(target, since)| {
            Some(telemetry.send(target, otlp_metrics(&self.metrics, since, &resource)?))
        });
        if traces.is_none() && metrics.is_none() {
            return;
        }
        let both = async { tokio::join!(maybe(traces), maybe(metrics)) };
        let (traces, metrics) = self.runtime.block_on(both);
        self.trouble = None;
        let (taken, refused) = traces.unwrap_or_default();
        self.traces.drain(..taken);
        if let Some(refused) = refused {
            self.keep(refused, |owed| &mut owed.traces);
        }
        let refused = metrics.and_then(Result::err);
        match refused {
            Some(refused) if refused.how == Refusal::ForNow => self.keep(refused, |owed| &mut owed.metrics),
            given_up => {
                self.lost = self.lost.take().or(given_up.map(|refused| refused.why));
                self.metrics.clear();
                self.since = until.or(self.since);
            }
        }
    }

    /// Keeps what was refused for another time, as far as there is to be one.
    fn keep(&mut self, refused: ExportRefusal, which: fn(&mut Self) -> &mut Vec<Span>) {
        let owed = which(self);
        let too_many = match refused.how {
            Refusal::ForNow | Refusal::Unanswered => owed.len().saturating_sub(KEPT),
            Refusal::TooLarge | Refusal::ForGood => owed.len(),
        };
        owed.drain(..too_many);
        if too_many > 0 {
            self.lost.get_or_insert_with(|| refused.why.clone());
        }
        self.trouble.get_or_insert(refused.why);
    }
}

/// Sends spans, as many at once as are taken; answers how many were, and why the others were not.
async fn send_spans(
    telemetry: &Telemetry,
    target: &Target,
    spans: &[Span],
    resource: &Resource,
) -> (usize, Option<ExportRefusal>) {
    let (mut taken, mut at_once) = (0, KEPT);
    let mut rest = spans;
    while !rest.is_empty() {
        let (next, behind) = rest.split_at(rest.len().min(at_once));
        match telemetry.send(target, otlp(next, resource)).await {
            Ok(()) => (taken, rest) = (taken + next.len(), behind),
            Err(refused) if refused.how == Refusal::TooLarge && next.len() > 1 => at_once = next.len() / 2,
            Err(refused) => return (taken, Some(refused)),
        }
    }
    (taken, None)
}

async fn maybe<T>(work: Option<impl Future<Output = T>>) -> Option<T> {
    match work {
        Some(work) => Some(work.await),
        None => None,
    }
}

impl PendingExport {
    /// Exports all of a loop's last run, which has ended: what was not exported while it ran.
    pub(super) fn tell_all(mut self, records: &[Record]) -> Option<String> {
        let ends = |record: &&Record| matches!(record.event, Event::LoopEnded(_));
        let last = records.iter().rev().find(ends).map_or(0, |record| record.seq);
        let mut tracer: Option<Tracer> = None;
        for record in records {
            self.see(&mut tracer, record, ExportMode::AtTheEnd(last.saturating_sub(1)));
        }
        self.settle(tracer.as_ref());
        self.trouble.or(self.lost)
    }
}
