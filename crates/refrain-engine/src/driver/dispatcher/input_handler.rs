//! The one handler: every input becomes events, or is kept in mind for the next step.

use std::sync::Arc;

use refrain_core::LoopState;
use refrain_core::event::{Ask, Event};
use refrain_core::r#loop::ProviderRetry;
use refrain_store::journal::Durability;

use super::{Drive, News};
use crate::child::{ChildEvent, checkout_dir};
use crate::driver::input::Input;
use crate::driver::signals::SignalRequest;
use crate::git_steps::repository::GitStepResult;
use crate::{EngineError, now};

impl Drive<'_> {
    pub(super) async fn handle(
        &mut self,
        input: Input<Result<News, EngineError>>,
    ) -> Result<(), EngineError> {
        match input {
            Input::Time => Ok(()),
            Input::Files => self.keep_files().await,
            Input::Own(news) => match news? {
                News::Agent(news) => self.hear(news).await,
                News::Drain => Ok(()),
                News::Repository(done) => {
                    self.work = None;
                    match done {
                        GitStepResult::Recorded(event) => self.driver.journal.push(event, now())?,
                        GitStepResult::Ready(step, ready) => self.ready = Some((step, ready)),
                    }
                    Ok(())
                }
            },
            Input::Bell => self.answer().await,
            Input::Signal(wish) => self.signal(wish),
        }
    }

    /// If the loop has ended meanwhile, or the signal adds nothing, there is nothing to record.
    pub(super) fn signal(&mut self, wish: SignalRequest) -> Result<(), EngineError> {
        let (ask, is_new) = self.driver.asked_by(wish);
        let kills = self.driver.journal.state().kills_at_once(&ask);
        if kills {
            self.supervisor.kill();
        }
        if is_new || kills { self.driver.record_signal(ask) } else { Ok(()) }
    }

    /// Turns what waits in the inbox into events.
    pub(super) async fn answer(&mut self) -> Result<(), EngineError> {
        let Self { driver, supervisor, .. } = self;
        let kill = |state: &LoopState, ask: &Ask| {
            if state.kills_at_once(ask) {
                supervisor.kill();
            }
        };
        driver.answer(kill).await?;
        self.keep_worktree().await
    }

    async fn hear(&mut self, event: ChildEvent) -> Result<(), EngineError> {
        match event {
            // Only an attempt's number is of use: all other processes are found by the loop's mark.
            ChildEvent::Started(_) if self.driver.journal.state().in_flight().is_none() => Ok(()),
            ChildEvent::Started(process) => {
                self.driver.journal.push(Event::AttemptSpawned { process }, now())?;
                self.commit(Durability::Written).await
            }
            ChildEvent::NotStarted(error) => self.spawn_failed(error),
            ChildEvent::Used(used) => {
                self.flight.iter_mut().for_each(|flight| flight.used = used);
                let cost = self.driver.journal.state().cost_so_far(&used);
                if self.reservation.as_ref().is_some_and(|reservation| reservation.is_tight(cost)) {
                    self.with_purse(move |reservation| reservation.grow(cost)).await;
                }
                Ok(())
            }
            ChildEvent::Retrying(retrying) => {
                let since = now();
                let retrying = retrying.map(|(kind, until)| ProviderRetry { kind, until, since });
                self.flight.iter_mut().for_each(|flight| flight.retrying = retrying);
                Ok(())
            }
            ChildEvent::Answered => {
                if let Some(account) = &mut self.account {
                    account.answered();
                }
                Ok(())
            }
            ChildEvent::Finished(mut event) => {
                self.flight = None;
                if let Event::AttemptFinished(finished) = &mut *event {
                    (finished.work, finished.git_changed) = self.look_at_work().await?;
                    self.attempt_work.clone_from(&finished.work);
                }
                let is_attempt = matches!(*event, Event::AttemptFinished(_));
                if let Event::GateFinished(finished) = &*event {
                    let is_left = finished.left;
                    self.keep_checkout(is_left).await;
                }
                self.driver.journal.push(*event, now())?;
                if let Some(account) = self.account.as_mut().filter(|_| is_attempt) {
                    account.learn(self.driver.journal.state());
                }
                Ok(())
            }
            ChildEvent::Swept { killed, survivors, names } => {
                self.keep_checkout(false).await;
                Ok(self.driver.journal.push(Event::AttemptSwept { killed, survivors, names }, now())?)
            }
            ChildEvent::OutputLost => {
                self.flight.iter_mut().for_each(|flight| flight.output_lost = true);
                Ok(())
            }
        }
    }

    /// Keeps the files of the ended gate for the next one. With `is_left` something of it still runs.
    async fn keep_checkout(&mut self, is_left: bool) {
        if self.driver.journal.state().spec.clean_checkout {
            let ground = Arc::clone(&self.ground);
            self.driver.blocking(move || checkout_dir::keep(&ground, is_left)).await;
        }
    }
}
