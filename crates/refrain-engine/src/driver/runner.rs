//! The right to drive a loop, as a value: its holder drives the loop, or hands it on.

use std::sync::Arc;

use camino::Utf8Path;
use refrain_core::{Live, LoopId, Step, next_step};
use refrain_git::Repository;
use refrain_store::project::pool;
use refrain_store::{Journal, RunnerLock};

use crate::driver::locks::{Locks, RunnerLocks, Share};
use crate::driver::progress::LiveProgress;
use crate::git_steps::work::{MANY_FILES, WorkWatch};
use crate::memory::Remembrance;
use crate::now;
use crate::observe::follow::Follower;

/// A loop that this process has the right to drive.
#[derive(Debug)]
pub struct Runner {
    /// On the heap, as the state is large and futures hold what they are given several times over.
    pub(crate) journal: Box<Journal>,
    pub(crate) locks: Locks,
    /// Loops that work in the same worktree.
    pub(crate) neighbours: Vec<String>,
    /// Its worktree, if git was asked about it already.
    pub(crate) opened: Option<Repository>,
    /// Its own worktree was gone, and was made anew from its branch.
    pub(crate) is_restored: bool,
    pub(crate) live_progress: Arc<LiveProgress>,
    /// Why its prompt has fewer memories of earlier loops than it could.
    pub(crate) forgetful: Option<String>,
    /// Why its memories could not be kept.
    pub(crate) remembrance: Remembrance,
    /// The events up to this one are of before it was started or resumed here.
    pub(crate) past: u64,
}

impl Runner {
    pub(crate) fn new(
        journal: Journal,
        lock: RunnerLock,
        (mut worktree, neighbours): Share,
        past: u64,
    ) -> Self {
        worktree.sign(&journal.state().spec.id);
        let held = RunnerLocks::new(worktree, lock);
        let (journal, locks) = (Box::new(journal), Arc::new(held));
        Self {
            journal,
            locks,
            neighbours,
            opened: None,
            is_restored: false,
            live_progress: Arc::default(),
            forgetful: None,
            remembrance: Remembrance::default(),
            past,
        }
    }

    pub fn id(&self) -> &LoopId {
        &self.journal.state().spec.id
    }

    pub fn worktree(&self) -> &Utf8Path {
        &self.journal.state().spec.worktree
    }

    /// Whether it works in a folder without git, all of whose many files are read after each iteration.
    pub fn reads_many_files(&self) -> bool {
        let spec = &self.journal.state().spec;
        WorkWatch::is_needed(spec) && !spec.is_in_repository() && !pool::size(&spec.worktree, MANY_FILES).1
    }

    /// Loops that work in the same worktree, which they and this one allow.
    pub fn neighbours(&self) -> &[String] {
        &self.neighbours
    }

    /// Whether its own worktree was gone, and was made anew from its branch: what was not committed is lost.
    pub fn is_restored(&self) -> bool {
        self.is_restored
    }

    /// How many memories of earlier loops its prompt has.
    pub fn recalled(&self) -> usize {
        self.journal.state().spec.memory.as_ref().map_or(0, |memory| memory.recalled.len())
    }

    /// Why its prompt has fewer memories of earlier loops than it could.
    pub fn forgetful(&self) -> Option<&str> {
        self.forgetful.as_deref()
    }

    /// The errors of keeping its memories, known once it has been driven.
    pub fn remembrance(&self) -> Remembrance {
        self.remembrance.clone()
    }

    /// Whether the loop will stop without running anything.
    pub fn ends_at_once(&self) -> bool {
        matches!(next_step(self.journal.state(), &Live::default(), now()), Step::Finish(_))
    }

    /// Follows the loop from its start, or its resumption, in this process.
    pub fn follow(&self) -> Follower {
        Follower::of_own(&self.journal, Arc::clone(&self.live_progress), self.past)
    }
}
