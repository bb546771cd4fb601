//! What the runner of a plan hears: every source of news becomes one [`Input`] in one select, and one handler turns it into
//! events.

use std::time::Duration;

use jiff::Timestamp;
use refrain_core::event::{Ask, Urgency};
use refrain_core::plan::{PlanEvent, TaskEnded};
use refrain_store::inbox;
use tokio::time::{Instant, sleep_until};

use super::PlanDrive;
use crate::dispatcher::blocking;
use crate::plan::work::{done, outcome};
use crate::runner::note;
use crate::signals::Wish;
use crate::{EngineError, now};

/// How often the task file is looked at while nothing happens.
const LOOK: Duration = Duration::from_secs(2);

/// What can happen to a plan's runner.
enum Input {
    /// A loop of a task has stopped.
    Round(Box<TaskEnded>),
    /// Git, or the verification, is done; or it was ended before its time.
    Work(Option<Box<PlanEvent>>),
    /// Somebody put a request into the inbox.
    Bell,
    /// A signal came.
    Signal(Wish),
    /// The time that was awaited has come, or the task file is to be looked at.
    Time,
}

impl PlanDrive {
    /// Makes everything so far durable, waits for one input, and handles it.
    pub(super) async fn take(&mut self, until: Option<Timestamp>) -> Result<(), EngineError> {
        self.commit().await?;
        let left = until.map(|until| Duration::try_from(until.duration_since(now())).unwrap_or_default());
        let timer = Instant::now() + left.unwrap_or(LOOK).min(LOOK);
        let mut rung = [0; 64];
        let input = tokio::select! {
            Some(over) = self.hosted.join_next() => Input::Round(Box::new(outcome(over))),
            _ = self.doorbell.readable() => {
                let _ = self.doorbell.try_read(&mut rung);
                Input::Bell
            }
            wish = self.signals.next() => Input::Signal(wish),
            event = done(&mut self.work) => Input::Work(event.map(Box::new)),
            () = sleep_until(timer) => Input::Time,
        };
        self.handle(input).await
    }

    async fn handle(&mut self, input: Input) -> Result<(), EngineError> {
        match input {
            Input::Time => Ok(()),
            Input::Bell => self.answer().await,
            Input::Work(event) => {
                self.work = None;
                let Some(event) = event else { return Ok(()) };
                let landed =
                    if let PlanEvent::BatchLanded { commits, .. } = &*event { commits.len() } else { 0 };
                let batch = self.journal.state().batch.iter().flat_map(|batch| &batch.merged);
                let landed: Vec<_> = batch.take(landed).map(|one| one.task.clone()).collect();
                self.tidy(&landed);
                self.record(*event)
            }
            Input::Round(ended) => {
                let state = self.journal.state();
                let of = state.running().find(|(place, _)| state.tasks[*place].card.id == ended.task);
                if let Some(id) = of.map(|(_, running)| running.id.clone()) {
                    let (host, dir) = (self.host.clone(), self.landing.loop_dir(&id));
                    self.tidying.spawn_blocking(move || drop(note(&host, &dir)));
                    self.driven.remove(&id);
                }
                self.record(PlanEvent::TaskEnded(ended))
            }
            Input::Signal(wish) => {
                let again = self.journal.state().pause.is_some();
                let urgency = match wish {
                    Wish::Interrupt if !again => Urgency::AfterIteration,
                    Wish::Interrupt => Urgency::Now,
                    Wish::Pause(urgency) => urgency,
                };
                self.record(PlanEvent::Asked { request: None, ask: Ask::Pause(urgency) })
            }
        }
    }

    /// Turns what waits in the inbox into events, each once; only then the requests are gone.
    pub(super) async fn answer(&mut self) -> Result<(), EngineError> {
        let dir = self.journal.dir().clone();
        let waiting = blocking(move || inbox::waiting(&dir)).await?;
        for (request, _) in &waiting {
            let state = self.journal.state();
            if !state.has_answered(&request.id) && state.admits(&request.ask).is_ok() {
                self.record(PlanEvent::Asked {
                    request: Some(request.id.clone()),
                    ask: request.ask.clone(),
                })?;
            }
        }
        self.commit().await?;
        blocking(move || waiting.iter().for_each(|(_, path)| inbox::remove(path))).await;
        Ok(())
    }
}
