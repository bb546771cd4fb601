//! Requests to a plan without a runner, and to the loops of one that is driven.

use refrain_agents::environment;
use refrain_core::LoopState;
use refrain_core::event::{Ask, Asker, Urgency};
use refrain_core::plan::{PlanEnd, PlanEvent, PlanState};
use refrain_store::{Journal, LoopDir, Request, journal};

use super::landing::Landing;
use super::statuses::Statuses;
use crate::service::requests::{Unattended, request};
use crate::{EngineError, Host, LoopRequest, Service, now};

impl Unattended for PlanState {
    type Actor = Service;

    fn actor(service: &Service) -> &Service {
        service
    }

    fn host(service: &Service) -> &Host {
        &service.host
    }

    fn answer(
        service: &Service,
        journal: &mut Journal<Self>,
        requests: &[&Request],
    ) -> Result<(), EngineError> {
        Statuses::around(service, journal, |journal| {
            for request in requests {
                if !journal.state().is_new(request) {
                    continue;
                }
                Self::record(journal, request)?;
                let end = match request.ask {
                    Ask::Cancel(_) => PlanEnd::Cancelled,
                    Ask::Pause(_) | Ask::Steer(_) | Ask::Proceed | Ask::AllowHost(_) | Ask::Withdraw(_) => {
                        PlanEnd::Paused
                    }
                };
                // One that stopped before stays as it is, unless it is to stop for good.
                if end == PlanEnd::Cancelled || journal.state().ended.is_none() {
                    journal.push(PlanEvent::Ended(end), now())?;
                }
            }
            Ok(())
        })
    }

    fn settle(service: &Service, state: &Self, _: &LoopDir) -> Result<(), EngineError> {
        let env = environment::of_git(&state.spec.each, service.host.env.iter().cloned());
        match state.is_final() {
            true => service.put_away(state, &Landing::new(service, state, &service.host, env)),
            false => Ok(()),
        }
    }
}

impl Service {
    /// Cleans up after a plan whose end is recorded: its loops are over, too, and git keeps nothing for it.
    pub(super) fn put_away(&self, state: &PlanState, landing: &Landing) -> Result<(), EngineError> {
        let cancelled = self.cancel_tasks(state);
        landing.clear(state);
        cancelled
    }

    /// Cancels the loops of a plan without a runner.
    fn cancel_tasks(&self, state: &PlanState) -> Result<(), EngineError> {
        for (_, running) in state.running() {
            let is_over = |state: &LoopState| state.is_final();
            match self.locate(&running.id) {
                // It was never started.
                Err(EngineError::NoLoop { .. }) => {}
                Err(error) => return Err(error),
                // Its machine is asked by the program of the fleet.
                Ok(found) if journal::has_left(&found.dir) => {}
                Ok(found) if journal::read(&found.dir).is_ok_and(|read| is_over(&read.state)) => {}
                Ok(found) => {
                    let ask = (Ask::Cancel(Urgency::Now), state.cancelled_by.unwrap_or_default());
                    let what = LoopRequest::Cancel;
                    self.ask_machine::<LoopState>(&found.dir, &running.id, what, ask, |_| {})?;
                }
            }
        }
        Ok(())
    }
}

/// Asks a loop to rest, or to end for good, for this asker, without waiting for its answer.
pub(super) fn tell(
    host: &Host,
    dir: &LoopDir,
    (urgency, for_good, by): (Urgency, bool, Asker),
) -> Result<(), EngineError> {
    let ask = if for_good { Ask::Cancel(urgency) } else { Ask::Pause(urgency) };
    Ok(request(host, dir, (ask, by)).post(dir)?)
}
