//! Why a loop does not move to another machine.

use camino::Utf8PathBuf;
use refrain_core::git::{OmittedPath, RepoPath};
use refrain_core::r#loop::TakeOverRefusal;
use refrain_core::signature::PublicKey;
use refrain_store::JournalError;

use crate::sandbox::NoSandbox;

/// Why a loop was not moved. It is where it was, but for [`MoveError::Unknown`].
#[derive(Debug, thiserror::Error)]
pub enum MoveError {
    #[error("{worktree} has {} that no commit has", if *.files == 1 { "1 file".to_owned() } else { format!("{files} files") })]
    Uncommitted { worktree: Utf8PathBuf, files: usize },
    #[error("{file} in {worktree} was changed before the loop began, and no commit has that")]
    OlderChange { worktree: Utf8PathBuf, file: RepoPath },
    #[error("{} cannot go with it: {}", .0.path, .0.why)]
    LeftOut(OmittedPath),
    #[error("{0}")]
    Secret(String),
    #[error("its branch {branch} is not checked out in {worktree}")]
    OtherBranch { branch: String, worktree: Utf8PathBuf },
    #[error("{0} in the configuration of git was changed since it started")]
    Configuration(String),
    #[error("there is no key to sign its departure with: {0} can be neither read nor made")]
    NoKey(Utf8PathBuf),
    #[error("{url}: {refusal}")]
    Remote { url: String, refusal: refrain_git::Refusal },
    #[error("whether it reached {url} is unknown: {refusal}")]
    Unknown { url: String, refusal: refrain_git::Refusal },
    #[error("{0} has a loop of this name already, which is not this one")]
    Occupied(String),
    #[error("{why}")]
    NotTaken { url: String, why: TakeOverRefusal },
    #[error("another machine moved it at {0} at the same moment")]
    Raced(String),
    #[error("it left its machine signed with key {key}, which is neither yours nor one of [trust] signers")]
    Signer { url: String, key: PublicKey },
    #[error("the journal at {url} is not that of this loop: {why}")]
    OtherJournal { url: String, why: &'static str },
    #[error(transparent)]
    Journal(JournalError),
    #[error("branch {0} has commits here that the loop does not have")]
    Diverged(String),
    #[error("{0} has changes that the loop did not take along")]
    Changed(Utf8PathBuf),
    #[error("it pushes to {there}, and git here would push to {here}")]
    OtherTarget { there: String, here: String },
    #[error("this machine cannot make its sandbox, in which git or its agent would run: {0}")]
    Sandbox(Box<NoSandbox>),
    #[error("it cannot be prepared for other machines: {0}")]
    NotPrepared(String),
}
