//! Actions on one loop or plan, named by its project and id: the same as on the command line.

mod replies;

use refrain_app::plan::edit_tasks::{AddTask, add_task, edit_task};
use refrain_app::plan::tune::{Tune, tune};
use refrain_app::verbs::answer::answer_detached;
use refrain_app::verbs::approve::{Approve, approve_detached};
use refrain_app::verbs::archive::archive;
use refrain_app::verbs::cancel::cancel;
use refrain_app::verbs::discard::discard;
use refrain_app::verbs::merge::{Merge, merge};
use refrain_app::verbs::pause::pause;
use refrain_app::verbs::resume::{Resume, resume_detached};
use refrain_app::verbs::steer::{Steering, steer};
use refrain_app::verbs::take_back::{TakeBack, take_back};
use refrain_app::verbs::{AnyStatus, Outcome, Slow, Urgent};
use refrain_core::plan::{TaskEdit, TaskId};
use refrain_core::{LoopId, Refusal as Refused};
use refrain_engine::{EngineError, LoopRequest, Service};
use tokio::runtime::Handle;

use super::{
    AnswerResult, DiscardSummary, LoopAddress, LoopParams, MergeSummary, Refusal, RequestHandler, Steer,
    SteerResult, Stop, StopResult, ToolMerge,
};

impl RequestHandler {
    pub(crate) fn standing(&self, place: &LoopAddress) -> Result<AnyStatus, Refusal> {
        let (service, id) = self.open_place(place)?;
        standing(&service, &id)
    }

    pub(crate) fn pause(&self, place: &LoopAddress, how: Urgent) -> Result<AnyStatus, Refusal> {
        let (service, id) = self.open_place(place)?;
        pause(&self.context, &service, &id, how, Slow::Refuse)?;
        standing(&service, &id)
    }

    pub(crate) fn cancel(&self, place: &LoopAddress, how: Urgent) -> Result<AnyStatus, Refusal> {
        let (service, id) = self.open_place(place)?;
        match cancel(&self.context, &service, &id, how, Slow::Refuse)? {
            Outcome::Answered(_) => standing(&service, &id),
            Outcome::Over(word) => Err(is_over(&id, word)),
        }
    }

    /// Cancels a loop or a plan. One that has stopped already stays as it is: that is no error, and a pending
    /// approval or question is kept.
    pub(crate) fn stop(&self, asked: &Stop) -> Result<StopResult, Refusal> {
        let which = LoopParams { loop_id: asked.loop_id.clone(), workspace: asked.workspace.clone() };
        let (service, id) = self.of_loop(&which.loop_id, which.workspace.as_deref())?;
        let before = self.status(&which)?.view;
        if before.has_stopped() {
            return Ok(StopResult { stop_requested: false, loop_id: id, status: before.status });
        }
        let how = Urgent { now: asked.now };
        // A loop that ended meanwhile counts as stopped.
        let outcome = cancel(&self.context, &service, &id, how, Slow::Refuse)?;
        let stop_requested = !matches!(outcome, Outcome::Over(_));
        Ok(StopResult { stop_requested, loop_id: id, status: self.status(&which)?.view.status })
    }

    /// Steers its agent with the next iteration.
    pub(crate) fn say(&self, place: &LoopAddress, asked: &Steering) -> Result<AnyStatus, Refusal> {
        asked.check()?;
        let (service, id) = self.open_place(place)?;
        steer(&self.context, &service, &id, asked, Slow::Refuse)?;
        standing(&service, &id)
    }

    /// Takes back a request that has had no effect yet.
    pub(crate) fn take_back(&self, place: &LoopAddress, asked: &TakeBack) -> Result<AnyStatus, Refusal> {
        let (service, id) = self.open_place(place)?;
        take_back(&self.context, &service, &id, asked, Slow::Refuse)?;
        standing(&service, &id)
    }

    pub(crate) fn steer(&self, asked: &Steer) -> Result<SteerResult, Refusal> {
        let steering = Steering { text: asked.text.clone() };
        steering.check()?;
        let (service, id) = self.of_loop(&asked.loop_id, asked.workspace.as_deref())?;
        steer(&self.context, &service, &id, &steering, Slow::Refuse)?;
        Ok(SteerResult { steered: true, loop_id: id })
    }

    /// Passes an answer to its agent; a loop that has stopped continues with a runner of its own.
    pub(crate) fn answer(&self, place: &LoopAddress, asked: &Steering) -> Result<AnyStatus, Refusal> {
        asked.check()?;
        let (service, id) = self.open_place(place)?;
        let _handover = self.handovers.begin();
        answer_detached(&self.context, &service, &id, asked, Slow::Refuse)?;
        standing(&service, &id)
    }

