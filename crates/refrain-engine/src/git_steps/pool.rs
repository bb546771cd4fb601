//! The room that a project's pool of worktrees takes, kept within its budget: git knows what is in them, the store
//! which project has which.

use camino::{Utf8Path, Utf8PathBuf};
use refrain_git::{GitError, Removal, Repository};
use refrain_store::project::pool::{self, SlotEntry};
use refrain_store::{DiskError, LoopDir, Project, Slot};

use crate::Host;
use crate::git_steps::repository::sweeper;

/// How many files and folders of one worktree are counted for its size. A larger one is large.
const MOST_FILES: usize = 200_000;

/// The room for the pool could not be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PoolError {
    #[error(transparent)]
    Disk(#[from] DiskError),
    #[error(transparent)]
    Git(#[from] GitError),
}

/// A worktree of a pool, and how much room it takes.
#[derive(Debug)]
pub(crate) struct SizedWorktree {
    pub(crate) found: SlotEntry,
    /// In bytes; at least that.
    pub(crate) bytes: u64,
}

impl SizedWorktree {
    /// Whether it may be cleaned: it is not in use, and it is not held.
    fn is_free(&self) -> bool {
        !self.found.is_taken && self.found.held.is_empty()
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Cleanup {
    /// How much room that made, in bytes.
    pub(crate) freed: u64,
    /// From how many what git ignores was removed.
    pub(crate) cleared: u32,
    pub(crate) removed: u32,
}

/// All worktrees of a project's pool and their sizes; those unused for longest first.
pub(crate) fn sized(project: &Project, state_home: &Utf8Path) -> Vec<SizedWorktree> {
    let measured = |found: SlotEntry| SizedWorktree { bytes: pool::size(&found.dir, MOST_FILES).0, found };
    let mut all: Vec<SizedWorktree> = pool::found(project, state_home).into_iter().map(measured).collect();
    all.sort_by_key(|slot| slot.found.last_used);
    all
}

pub(crate) fn unused(all: &[SizedWorktree]) -> u64 {
    all.iter().filter(|slot| !slot.found.is_taken).map(|slot| slot.bytes).sum()
}

/// The repository, whose git looks at a worktree of the pool in the sandbox of the loop that worked there last in one: it may
/// have changed what filters run. `dir` is the folder around the worktree.
pub(crate) fn in_sandbox_of_slot(
    host: &Host,
    repository: &Repository,
    dir: &Utf8Path,
) -> Result<Repository, DiskError> {
    let repository = repository.again();
    let Some(spec) = pool::sandboxed_by(dir)? else { return Ok(repository) };
    let pins = spec.git.pins.as_deref();
    Ok(repository.with_pins(pins).with_sweeper(Some(sweeper(host, &spec, &LoopDir(dir.to_owned())))))
}

/// Makes room until the unused ones take no more than `budget` bytes: what git ignores goes first, from the one that
/// was unused for longest on, then whole worktrees. One that is held, or has work in it that is nowhere else, stays.
pub(crate) fn tidy(
    project: &Project,
    host: &Host,
    repository: &Repository,
    budget: u64,
) -> Result<Cleanup, PoolError> {
    let state_home = &host.state_home;
    let mut all = sized(project, state_home);
    let mut tidied = Cleanup::default();
    for at in 0..all.len() {
        if unused(&all) <= budget {
            return Ok(tidied);
        }
        if let Some(slot) = take(project, state_home, &all[at])? {
            repository.clear_slot(&slot.folder())?;
            let left = pool::size(&slot.dir(), MOST_FILES).0;
            let freed = all[at].bytes.saturating_sub(left);
            tidied.freed += freed;
            tidied.cleared += u32::from(freed > 0);
            all[at].bytes = left;
        }
    }
    for at in 0..all.len() {
        if unused(&all) <= budget {
            return Ok(tidied);
        }
        if let Some(slot) = take(project, state_home, &all[at])?
            && let Removal::Removed | Removal::BranchKept =
                in_sandbox_of_slot(host, repository, &slot.dir())?.remove_slot(&slot.folder(), &slot.dir())?
        {
            slot.remove()?;
            tidied.removed += 1;
            tidied.freed += all[at].bytes;
            all[at].bytes = 0;
        }
    }
    Ok(tidied)
}

/// Releases a held worktree, if the reason for holding it is gone; returns what still is there.
pub(crate) fn give_back(
    project: &Project,
    host: &Host,
    repository: &Repository,
    number: u32,
) -> Result<Vec<String>, PoolError> {
    let Some(slot) = Slot::take_number(project, &host.state_home, number)? else {
        return Ok(vec!["a task works in it".to_owned()]);
    };
    let value = in_sandbox_of_slot(host, repository, &slot.dir())?.slot_value(&slot.folder(), &slot.dir())?;
    if value.is_empty() {
        slot.give_back()?;
    }
    Ok(value)
}

/// Takes one that may be cleaned; none if it may not, or another process was faster.
fn take(project: &Project, state_home: &Utf8Path, slot: &SizedWorktree) -> Result<Option<Slot>, DiskError> {
    if slot.is_free() { Slot::take_number(project, state_home, slot.found.number) } else { Ok(None) }
}

/// The folder that the worktree of a number lies in.
pub(crate) fn folder(project: &Project, found: &SlotEntry) -> Utf8PathBuf {
    found.dir.join(project.root.file_name().unwrap_or("project"))
}
