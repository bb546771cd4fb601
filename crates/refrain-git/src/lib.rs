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

mod adopt;
mod apart;
mod before;
mod candidate;
mod changes;
mod checkout;
mod choice;
mod clean;
mod clean_git;
mod commit;
mod committer;
mod configuration;
mod disk;
mod error;
mod evidence;
mod folder_snapshot;
mod git;
mod git_files;
mod handover;
mod handover_disk;
mod heads;
mod history;
mod index;
mod integrity;
mod intent;
mod known;
mod landing;
mod line;
mod linked;
mod links;
mod listed;
mod listing;
mod memory;
mod merge;
mod message;
mod object;
mod operation;
mod overrides;
mod parts;
mod plain;
mod pool;
mod pool_look;
mod pool_place;
mod protect;
mod publish;
mod publish_rebase;
mod publish_refusal;
mod publish_return;
mod push;
mod reference;
mod remotes;
mod repository;
mod save;
mod stage;
mod staged;
mod status;
mod submodules;
mod survey;
mod taken;
mod tree;
mod walk;
mod work;
mod worktree;
mod worktree_git;

pub use clean::{CleanRequest, Laid};
pub use commit::CommitRequest;
pub use error::GitError;
pub use evidence::Recorded;
pub use folder_snapshot::FolderSnapshot;
pub use git::version;
pub use handover::{HandOverRequest, HandedOver};
pub use landing::{LandRequest, Landed, Wave, WaveRequest, Work};
pub use line::{Remade, RemakeRequest};
pub use listed::Worktree;
pub use merge::{MergeRequest, Merged};
pub use pool::{Readied, ReadyRequest, Standing};
pub use protect::{ProtectRequest, Touches};
pub use publish::{PublishRequest, Push, Upstream};
pub use publish_rebase::{RebaseRequest, Rebased};
pub use publish_refusal::Refusal;
pub use publish_return::Back;
pub use push::PushRequest;
pub use refrain_proc::tool::{Cancel, Sweeper};
pub use repository::Repository;
pub use save::{SaveRequest, Saved};
pub use tree::TreeRequest;
pub use work::WorkSnapshot;
pub use worktree::Removal;
pub use worktree_git::is_half_made;
