//! Discarding a loop or plan: it is archived, and its work is kept out of sight for 30 days.

use refrain_core::LoopId;
use refrain_core::event::Urgency;
use refrain_engine::{ByKind, DiscardOutcome, DiscardRefusal, Service};

use crate::error::Code;
use crate::{Action, Context, RequestError};

pub fn discard(context: &Context, service: &Service, id: &LoopId) -> Result<DiscardOutcome, RequestError> {
    context.check_on(Action::Discard, service, id)?;
    service.discard(id, context.caller.asker())?.map_err(|refusal| match refusal {
        DiscardRefusal::Running if is_cancelled(service, id) => {
            RequestError::new(Code::Refused, format!("{id} is being cancelled, and has not stopped"))
                .hint(format!("refrain watch {id} waits for its end, then refrain discard {id}"))
        }
        DiscardRefusal::Running => RequestError::new(Code::Refused, format!("{id} has not stopped"))
            .hint(format!("refrain cancel {id} --now, then refrain discard {id}")),
        DiscardRefusal::CheckedOut { branch, worktree } => {
            RequestError::new(Code::Refused, format!("branch {branch} of {id} is checked out in {worktree}"))
                .hint(format!("git -C {worktree} switch BRANCH, then refrain discard {id}"))
        }
        DiscardRefusal::NotKept { worktree, why } => RequestError::new(
            Code::Refused,
            format!("{id} is not discarded: a commit cannot keep what {worktree} has: {why}"),
        )
        .hint(format!("finish, move or delete that there, then refrain discard {id}")),
    })
}

/// Whether a runner was asked to end it at once.
fn is_cancelled(service: &Service, id: &LoopId) -> bool {
    let urgency = match service.find(id) {
        Ok(ByKind::Loop(_)) => service.state(id).ok().and_then(|state| state.cancel),
        Ok(ByKind::Plan(_)) => service.plan(id).ok().and_then(|state| state.cancel),
        Err(_) => None,
    };
    urgency == Some(Urgency::Now)
}

pub fn brings_back(id: &LoopId, branch: Option<&str>, reference: &str) -> String {
    let branch = branch.unwrap_or(id.as_str());
    format!("for 30 days git branch {branch} {reference} brings its work back")
}
