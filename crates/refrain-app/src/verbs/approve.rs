use refrain_core::LoopId;
use refrain_core::r#loop::Grant;
use refrain_core::view::{ApprovalWord, Status};
use refrain_engine::{ByKind, Runner, Service};
use schemars::JsonSchema;
use serde::Deserialize;

use super::resume::notify;
use super::start;
use crate::error::Code;
use crate::{Action, Context, RequestError};

/// What a person says yes to.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Approve {
    /// The tree that they looked at, or the beginning of its name: another that waits by now is not approved. `none` is that of a loop without a repository.
    #[schemars(length(min = 4, max = 64))]
    pub tree: Option<String>,
}

impl Approve {
    /// What names a loop's work without a repository, which has no tree.
    pub const NO_TREE: &str = "none";

    /// A tree's name, or the beginning of one.
    pub fn tree(text: &str) -> Result<String, String> {
        if text == Self::NO_TREE {
            return Ok(text.to_owned());
        }
        let is_name = (4..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        match is_name {
            true => Ok(text.to_ascii_lowercase()),
            false => Err("accepted: a tree's name, at least 4 hexadecimal digits of it, or none for work without a repository".to_owned()),
        }
    }
}

/// Records the approval; the runner finishes the loop.
pub fn approve(
    context: &Context,
    service: &Service,
    id: &LoopId,
    request: &Approve,
    grant: &Grant,
) -> Result<Runner, RequestError> {
    context.check_on(Action::Approve, service, id)?;
    let tree = request.tree.as_deref().map(Approve::tree).transpose();
    let tree = tree.map_err(|why| {
        let tree = request.tree.as_deref().unwrap_or_default();
        RequestError::usage(format!("--tree {tree}: {why}"))
    })?;
    Ok(service.approve(id, grant, tree.as_deref())?)
}

/// Records the approval, and lets the loop finish in a process of its own.
pub fn approve_detached(
    context: &Context,
    service: &Service,
    id: &LoopId,
    request: &Approve,
) -> Result<(), RequestError> {
    context.check_on(Action::Approve, service, id)?;
    context.check(Action::Detach)?;
    let runner = approve(context, service, id, request, &Grant::default())?;
    let dir = &service.project().worktree;
    start::detach(context, (service, runner), dir, &notify(context, service))?.1.reap();
    Ok(())
}

pub fn is_awaited(status: &Status) -> bool {
    status.approval.as_ref().is_some_and(|approval| approval.state == ApprovalWord::Awaited)
}

/// Whether the loop waits for approval; a plan never does.
pub fn awaits(service: &Service, id: &LoopId) -> Result<bool, RequestError> {
    Ok(match service.standing(id)? {
        ByKind::Loop(status) => is_awaited(&status),
        ByKind::Plan(_) => false,
    })
}

/// Refuses to continue a loop that waits for approval where the request does not name it: that would send its work back.
pub fn refuse_by_accident(status: &Status) -> Result<(), RequestError> {
    let id = &status.id;
    if !is_awaited(status) {
        return Ok(());
    }
    let error = RequestError::new(Code::Refused, format!("{id} waits for approval, and would be sent back"));
    Err(error.hint(how_to_decide(status)))
}

/// How to approve a loop that waits for that, or to send it back: with what it needs to continue.
pub(crate) fn how_to_decide(status: &Status) -> String {
    status.needs.clone().unwrap_or_else(|| format!("refrain approve {}", status.id))
}
