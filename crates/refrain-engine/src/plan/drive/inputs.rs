//! What the runner of a plan hears: every source of news becomes one [`Input`] in one select, and one handler turns it into
//! events.

use std::time::Duration;

use jiff::Timestamp;
use refrain_core::event::{Ask, Asker, Urgency};
use refrain_core::plan::{PlanEvent, TaskEnded};
use refrain_store::Doorbell;
use refrain_store::project::inbox;
use tokio::time::{Instant, sleep, sleep_until};

use super::PlanDrive;
use crate::blocking::blocking;
use crate::driver::dispatcher::{SETTLE, keep_lock};
use crate::driver::doorbell::install_doorbell;
use crate::driver::drive::note;
use crate::driver::signals::Wish;
use crate::plan::work::{done, outcome};
use crate::{EngineError, now};

/// How often the task file is looked at while nothing happens, if the system has no watch left for it.
const LOOK: Duration = Duration::from_secs(2);

/// The longest that a timer runs: it stands still while the machine sleeps.
const LONGEST: Duration = Duration::from_hours(24);

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
    /// Something happened to the task file, or to the plan's own files.
    Files,
    /// The time that was awaited has come, or the task file is to be looked at.
    Time,
}

impl PlanDrive {
    /// Makes everything so far durable, waits for one input, and handles it.
    pub(super) async fn take(&mut self, until: Option<Timestamp>) -> Result<(), EngineError> {
        self.commit().await?;
        let left = until.map(|until| Duration::try_from(until.duration_since(now())).unwrap_or_default());
        let timer = left.into_iter().chain(self.watch.has_no_watch().then_some(LOOK)).min();
        let timer = timer.map(|left| Instant::now() + left.min(LONGEST));
        let mut rung = [0; 64];
        let input = tokio::select! {
            Some(over) = self.hosted.join_next() => Input::Round(Box::new(outcome(over))),
            _ = self.doorbell.readable() => {
                let _ = self.doorbell.try_read(&mut rung);
                Input::Bell
            }
            wish = self.signals.next() => Input::Signal(wish),
            event = done(&mut self.work) => Input::Work(event.map(Box::new)),
            () = self.watch.changed() => Input::Files,
            () = sleep_until(timer.unwrap_or_else(Instant::now)), if timer.is_some() => Input::Time,
        };
        self.handle(input).await
    }

    async fn handle(&mut self, input: Input) -> Result<(), EngineError> {
        match input {
            Input::Time => Ok(()),
            Input::Files => self.keep_files().await,
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
                let (state, ask) = (self.journal.state(), Ask::Pause(urgency));
                if state.is_told_again(&self.live(), &ask) {
                    return self.tell_again().await;
                }
                // If that is nothing new, there is nothing to record.
                if state.pause >= Some(urgency) || state.admits(&ask).is_err() {
                    return Ok(());
                }
                self.record(PlanEvent::Asked { request: None, ask, by: Asker::Person })
            }
        }
    }

    /// The loops are told again to stop at once: each kills what it is stopping.
    async fn tell_again(&mut self) -> Result<(), EngineError> {
        let for_good = self.journal.state().cancel.is_some();
        self.quieten(Urgency::Now, for_good).await
    }

    /// Looks after the plan's own files: something happened to them, or they are watched from here on, as is the task file.
    async fn keep_files(&mut self) -> Result<(), EngineError> {
        let dir = self.journal.dir().clone();
        if !self.watch.is_armed() {
            let kept = [dir.journal(), dir.runner_lock(), dir.doorbell()];
            self.watch.arm(&kept, &[&self.journal.state().spec.tasks]);
        }
        if !self.journal.is_in_place() || !Doorbell::is_in_place(&dir) {
            sleep(SETTLE).await;
        }
        keep_lock(&self.journal)?;
        if !self.journal.is_in_place() {
            self.write_back().await?;
        }
        if !Doorbell::is_in_place(&dir)
            && let Ok(doorbell) = install_doorbell(&dir)
        {
            self.doorbell = doorbell;
            self.look_again = true;
        }
        Ok(())
    }

    /// Turns what waits in the inbox into events, each once; only then the requests are gone.
    pub(super) async fn answer(&mut self) -> Result<(), EngineError> {
        let dir = self.journal.dir().clone();
        let signing = self.host.signing();
        let waiting = blocking(move || signing.requests(&dir)).await?;
        let mut is_told_again = false;
        for (request, _) in &waiting {
            let state = self.journal.state();
            if !state.has_answered(&request.id) && state.admits(&request.ask).is_ok() {
                is_told_again |= state.is_told_again(&self.live(), &request.ask);
                self.record(PlanEvent::Asked {
                    request: Some(request.id.clone()),
                    ask: request.ask.clone(),
                    by: request.by,
                })?;
            }
        }
        self.commit().await?;
        blocking(move || waiting.iter().for_each(|(_, path)| inbox::remove(path))).await;
        if is_told_again {
            self.tell_again().await?;
        }
        Ok(())
    }
}
