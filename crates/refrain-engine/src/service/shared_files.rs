//! The state files in the worktree, as all threads of a runner share them.

use std::sync::{Arc, Mutex};

use refrain_store::project::worktree::WorktreeFiles;

/// The state files in the worktree, shared by the thread that starts attempts and the one that concludes them.
pub(crate) type SharedFiles = Arc<Mutex<WorktreeFiles>>;
