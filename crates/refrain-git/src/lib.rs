//! Running git and reading its answers. Nothing here decides about a loop; [`secrets`] decides what a secret is.
//!
//! A [`Repository`] is a worktree and how git runs in it. [`Repository::survey`] records the state before a loop
//! starts, [`Repository::tree`] returns the loop's own changes as a tree, and [`Repository::commit`] commits them.
//! `worktree` has the folders that a loop works in, `evidence` reads what is left of it.
//!
//! Git is a subprocess with an environment that user settings cannot bend; what cannot change is asked once
//! (`object_cache`). Only `landing::handover` moves the user's branch and files, by compare-and-swap; nothing here uses
//! force.

mod candidate;
mod commit;
mod error;
mod landing;
mod operation;
mod plumbing;
mod publish;
mod repository;
mod survey;
mod version;
mod worktree;

pub use candidate::Bounds;
pub use candidate::exactness::ExactnessRequest;
pub use candidate::folder_snapshot::FolderSnapshot;
pub use candidate::links::NewEntries;
pub use candidate::protect::{ProtectRequest, Touches};
pub use candidate::tree::TreeRequest;
pub use candidate::work::WorkSnapshot;
pub use commit::CommitRequest;
pub use commit::evidence::RecordedTree;
pub use commit::save::{SaveRequest, Saved};
pub use error::GitError;
pub use landing::handover::{HandOverRequest, HandedOver};
pub use landing::linear_history::{LinearBranch, RemakeRequest};
pub use landing::merge::{MergeRequest, MergeResult};
pub use landing::{LandRequest, LandingOutcome, Wave, WaveRequest, Work};
pub use plumbing::worktree::Worktree;
pub use publish::base_return::BaseReturn;
pub use publish::journal_ref::{Holder, JournalCommit, JournalRef, NewJournalCommit, Places, Swap};
pub use publish::push::PushRequest;
pub use publish::rebase::{RebaseOutcome, RebaseRequest};
pub use publish::refusal::Refusal;
pub use publish::{PublishRequest, Push, Upstream};
pub use refrain_proc::tool::{Cancel, Confinement, Sweeper};
pub use repository::Repository;
pub use version::{OLDEST, read_version, version};
pub use worktree::Removal;
pub use worktree::clean::{CleanRequest, PreparedCheckout};
pub use worktree::pool::{ReadyRequest, ReadySlot, SlotState};
pub use worktree::worktree_git::{check_link, is_half_made};
