//! Discarding a loop: it is archived, and its branch is kept out of sight for 30 days.

use refrain_core::LoopId;
use refrain_engine::{Discarded, NotDiscarded, Service};

use crate::error::Code;
use crate::{Action, Context, RequestError};

pub fn discard(context: &Context, service: &Service, id: &LoopId) -> Result<Discarded, RequestError> {
    context.check_on(Action::Discard, service, id)?;
    service.discard(id)?.map_err(|NotDiscarded::CheckedOut { branch, worktree }| {
        RequestError::new(Code::Refused, format!("branch {branch} of {id} is checked out in {worktree}"))
            .hint(format!(
                "refrain cancel {id} gives back a worktree of the loop; leave another one with git switch"
            ))
    })
}
