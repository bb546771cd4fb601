//! The one handler: every input becomes events, or is kept in mind for the next step.

use std::sync::Arc;

use refrain_core::event::{Ask, Asker, Event, Urgency};
use refrain_core::ids::RequestId;
use refrain_core::r#loop::Retrying;
use refrain_store::journal::Durability;
use refrain_store::project::inbox;

use super::{Drive, Input};
use crate::child::ChildEvent;
use crate::child::proving_ground;
use crate::driver::signals::Wish;
use crate::git_steps::repository::Done;
use crate::{EngineError, now};

impl Drive<'_> {
    pub(super) async fn handle(&mut self, input: Input) -> Result<(), EngineError> {
        match input {
            Input::Time => Ok(()),
            Input::Files => self.keep_files().await,
            Input::Repository(done) => {
                self.work = None;
                match done {
                    Done::Recorded(event) => self.journal.push(event, now())?,
                    Done::Ready(step, ready) => self.ready = Some((step, ready)),
                }
                Ok(())
            }
            Input::Agent(news) => self.hear(news).await,
            Input::Bell => self.answer().await,
            Input::Signal(wish) => {
                let again = self.journal.state().pause.is_some();
                self.pause(match wish {
                    Wish::Interrupt if !again => Urgency::AfterIteration,
                    Wish::Interrupt => Urgency::Now,
                    Wish::Pause(urgency) => urgency,
                })
            }
        }
    }

    /// Where the loop has ended while it was said, or that is nothing new, there is nothing to record.
    fn pause(&mut self, urgency: Urgency) -> Result<(), EngineError> {
        let (state, ask) = (self.journal.state(), Ask::Pause(urgency));
        let is_new = state.pause < Some(urgency) || state.kills_at_once(&ask);
        if is_new && state.admits(&ask).is_ok() {
            self.record_asked(None, ask, Asker::Person)?;
        }
        Ok(())
    }

    fn record_asked(&mut self, request: Option<RequestId>, ask: Ask, by: Asker) -> Result<(), EngineError> {
        let was_killed = self.journal.state().is_killed();
        self.journal.push(Event::Asked { request, ask, by }, now())?;
        if self.journal.state().is_killed() && !was_killed {
            self.crew.kill();
        }
        Ok(())
    }

    async fn hear(&mut self, event: ChildEvent) -> Result<(), EngineError> {
        match event {
            // Only an attempt's number is of use to anybody: all else is found by its mark.
            ChildEvent::Started(_) if self.journal.state().in_flight().is_none() => Ok(()),
            ChildEvent::Started(process) => {
                self.journal.push(Event::AttemptSpawned { process }, now())?;
                self.commit(Durability::Written).await
            }
            ChildEvent::NotStarted(error) => self.spawn_failed(error),
            ChildEvent::Used(used) => {
                self.flight.iter_mut().for_each(|flight| flight.used = used);
                let cost = self.journal.state().cost_so_far(&used);
                if self.purse.as_ref().is_some_and(|purse| purse.is_tight(cost)) {
                    self.with_purse(move |purse| purse.grow(cost)).await;
                }
                Ok(())
            }
            ChildEvent::Retrying(retrying) => {
                let since = now();
                let retrying = retrying.map(|(kind, until)| Retrying { kind, until, since });
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
                    (finished.work, finished.git_changed) = self.look_at_work().await;
                    self.attempt_work.clone_from(&finished.work);
                }
                let is_attempt = matches!(*event, Event::AttemptFinished(_));
                if let Event::GateFinished(finished) = &*event {
                    let is_left = finished.left;
                    self.keep_checkout(is_left).await;
                }
                self.journal.push(*event, now())?;
                if let Some(account) = self.account.as_mut().filter(|_| is_attempt) {
                    account.learn(self.journal.state());
                }
                Ok(())
            }
            ChildEvent::Swept { killed, survivors, names } => {
                self.keep_checkout(false).await;
                Ok(self.journal.push(Event::AttemptSwept { killed, survivors, names }, now())?)
            }
            ChildEvent::OutputLost => {
                self.flight.iter_mut().for_each(|flight| flight.output_lost = true);
                Ok(())
            }
        }
    }

    /// What the gate wrote that ended is kept for the next one. With `is_left` something of it still runs.
    async fn keep_checkout(&mut self, is_left: bool) {
        if self.journal.state().spec.clean_checkout {
            let ground = Arc::clone(&self.ground);
            self.blocking(move || proving_ground::keep(&ground, is_left)).await;
        }
    }

    /// Turns what waits in the inbox into events, each once; only then the requests are gone.
    async fn answer(&mut self) -> Result<(), EngineError> {
        let dir = self.journal.dir().clone();
        let signing = self.host.signing();
        let waiting = self.blocking(move || signing.requests(&dir)).await?;
        for (request, _) in &waiting {
            let state = self.journal.state();
            if !state.has_answered(&request.id) && state.admits(&request.ask).is_ok() {
                self.record_asked(Some(request.id.clone()), request.ask.clone(), request.by)?;
            }
        }
        if self.journal.has_pending() {
            self.commit(Durability::Synced).await?;
        }
        self.blocking(move || waiting.iter().for_each(|(_, path)| inbox::remove(path))).await;
        Ok(())
    }
}
