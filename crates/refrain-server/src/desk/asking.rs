//! Asking something of a loop: to stop, or to hear something. Its runner does it, or, where it has none, this process.

use refrain_core::event::{Ask, Urgency};
use refrain_core::view::to_continue;
use refrain_core::{LoopId, Refusal as Refused};
use refrain_engine::{EngineError, LoopRequest, Service};

use super::{Desk, Refusal, RefusalKind, Steer, Steered, Stop, Stopped, Which};

impl Desk {
    /// Asks for the end of a loop, or a plan. One that has stopped already stays as it is: that is no error, and what it waits
    /// for a person with is not thrown away.
    pub(crate) fn stop(&self, asked: &Stop) -> Result<Stopped, Refusal> {
        let which = Which { loop_id: asked.loop_id.clone(), workspace: asked.workspace.clone() };
        let (service, id) = self.of_loop(&which.loop_id, which.workspace.as_deref())?;
        let before = self.status(&which)?.view;
        if before.has_stopped() {
            return Ok(Stopped { stop_requested: false, loop_id: id, status: before.status });
        }
        check_runner(&service, &id)?;
        let urgency = if asked.now { Urgency::Now } else { Urgency::AfterIteration };
        let stop_requested = match cancel(&service, &id, urgency) {
            Ok(()) => true,
            // It came to its end in between.
            Err(EngineError::Refused { why: Refused::Final(_), .. }) => false,
            Err(error) => return Err(error.into()),
        };
        Ok(Stopped { stop_requested, loop_id: id, status: self.status(&which)?.view.status })
    }

    /// Has a loop's agent told something with its next iteration.
    pub(crate) fn steer(&self, asked: &Steer) -> Result<Steered, Refusal> {
        asked.check()?;
        let (service, id) = self.of_loop(&asked.loop_id, asked.workspace.as_deref())?;
        if service.has_plan(&id) {
            let plan = service.plan_status(&id)?;
            let loops: Vec<_> = plan.current.iter().map(|task| task.id_of_loop.to_string()).collect();
            let loops = if loops.is_empty() { "none is at work".to_owned() } else { loops.join(", ") };
            return Err(Refusal::new(format!(
                "loop_id {id}: it is a plan; accepted are loops of its tasks: {loops}"
            )));
        }
        check_runner(&service, &id)?;
        service.ask(&id, LoopRequest::Steer, Ask::Steer(asked.text.clone()), |_| {})?;
        Ok(Steered { steered: true, loop_id: id })
    }
}

/// Nobody waits here for a runner that is stopped: a caller cannot see why it takes long.
pub(super) fn check_runner(service: &Service, id: &LoopId) -> Result<(), Refusal> {
    match service.stopped_runner(id) {
        Some(pid) => {
            let go_on = to_continue(pid);
            let text =
                format!("the runner of {id} is stopped (pid {pid}): {go_on} continues it, then ask again");
            Err(Refusal::of(RefusalKind::Conflict, text))
        }
        None => Ok(()),
    }
}

fn cancel(service: &Service, id: &LoopId, urgency: Urgency) -> Result<(), EngineError> {
    match service.has_plan(id) {
        true => service.ask_plan(id, LoopRequest::Cancel, Ask::Cancel(urgency), |_| {}).map(drop),
        false => service.ask(id, LoopRequest::Cancel, Ask::Cancel(urgency), |_| {}).map(drop),
    }
}
