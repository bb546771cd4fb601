//! The queries before the core decides: whether the account waits, and how much money there is.

use jiff::Timestamp;
use refrain_core::r#loop::Phase;
use refrain_core::{ChildId, Live, Step, next_step};

use super::Drive;
use crate::EngineError;
use crate::driver::budget::BudgetReservation;

impl Drive<'_> {
    /// The next step. Whether the account waits is asked only if an attempt would start: the asking loop may become the
    /// one that tries first.
    pub(super) async fn decide(&mut self, now: Timestamp) -> Result<Step, EngineError> {
        if let Some(cost) =
            self.reservation.as_ref().and_then(|reservation| reservation.due(self.driver.journal.state()))
        {
            self.with_purse(move |reservation| reservation.settle(cost)).await;
        }
        let mut live = self.live(now);
        let mut step = next_step(self.driver.journal.state(), &live, now);
        // A wait for the account may be over earlier than announced.
        if let (Step::Await { .. }, Some(account)) = (step, &self.account) {
            let state = self.driver.journal.state();
            let is_waiting = state.wait.is_some() && matches!(state.phase, Phase::Begun { .. });
            live.is_account_open = is_waiting && account.is_open();
            step = next_step(state, &live, now);
        }
        let account = if let Step::Start(ChildId::Attempt(_)) = step { self.account.take() } else { None };
        if let Some(mut account) = account {
            let (account, wait) = self
                .driver
                .blocking(move || {
                    let wait = account.wait(now);
                    (account, wait)
                })
                .await;
            self.account = Some(account);
            (live.account, live.is_account_open) = (wait, live.is_account_open && wait.is_none());
            step = next_step(self.driver.journal.state(), &live, now);
        }
        let state = self.driver.journal.state();
        let question = match (state.costs_of(&step), &mut self.reservation) {
            (Some(agent), Some(reservation)) => reservation.question(state, (&step, agent), now)?,
            _ => None,
        };
        let Some(question) = question else { return Ok(step) };
        if let Some(allowance) = self.with_purse(move |reservation| reservation.ask(question)).await {
            live.allowance = allowance?;
        }
        Ok(next_step(self.driver.journal.state(), &live, now))
    }

    pub(super) async fn with_purse<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut BudgetReservation) -> T + Send + 'static,
    ) -> Option<T> {
        let mut reservation = self.reservation.take()?;
        let (reservation, result) = self
            .driver
            .blocking(move || {
                let result = work(&mut reservation);
                (reservation, result)
            })
            .await;
        self.reservation = Some(reservation);
        Some(result)
    }

    fn live(&self, now: Timestamp) -> Live {
        let Some(flight) = &self.flight else { return Live::default() };
        let started = now.checked_sub(flight.meter.age()).ok();
        let last_output = flight.meter.last_output().and_then(|ago| now.checked_sub(ago).ok());
        let allowance = self.reservation.as_ref().and_then(BudgetReservation::allowance);
        Live {
            started,
            last_output,
            output_lost: flight.output_lost,
            used: flight.used,
            retrying: flight.retrying,
            allowance,
            ..Live::default()
        }
    }
}
