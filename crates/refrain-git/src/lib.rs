//! Everything that is asked of git, and nothing that decides about a loop.
//!
//! A [`Repository`] is a worktree and how git is run there. [`Repository::survey`] says what a loop found before it began,
//! [`Repository::tree`] says what is its own as a tree, [`Repository::commit`] adds that to the history, and the methods of
//! `checkout` and `worktree` make the place that it works in, and those of `evidence` say what is left of it later. What is
//! about to be committed goes through the screen of [`secrets`].
//!
//! Git does the work: a question is a subprocess with an environment that the person's settings cannot bend where it
//! matters. Only what stands plainly in git's documented files is read there (`reference`, `linked`), what never changes is
//! asked once (`known`), and what has but one form is written as git writes it (`object`, `apart`); wherever the repository
//! is kept in another way, or its configuration says anything of it, that is git's again. Nothing here ever writes to a file of the working tree, moves a branch that is not the loop's, or uses force.

mod candidate;
mod commit;
mod error;
mod landing;
mod operation;
mod plumbing;
mod publish;
mod repository;
mod survey;
mod worktree;

pub use candidate::folder_snapshot::FolderSnapshot;
pub use candidate::protect::{ProtectRequest, Touches};
pub use candidate::tree::TreeRequest;
pub use candidate::work::WorkSnapshot;
pub use commit::CommitRequest;
pub use commit::evidence::Recorded;
pub use commit::save::{SaveRequest, Saved};
pub use error::GitError;
pub use landing::handover::{HandOverRequest, HandedOver};
pub use landing::linear_history::{LinearBranch, RemakeRequest};
pub use landing::merge::{MergeRequest, Merged};
pub use landing::{LandRequest, Landed, Wave, WaveRequest, Work};
pub use plumbing::git::version;
pub use plumbing::listed::Worktree;
pub use publish::base_return::BaseReturn;
pub use publish::push::PushRequest;
pub use publish::rebase::{RebaseRequest, Rebased};
pub use publish::refusal::Refusal;
pub use publish::{PublishRequest, Push, Upstream};
pub use refrain_proc::tool::{Cancel, Sweeper};
pub use repository::Repository;
pub use worktree::Removal;
pub use worktree::clean::{CleanRequest, PreparedCheckout};
pub use worktree::pool::{ReadyRequest, ReadySlot, Standing};
pub use worktree::worktree_git::is_half_made;
