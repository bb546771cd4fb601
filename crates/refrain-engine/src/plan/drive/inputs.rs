//! The inputs of a plan's runner: one handler turns each into events.

use std::time::Duration;

use jiff::Timestamp;
use refrain_core::event::{Ask, Urgency};
use refrain_core::plan::{PlanEvent, PlanState, TaskEnd, TaskEnded};
use refrain_store::project::pool::Slot;

use super::PlanDrive;
use crate::driver::drive::note;
use crate::driver::input::Input;
use crate::plan::work::{done, outcome};
use crate::{EngineError, now};

/// How often the task file is checked while nothing happens, if the system has no watch left for it.
const LOOK: Duration = Duration::from_secs(2);

enum News {
    /// A loop of a task has stopped.
    Round(Box<TaskEnded>, Option<Slot>),
    /// Git, or the verification, is done; or it was ended before its time.
    Work(Option<Box<PlanEvent>>),
}

impl PlanDrive<'_> {
    /// Makes everything so far durable, waits for one input, and handles it.
    pub(super) async fn take(&mut self, until: Option<Timestamp>) -> Result<(), EngineError> {
        self.commit().await?;
        let left = until.map(|until| Duration::try_from(until.duration_since(now())).unwrap_or_default());
        let at_most = left.into_iter().chain(self.driver.has_no_watch().then_some(LOOK)).min();
        let Self { driver, hosted, work, .. } = self;
        let own = async {
            tokio::select! {
                Some(over) = hosted.join_next() => {
                    let (ended, slot) = outcome(over);
                    News::Round(Box::new(ended), slot)
                }
                event = done(work) => News::Work(event.map(Box::new)),
            }
        };
        match driver.next(own, at_most).await {
            Input::Time => Ok(()),
            Input::Files => self.keep_files().await,
            Input::Bell => self.answer().await,
            Input::Own(news) => self.hear(news),
            Input::Signal(wish) => {
                let (ask, is_new) = self.driver.asked_by(wish);
                if self.driver.journal.state().is_told_again(&self.live(), &ask) {
                    return self.tell_again().await;
                }
                self.is_news |= is_new;
                // If that is nothing new, there is nothing to record.
                if is_new { self.driver.record_signal(ask) } else { Ok(()) }
            }
        }
    }

    fn hear(&mut self, news: News) -> Result<(), EngineError> {
        match news {
            News::Work(event) => {
                self.work = None;
                let Some(event) = event else { return Ok(()) };
                let landed =
                    if let PlanEvent::BatchLanded { commits, .. } = &*event { commits.len() } else { 0 };
                let batch = self.driver.journal.state().batch.iter().flat_map(|batch| &batch.merged);
                let landed: Vec<_> = batch.take(landed).map(|one| one.task.clone()).collect();
                self.tidy(&landed);
                self.record(*event)
            }
            News::Round(ended, slot) => {
                let state = self.driver.journal.state();
                let of = state.running().find(|(place, _)| state.tasks[*place].card.id == ended.task);
                if let Some(id) = of.map(|(_, running)| running.id.clone()) {
                    let (host, dir) = (self.driver.host.clone(), self.landing.loop_dir(&id));
                    self.tidying.spawn_blocking(move || drop(note(&host, &dir)));
                    self.driven.remove(&id);
                    let is_over = matches!(ended.end, TaskEnd::Proven { .. } | TaskEnd::Stopped(_));
                    // A loop that continues later finds its worktree as it is.
                    self.slots.extend(slot.filter(|_| !is_over).map(|slot| (id, slot)));
                }
                self.record(PlanEvent::TaskEnded(ended))
            }
        }
    }

    /// Asks the loops again to stop at once: each kills what it is stopping.
    async fn tell_again(&mut self) -> Result<(), EngineError> {
        let for_good = self.driver.journal.state().cancel.is_some();
        self.quieten(Urgency::Now, for_good).await
    }

    /// Checks the plan's own files, and the task file.
    async fn keep_files(&mut self) -> Result<(), EngineError> {
        let tasks = self.driver.journal.state().spec.tasks.clone();
        self.driver.keep_files(None, &[&tasks], true).await
    }

    /// Turns what waits in the inbox into events.
    pub(super) async fn answer(&mut self) -> Result<(), EngineError> {
        let (live, mut is_told_again) = (self.live(), false);
        let heard = |state: &PlanState, ask: &Ask| is_told_again |= state.is_told_again(&live, ask);
        self.driver.answer(heard).await?;
        self.is_news = true;
        if is_told_again { self.tell_again().await } else { Ok(()) }
    }
}
