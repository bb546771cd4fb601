//! Takes back a request that has had no effect yet.

use refrain_core::LoopId;
use refrain_core::event::Ask;
use refrain_core::ids::RequestId;
use refrain_core::r#loop::QueuedRequest;
use refrain_engine::{LoopRequest, Service};
use schemars::JsonSchema;
use serde::Deserialize;

use super::Slow;
use crate::error::Code;
use crate::{Action, Context, RequestError};

/// Which request is taken back.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TakeBack {
    /// Its name, as `queued` of the status has it [default: the last of them].
    #[schemars(with = "Option<String>")]
    pub request: Option<RequestId>,
}

/// Takes the request back, and returns it.
/// Errors: it is not queued, or the caller may not; the loop is unchanged.
pub fn take_back(
    context: &Context,
    service: &Service,
    id: &LoopId,
    asked: &TakeBack,
    mut slow: Slow<'_>,
) -> Result<QueuedRequest, RequestError> {
    context.check_on(Action::TakeBack, service, id)?;
    slow.check(service, id)?;
    let is_meant = |queued: &QueuedRequest| asked.request.as_ref().is_none_or(|it| queued.request == *it);
    let state = service.state(id)?;
    let queued = state.queued().filter(is_meant).last();
    let others: Vec<_> = state.queued().map(|queued| queued.request.as_str().to_owned()).collect();
    if let (None, Some(unknown), false) = (&queued, &asked.request, others.is_empty()) {
        let error = format!("{id} cannot take back {}: no such request is queued", unknown.as_str());
        return Err(RequestError::new(Code::Refused, error).hint(format!("queued: {}", others.join(", "))));
    }
    let Some(queued) = queued else {
        let which = asked.request.as_ref().map_or("a request", |request| request.as_str());
        let error =
            format!("{id} cannot take back {which}: all requests have had their effect, or were taken back");
        let error = RequestError::new(Code::Refused, error);
        return Err(error.hint(format!("refrain status {id} lists what can be taken back as queued")));
    };
    let asker = context.caller.asker();
    if queued.by > asker {
        return Err(RequestError::new(Code::Refused, "an agent cannot take back what a person asked for"));
    }
    let ask = (Ask::Withdraw(queued.request.clone()), asker);
    service.ask(id, LoopRequest::TakeBack, ask, |runner| slow.note(id, runner))?;
    Ok(queued)
}
