//! What can be done with one loop, or plan, that is named by its project and its id: what the command line does, and no more.

use refrain_app::verbs::approve::{Approve, approve_detached};
use refrain_app::verbs::archive::archive;
use refrain_app::verbs::cancel::cancel;
use refrain_app::verbs::pause::pause;
use refrain_app::verbs::resume::{Resume, resume_detached};
use refrain_app::verbs::steer::{Steering, steer};
use refrain_app::verbs::tune::{Tune, tune};
use refrain_app::verbs::{Outcome, Standing, Urgent, check_runner};
use refrain_core::{LoopId, Refusal as Refused};
use refrain_engine::{EngineError, LoopRequest, Service};

use super::{Desk, Place, Refusal};

impl Desk {
    /// How it stands.
    pub(crate) fn standing(&self, place: &Place) -> Result<Standing, Refusal> {
        let (service, id) = self.open_place(place)?;
        standing(&service, &id)
    }

    /// Asks it to stop for now.
    pub(crate) fn pause(&self, place: &Place, how: Urgent) -> Result<Standing, Refusal> {
        let (service, id) = self.open_place(place)?;
        check_runner(&service, &id)?;
        pause(&self.context, &service, &id, how, &mut |_, _| {})?;
        standing(&service, &id)
    }

    /// Asks it to stop for good.
    pub(crate) fn cancel(&self, place: &Place, how: Urgent) -> Result<Standing, Refusal> {
        let (service, id) = self.open_place(place)?;
        check_runner(&service, &id)?;
        match cancel(&self.context, &service, &id, how, &mut |_, _| {})? {
            Outcome::Loop(_) | Outcome::Plan(_) => standing(&service, &id),
            Outcome::Over(word) => Err(is_over(&id, word)),
        }
    }

    /// Has its agent told something with its next iteration.
    pub(crate) fn say(&self, place: &Place, asked: Steering) -> Result<Standing, Refusal> {
        asked.check()?;
        let (service, id) = self.open_place(place)?;
        check_runner(&service, &id)?;
        steer(&self.context, &service, &id, &asked, &mut |_, _| {})?;
        standing(&service, &id)
    }

    /// Lets it go on, with a runner of its own.
    pub(crate) fn resume(&self, place: &Place, asked: &Resume) -> Result<Standing, Refusal> {
        let (service, id) = self.open_place(place)?;
        let grant = (&asked.grant()?, asked.now);
        if asked.now {
            check_runner(&service, &id)?;
        }
        let _handover = self.handovers.begin();
        resume_detached(&self.context, &service, &id, grant, &mut |_, _| {})?;
        standing(&service, &id)
    }

    /// Says that what it waits with is good, and lets it finish, with a runner of its own.
    pub(crate) fn approve(&self, place: &Place, asked: &Approve) -> Result<Standing, Refusal> {
        let (service, id) = self.open_place(place)?;
        let _handover = self.handovers.begin();
        approve_detached(&self.context, &service, &id, asked)?;
        standing(&service, &id)
    }

    /// Puts a loop that has stopped aside.
    pub(crate) fn archive(&self, place: &Place) -> Result<Standing, Refusal> {
        let (service, id) = self.open_place(place)?;
        archive(&self.context, &service, &id)?;
        standing(&service, &id)
    }

    /// Says how a task goes on that waits for that.
    pub(crate) fn tune(&self, place: &Place, asked: &Tune) -> Result<Standing, Refusal> {
        asked.check()?;
        let (service, id) = self.open_place(place)?;
        service.plan_status(&id)?;
        tune(&self.context, &service, &id, asked)?;
        standing(&service, &id)
    }
}

/// What a request to end a loop is told that has ended.
fn is_over(id: &LoopId, word: &'static str) -> Refusal {
    let (id, what) = (id.clone(), LoopRequest::Cancel);
    EngineError::Refused { id, what, why: Refused::Final(word) }.into()
}

pub(super) fn standing(service: &Service, id: &LoopId) -> Result<Standing, Refusal> {
    Ok(Standing::of(service, id)?)
}
