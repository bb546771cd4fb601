//! Moving a loop between machines over a git remote.

use camino::Utf8PathBuf;
use refrain_core::LoopId;
use refrain_core::r#loop::NotTaken;
use refrain_core::signature::PublicKey;
use refrain_engine::{MoveError, MovedAway, MovedHere, Service};

use crate::error::{Code, Message};
use crate::{Action, Context, RequestError};

/// Where a loop goes, or comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Move {
    /// To a remote.
    To {
        remote: String,
        /// With what no commit has.
        with_changes: bool,
    },
    /// From a remote.
    From {
        remote: String,
        /// The key of the machine that it left, if you accept it.
        signer: Option<PublicKey>,
    },
}

/// What became of the loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Moved {
    Away(MovedAway),
    Here(MovedHere),
}

/// Moves the loop.
pub fn move_loop(
    context: &Context,
    service: &Service,
    id: &LoopId,
    request: &Move,
) -> Result<Moved, RequestError> {
    context.check_on(Action::Move, service, id)?;
    let dir: &Utf8PathBuf = &context.dir;
    match request {
        Move::To { remote, with_changes } => {
            check_remote("--to", remote)?;
            Ok(Moved::Away(service.move_to(id, (remote, dir), *with_changes)?))
        }
        Move::From { remote, signer } => {
            check_remote("--from", remote)?;
            Ok(Moved::Here(service.move_from(id, (remote, dir), signer.as_ref())?))
        }
    }
}

fn check_remote(option: &'static str, remote: &str) -> Result<(), RequestError> {
    let after_scheme = remote.split_once("://").map(|(_, rest)| rest.split('/').next().unwrap_or_default());
    let has_password = after_scheme
        .and_then(|place| place.rsplit_once('@'))
        .is_some_and(|(who, _)| who.contains(':') || remote.starts_with("http"));
    let why = match remote {
        "" => "it is empty",
        _ if remote.chars().any(char::is_control) || remote.starts_with('-') => "it is no address",
        _ if has_password => "it has a password in it, and git would show that to others",
        _ => return Ok(()),
    };
    let accepted = "accepted are the name of a remote, a path and an address; git asks its credential helper for passwords";
    Err(RequestError::usage(Message::own(option).then(format!(": {why}; {accepted}"))))
}

/// The exit code of a loop that was not moved, and what to do next.
pub(crate) fn next(id: &LoopId, why: &MoveError) -> (Code, Option<Message>) {
    let own = |text: String| Some(Message::own(&text));
    match why {
        MoveError::Uncommitted { worktree, .. } => (
            Code::Usage,
            own(format!(
                "--with-changes takes them along; git -C {worktree} commit commits what you want to keep"
            )),
        ),
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
        MoveError::NotTaken { why: NotTaken::Missing, .. } => {
            (Code::NotFound, own(format!("on the machine that has it: refrain move {id} --to URL")))
        }
        MoveError::NotTaken { why: NotTaken::Here, .. } => {
            (Code::Refused, own(format!("refrain status {id} shows it")))
        }
        MoveError::NotTaken { why: NotTaken::Claimed(_), url } => {
            (Code::Refused, own(format!("on that machine: refrain move {id} --to {url}")))
        }
        MoveError::NotTaken { why: NotTaken::Stale(to), .. } => {
            (Code::Refused, own(format!("refrain move {id} --from {to}")))
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
        MoveError::OtherTarget { .. } => {
            (Code::Refused, own("git remote set-url changes where git pushes".to_owned()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_no_password_and_no_control_characters() {
        for remote in ["origin", "../state.git", "/srv/state.git", "ssh://git@host/a.git", "git@host:a.git"] {
            assert!(check_remote("--to", remote).is_ok(), "{remote}");
        }
        for remote in ["", "-u", "a\nb", "https://me:word@host/a", "https://token@host/a", "ssh://a:b@host/c"]
        {
            assert_eq!(check_remote("--to", remote).unwrap_err().code(), Code::Usage, "{remote}");
        }
    }
}
