//! Asking something of a loop: to stop, or to hear something. Its runner does it, or, where it has none, this process.

use refrain_app::verbs::cancel::cancel;
use refrain_app::verbs::steer::{Steering, steer};
use refrain_app::verbs::{Outcome, Urgent, check_runner};

use super::{Desk, Refusal, Steer, Steered, Stop, Stopped, Which};

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
        let how = Urgent { now: asked.now };
        // One that came to its end in between is over.
        let outcome = cancel(&self.context, &service, &id, how, &mut |_, _| {})?;
        let stop_requested = !matches!(outcome, Outcome::Over(_));
        Ok(Stopped { stop_requested, loop_id: id, status: self.status(&which)?.view.status })
    }

    /// Has a loop's agent told something with its next iteration.
    pub(crate) fn steer(&self, asked: &Steer) -> Result<Steered, Refusal> {
        let steering = Steering { text: asked.text.clone() };
        steering.check()?;
        let (service, id) = self.of_loop(&asked.loop_id, asked.workspace.as_deref())?;
        check_runner(&service, &id)?;
        steer(&self.context, &service, &id, &steering, &mut |_, _| {})?;
        Ok(Steered { steered: true, loop_id: id })
    }
}
