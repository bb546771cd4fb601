//! The exit codes of loops that were not moved, and what to do next.

use refrain_core::LoopId;
use refrain_core::r#loop::TakeOverRefusal;
use refrain_engine::MoveError;

use super::{Code, Message};

pub(super) fn next(id: &LoopId, why: &MoveError) -> (Code, Option<Message>) {
    let own = |text: String| Some(Message::own(&text));
    match why {
        MoveError::Uncommitted { worktree, .. } => (
            Code::Refused,
            own(format!(
                "--with-changes takes them along; or commit there what you want to keep, and remove the rest: git -C {worktree} status"
            )),
        ),
        MoveError::OlderChange { worktree, .. } => {
            (Code::Refused, own(format!("git -C {worktree} commit commits what you want to keep of it")))
        }
        MoveError::LeftOut(_) | MoveError::Secret(_) | MoveError::OtherBranch { .. } => {
            (Code::Refused, own("settle that there, then move it again".to_owned()))
        }
        MoveError::Configuration(_) => {
            (Code::Refused, own("its agent may have done that: give the address itself".to_owned()))
        }
        MoveError::NoKey(_) | MoveError::OtherJournal { .. } | MoveError::Journal(_) => (Code::Failed, None),
        MoveError::Remote { .. } => (Code::Failed, own("nothing was moved".to_owned())),
        MoveError::Unknown { url, .. } => (
            Code::Failed,
            own(format!("the same command continues; refrain move {id} --from {url} takes the loop here")),
        ),
        MoveError::Occupied(url) => (
            Code::Refused,
            own(format!("git push {url} --delete refs/refrain/{id}/journal removes that one")),
        ),
        MoveError::NotTaken { why: TakeOverRefusal::Missing, .. } => {
            (Code::NotFound, own(format!("on the machine that has it: refrain move {id} --to URL")))
        }
        MoveError::NotTaken { why: TakeOverRefusal::Here, .. } => {
            (Code::Refused, own(format!("refrain status {id} shows it")))
        }
        MoveError::NotTaken { why: TakeOverRefusal::Claimed(_), url } => {
            (Code::Refused, own(format!("on that machine: refrain move {id} --to {url}")))
        }
        MoveError::NotTaken { why: TakeOverRefusal::Stale(to), .. } => {
            (Code::Refused, own(format!("refrain move {id} --from {to}")))
        }
        MoveError::NotTaken { why: TakeOverRefusal::Fenced { there, .. }, .. } => {
            (Code::Refused, own(format!("take it with a fence above {there}")))
        }
        MoveError::Raced(_) => (Code::Refused, own("nothing was changed; try again".to_owned())),
        MoveError::Signer { url, key } => (
            Code::Refused,
            own(format!(
                "its agent and its gates would run here: if that key is the one that refrain doctor prints on its machine, refrain \
                 move {id} --from {url} --signer {key}"
            )),
        ),
        MoveError::Diverged(branch) => {
            (Code::Refused, own(format!("git branch -m {branch} OTHER keeps them under another name")))
        }
        MoveError::Changed(worktree) => {
            (Code::Refused, own(format!("commit them, or remove the folder: git worktree remove {worktree}")))
        }
        MoveError::Sandbox(error) => (Code::Failed, own(error.cause.remedy(&error.refusal))),
        MoveError::NotPrepared(_) => (
            Code::Failed,
            own(format!("refrain resume {id} continues it here, refrain discard {id} puts it out of sight")),
        ),
        MoveError::OtherTarget { .. } => {
            (Code::Refused, own("git remote set-url changes where git pushes".to_owned()))
        }
    }
}