    pub(crate) fn answer_loop(&self, asked: &Steer) -> Result<AnswerResult, Refusal> {
        let steering = Steering { text: asked.text.clone() };
        steering.check()?;
        let (service, id) = self.of_loop(&asked.loop_id, asked.workspace.as_deref())?;
        let _handover = self.handovers.begin();
        answer_detached(&self.context, &service, &id, &steering, Slow::Refuse)?;
        Ok(AnswerResult { answered: true, loop_id: id })
    }

    /// Resumes it with a runner of its own.
    pub(crate) fn resume(&self, place: &LoopAddress, asked: &Resume) -> Result<AnyStatus, Refusal> {
        let (service, id) = self.open_place(place)?;
        let grant = (&asked.grant()?, asked.now);
        let _handover = self.handovers.begin();
        resume_detached(&self.context, &service, &id, grant, Slow::Refuse)?;
        standing(&service, &id)
    }

    /// Approves the tree that waits, and lets the loop finish with a runner of its own.
    pub(crate) fn approve(&self, place: &LoopAddress, asked: &Approve) -> Result<AnyStatus, Refusal> {
        let (service, id) = self.open_place(place)?;
        let _handover = self.handovers.begin();
        approve_detached(&self.context, &service, &id, asked)?;
        standing(&service, &id)
    }

    /// The same of a loop that is named by its id alone.
    pub(crate) fn approve_loop(&self, id: &str, asked: &Approve) -> Result<LoopId, Refusal> {
        let (service, id) = self.of_loop(id, None)?;
        let _handover = self.handovers.begin();
        approve_detached(&self.context, &service, &id, asked)?;
        Ok(id)
    }

    pub(crate) fn archive(&self, place: &LoopAddress) -> Result<AnyStatus, Refusal> {
        let (service, id) = self.open_place(place)?;
        archive(&self.context, &service, &id)?;
        standing(&service, &id)
    }

    /// Merges its branch into the branch that is checked out.
    pub(crate) fn merge(&self, place: &LoopAddress, how: Merge) -> Result<MergeSummary, Refusal> {
        self.merge_work(&self.open_place(place)?, how)
    }

    /// The same for a tool, of verified work only.
    pub(crate) fn merge_loop(&self, asked: &ToolMerge) -> Result<MergeSummary, Refusal> {
        let found = self.of_loop(&asked.loop_id, asked.workspace.as_deref())?;
        self.merge_work(&found, Merge { squash: asked.squash, unverified: false })
    }

    fn merge_work(&self, (service, id): &(Service, LoopId), how: Merge) -> Result<MergeSummary, Refusal> {
        let merged = Handle::current().block_on(merge(&self.context, service, id, how, &|_, _| ()))?;
        Ok(MergeSummary::new(id, merged))
    }

    /// Archives it, and keeps its branch out of sight.
    pub(crate) fn discard(&self, place: &LoopAddress) -> Result<DiscardSummary, Refusal> {
        let (service, id) = self.open_place(place)?;
        Ok(DiscardSummary::new(&id, discard(&self.context, &service, &id)?))
    }

    /// The same for a tool.
    pub(crate) fn discard_loop(&self, asked: &LoopParams) -> Result<DiscardSummary, Refusal> {
        let (service, id) = self.of_loop(&asked.loop_id, asked.workspace.as_deref())?;
        Ok(DiscardSummary::new(&id, discard(&self.context, &service, &id)?))
    }

    /// Adds a task to a plan.
    pub(crate) fn add_task(&self, place: &LoopAddress, task: &AddTask) -> Result<AnyStatus, Refusal> {
        let (service, id) = self.open_place(place)?;
        add_task(&self.context, &service, &id, task)?;
        standing(&service, &id)
    }

    /// Has a task tried again, or leaves it out.
    pub(crate) fn edit_task(
        &self,
        place: &LoopAddress,
        task: &TaskId,
        edit: TaskEdit,
    ) -> Result<AnyStatus, Refusal> {
        let (service, id) = self.open_place(place)?;
        edit_task(&self.context, &service, &id, (task, edit))?;
        standing(&service, &id)
    }

    /// Sets how a task that waits for tuning continues.
    pub(crate) fn tune(&self, place: &LoopAddress, asked: &Tune) -> Result<AnyStatus, Refusal> {
        asked.check()?;
        let (service, id) = self.open_place(place)?;
        tune(&self.context, &service, &id, asked)?;
        standing(&service, &id)
    }
}

/// The refusal of a request to cancel a loop that has ended.
fn is_over(id: &LoopId, word: &'static str) -> Refusal {
    let (id, what) = (id.clone(), LoopRequest::Cancel);
    EngineError::Refused { id, what, why: Refused::Final(word) }.into()
}

pub(super) fn standing(service: &Service, id: &LoopId) -> Result<AnyStatus, Refusal> {
    Ok(AnyStatus::of(service, id)?)
}
