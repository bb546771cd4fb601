use refrain_core::event::Ask;
use refrain_core::{LoopId, Refusal};
use refrain_engine::{EngineError, LoopRequest, Service};

use super::{Outcome, Slow, Urgent};
use crate::{Action, Context, RequestError};

/// Asks for the end; returns once the loop, or the plan, has taken the request. One that is over already stays as it
/// is.
pub fn cancel(
    context: &Context,
    service: &Service,
    id: &LoopId,
    how: Urgent,
    mut slow: Slow<'_>,
) -> Result<Outcome, RequestError> {
    context.check_on(Action::Cancel, service, id)?;
    let ask = (Ask::Cancel(how.urgency()), context.caller.asker());
    slow.check(service, id)?;
    let slow = |runner| slow.note(id, runner);
    match service.ask(id, LoopRequest::Cancel, ask, slow) {
        Err(EngineError::Refused { why: Refusal::Final(word), .. }) => Ok(Outcome::Over(word)),
        asked => Ok(Outcome::Answered(Box::new(asked?))),
    }
}
