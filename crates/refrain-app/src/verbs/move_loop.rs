//! Moving a loop between machines over a git remote.

pub mod fleet;

use camino::Utf8PathBuf;
use refrain_core::LoopId;
use refrain_core::signature::PublicKey;
use refrain_engine::{MovedAway, MovedHere, Service};

use crate::error::Message;
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
#[derive(Clone, Debug)]
pub enum MoveOutcome {
    Away(MovedAway),
    Here(MovedHere),
}

/// Moves the loop.
pub fn move_loop(
    context: &Context,
    service: &Service,
    id: &LoopId,
    request: &Move,
) -> Result<MoveOutcome, RequestError> {
    context.check_on(Action::Move, service, id)?;
    let dir: &Utf8PathBuf = &context.dir;
    match request {
        Move::To { remote, with_changes } => {
            check_remote("--to", remote)?;
            Ok(MoveOutcome::Away(service.move_to(id, (remote, dir), *with_changes)?))
        }
        Move::From { remote, signer } => {
            check_remote("--from", remote)?;
            Ok(MoveOutcome::Here(service.move_from(id, (remote, dir), signer.as_ref())?))
        }
    }
}

pub(crate) fn check_remote(option: &'static str, remote: &str) -> Result<(), RequestError> {
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
    let accepted =
        "accepted: the name of a remote, a path, or an address; git asks its credential helper for passwords";
    Err(RequestError::usage(Message::own(option).then(format!(": {why}; {accepted}"))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Code;

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
