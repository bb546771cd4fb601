use refrain_core::LoopId;
use refrain_core::event::Ask;
use refrain_engine::{LoopRequest, Service};

use super::{Outcome, Slow, Urgent};
use crate::{Action, Context, RequestError};

/// Asks for a pause; returns once the loop, or the plan, has taken the request.
pub fn pause(
    context: &Context,
    service: &Service,
    id: &LoopId,
    how: Urgent,
    mut slow: Slow<'_>,
) -> Result<Outcome, RequestError> {
    context.check_on(Action::Pause, service, id)?;
    let ask = (Ask::Pause(how.urgency()), context.caller.asker());
    slow.check(service, id)?;
    let slow = |runner| slow.note(id, runner);
    Ok(Outcome::Answered(Box::new(service.ask(id, LoopRequest::Pause, ask, slow)?)))
}
