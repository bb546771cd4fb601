//! Locks of writers. Lock files are never deleted: the lock is the open file, and ends with its holder, however that
//! dies.

use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::MetadataExt;

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::LoopId;
use refrain_files::{OFlags, open_regular};

use crate::disk::notice::tell_above;
use crate::project::layout::{LoopDir, Project};
use crate::{DiskError, OnPath, make_dir_nofollow};

/// How much is read of the names of loops that share a worktree, in bytes.
const MOST_NAMES: u64 = 4096;

/// The right to drive a loop, for as long as the value lives.
#[derive(Debug)]
pub struct RunnerLock(File);

impl Drop for RunnerLock {
    fn drop(&mut self) {
        // Closing is not enough: a process that another thread is just starting has the open file too, for an instant.
        let _ = self.0.unlock();
        // Wakes who waits for it.
        tell_above(&self.0);
    }
}

impl RunnerLock {
    /// Takes the lock; `None` if another process has it.
    pub fn try_take(dir: &LoopDir) -> Result<Option<Self>, DiskError> {
        let path = dir.runner_lock();
        let file = open(&path)?;
        // An observer shares the lock for an instant; only an owner refuses to share it.
        while !took(file.try_lock()).on("lock", &path)? {
            if !took(file.try_lock_shared()).on("lock", &path)? {
                return Ok(None);
            }
            file.unlock().on("unlock", &path)?;
            std::thread::yield_now();
        }
        Ok(Some(Self(file)))
    }

    /// Takes the lock of a loop that may not exist yet: its folder is made if it is missing.
    pub fn claim(dir: &LoopDir) -> Result<Option<Self>, DiskError> {
        dir.remove_links(None)?;
        make_dir_nofollow(&dir.0)?;
        Self::try_take(dir)
    }

    /// Whether no runner holds it. The check shares the lock for an instant, which [`Self::try_take`] distinguishes
    /// from an owner.
    pub fn is_free(dir: &LoopDir) -> bool {
        open_regular(&dir.runner_lock()).map_or(true, |file| file.try_lock_shared().is_ok())
    }
}

/// The right to start or resume a plan of a project, for as long as the value lives. Until it has begun, no other plan
/// can take the same tasks.
#[derive(Debug)]
pub struct PlansLock(#[expect(dead_code, reason = "the lock is the open file")] File);

impl PlansLock {
    /// Waits for the lock: others hold it for moments.
    pub fn take(project: &Project) -> Result<Self, DiskError> {
        make_dir_nofollow(&project.data)?;
        let path = project.data.join("plans.lock");
        let file = open(&path)?;
        file.lock().on("lock", &path)?;
        Ok(Self(file))
    }
}

/// A share in a worktree, for as long as the value lives. A loop that commits needs its worktree for itself, else what
/// it commits might be another's; loops that only work may share one (design.md section 5).
#[derive(Debug)]
pub struct WorktreeLock {
    file: File,
    project: Project,
    worktree: Utf8PathBuf,
    shared: bool,
    /// The loop that is noted in the file.
    id: Option<LoopId>,
}

/// What became of a claim on a worktree.
#[derive(Debug)]
pub enum ClaimOutcome {
    /// No other loop works there.
    Alone(WorktreeLock),
    /// Others work there too, which all of them allow.
    Beside(WorktreeLock, Vec<String>),
    /// Another loop works there, and one of both needs it for itself.
    Refused(Vec<String>),
}

impl Drop for WorktreeLock {
    fn drop(&mut self) {
        // As for the lock of a runner: a process that is just starting has the open file too.
        let _ = self.file.unlock();
    }
}

impl WorktreeLock {
    /// Claims `worktree` for the loop `id`, with others if `shared`. The names in the file are only for messages: the
    /// lock itself decides.
    pub fn claim(project: &Project, worktree: &Utf8Path, shared: bool) -> Result<ClaimOutcome, DiskError> {
        let folder = project.data.join("worktrees");
        make_dir_nofollow(&folder)?;
        let path = lock_of(project, worktree);
        // A sharing claim has the lock alone for an instant, and must not meet another claim in that: one claim after
        // the other.
        let claims = open(&folder.join("claims.lock"))?;
        claims.lock().on("lock", &folder)?;
        let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE;
        let file = refrain_files::open(&path, flags).on("open", &path)?;
        let alone = took(file.try_lock()).on("lock", &path)?;
        if alone {
            file.set_len(0).on("write", &path)?;
        }
        let beside = (shared && took(file.try_lock_shared()).on("lock", &path)?) || (alone && !shared);
        let others = if alone { Vec::new() } else { names(project, &file) };
        let (project, worktree) = (project.clone(), worktree.to_owned());
        let lock = Self { file, project, worktree, shared, id: None };
        Ok(match (beside, alone) {
            (true, true) => ClaimOutcome::Alone(lock),
            (true, false) => ClaimOutcome::Beside(lock, others),
            (false, _) => ClaimOutcome::Refused(others),
        })
    }

    /// Claims a folder for commits that are handed over to it, or names the loops that work there: they would take the commits
    /// for their own, and an agent that changes folders meanwhile could lead git elsewhere.
    pub fn claim_alone(project: &Project, folder: &Utf8Path) -> Result<Result<Self, Vec<String>>, DiskError> {
        Ok(match Self::claim(project, folder, false)? {
            ClaimOutcome::Alone(lock) | ClaimOutcome::Beside(lock, _) => Ok(lock),
            ClaimOutcome::Refused(by) => Err(by),
        })
    }

    pub fn path(&self) -> Utf8PathBuf {
        lock_of(&self.project, &self.worktree)
    }

    /// Whether the lock file still has its name. Without it the lock excludes no other process.
    pub fn is_in_place(&self) -> bool {
        identity(&self.path()) == self.file.metadata().ok().map(|meta| (meta.dev(), meta.ino()))
    }

    /// Claims the worktree again if the lock file was deleted or replaced. Returns the names of loops that claimed it
    /// meanwhile, if one of both needs it for itself; the lock is then as it was.
    pub fn renew(&mut self) -> Result<Result<(), Vec<String>>, DiskError> {
        if self.is_in_place() {
            return Ok(Ok(()));
        }
        let id = self.id.clone();
        Ok(match Self::claim(&self.project, &self.worktree, self.shared)? {
            ClaimOutcome::Alone(lock) | ClaimOutcome::Beside(lock, _) => {
                *self = lock;
                id.iter().for_each(|id| self.sign(id));
                Ok(())
            }
            ClaimOutcome::Refused(by) => Err(by),
        })
    }

    /// Writes down which loop it is that works there.
    pub fn sign(&mut self, id: &LoopId) {
        // Only a convenience: the lock holds without it.
        let _ = writeln!(self.file, "{id}");
        self.id = Some(id.clone());
    }
}

fn lock_of(project: &Project, worktree: &Utf8Path) -> Utf8PathBuf {
    let name = blake3::hash(worktree.as_str().as_bytes()).to_hex();
    project.data.join("worktrees").join(format!("{}.lock", &name[..16]))
}

/// Which file lies at a path; none if there is none.
pub(crate) fn identity(path: &Utf8Path) -> Option<(u64, u64)> {
    path.symlink_metadata().ok().map(|meta| (meta.dev(), meta.ino()))
}

fn took(result: Result<(), TryLockError>) -> std::io::Result<bool> {
    match result {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// The names in the lock file, each once, without those of loops that have no runner any more: a name stays as long as
/// any loop shares the worktree.
fn names(project: &Project, mut file: &File) -> Vec<String> {
    let mut text = String::new();
    let _ = file.rewind();
    let _ = file.take(MOST_NAMES).read_to_string(&mut text);
    let is_left = |id: &LoopId| {
        open_regular(&project.loop_dir(id).runner_lock()).is_ok_and(|lock| lock.try_lock_shared().is_ok())
    };
    let signed = text.lines().filter_map(|line| line.parse().ok()).filter(|id| !is_left(id));
    let mut names: Vec<String> = Vec::new();
    for id in signed.map(|id: LoopId| id.to_string()) {
        if !names.contains(&id) {
            names.push(id);
        }
    }
    names
}

/// The append lock: held for one append, so waiting for it is short.
#[derive(Debug)]
pub(crate) struct AppendLock(File);

impl AppendLock {
    pub(crate) fn open(dir: &LoopDir) -> Result<Self, DiskError> {
        open(&dir.append_lock()).map(Self)
    }

    /// Runs `append` under the lock.
    pub(crate) fn hold<T, E: From<DiskError>>(
        &self,
        path: &Utf8Path,
        append: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        self.0.lock().on("lock", path)?;
        let result = append();
        self.0.unlock().on("unlock", path)?;
        result
    }
}

fn open(path: &Utf8Path) -> Result<File, DiskError> {
    refrain_files::open(path, OFlags::WRONLY | OFlags::CREATE).on("open", path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(dir: &tempfile::TempDir) -> Project {
        let root = Utf8Path::from_path(dir.path()).unwrap().to_owned();
        Project { data: root.join("data"), worktree: root.clone(), root }
    }

    fn claim(project: &Project, shared: bool, id: &str) -> Result<WorktreeLock, Vec<String>> {
        match WorktreeLock::claim(project, &project.worktree, shared).unwrap() {
            ClaimOutcome::Alone(mut lock) => {
                lock.sign(&id.parse().unwrap());
                Ok(lock)
            }
            ClaimOutcome::Beside(mut lock, others) => {
                assert!(!others.is_empty());
                lock.sign(&id.parse().unwrap());
                Ok(lock)
            }
            ClaimOutcome::Refused(others) => Err(others),
        }
    }

    #[test]
    fn an_observer_is_never_taken_for_an_owner() {
        let dir = tempfile::tempdir().unwrap();
        let dir = project(&dir).loop_dir(&"driven".parse().unwrap());
        drop(RunnerLock::claim(&dir).unwrap());
        let observer = File::open(dir.runner_lock()).unwrap();
        observer.try_lock_shared().unwrap();
        let taken = std::thread::scope(|scope| {
            let taking = scope.spawn(|| RunnerLock::try_take(&dir).unwrap());
            // Longer than any fixed number of tries.
            assert!((0..10_000).all(|_| RunnerLock::is_free(&dir)));
            observer.unlock().unwrap();
            taking.join().unwrap()
        });
        assert!(taken.is_some() && !RunnerLock::is_free(&dir));
        assert!(RunnerLock::try_take(&dir).unwrap().is_none(), "an owner is one");
    }

    #[test]
    fn a_worktree_is_one_loops_own_or_shared_by_all() {
        let dir = tempfile::tempdir().unwrap();
        let project = project(&dir);
        let own = claim(&project, false, "own").unwrap();
        assert_eq!(claim(&project, true, "guest").unwrap_err(), ["own"]);
        assert_eq!(claim(&project, false, "second").unwrap_err(), ["own"]);
        drop(own);
        let first = claim(&project, true, "first").unwrap();
        let second = claim(&project, true, "second").unwrap();
        assert_eq!(claim(&project, false, "own").unwrap_err(), ["first", "second"]);
        // The second ended, and is shared with no longer; its name is still written there.
        let dir = project.loop_dir(&"second".parse().unwrap());
        make_dir_nofollow(&dir.0).unwrap();
        drop(RunnerLock::claim(&dir).unwrap());
        assert_eq!(claim(&project, false, "own").unwrap_err(), ["first"]);
        drop((first, second));
        let _own = claim(&project, false, "own").unwrap();
        assert_eq!(claim(&project, false, "late").unwrap_err(), ["own"], "who left is forgotten");
    }

    #[test]
    fn a_deleted_lock_file_is_locked_again_unless_another_process_has_it() {
        let dir = tempfile::tempdir().unwrap();
        let project = project(&dir);
        let mut own = claim(&project, false, "own").unwrap();
        assert!(own.is_in_place());
        std::fs::remove_dir_all(&project.data).unwrap();
        assert!(!own.is_in_place());
        own.renew().unwrap().unwrap();
        assert!(own.is_in_place());
        assert_eq!(claim(&project, true, "second").unwrap_err(), ["own"], "it signs again");
        std::fs::remove_dir_all(&project.data).unwrap();
        let _second = claim(&project, false, "second").unwrap();
        assert_eq!(own.renew().unwrap(), Err(vec!["second".to_owned()]));
        assert!(!own.is_in_place());
    }

    #[test]
    fn claims_that_share_a_worktree_never_refuse_each_other() {
        let dir = tempfile::tempdir().unwrap();
        let project = project(&dir);
        let claim = || WorktreeLock::claim(&project, &project.worktree, true).unwrap();
        for _ in 0..200 {
            let together = std::sync::Barrier::new(4);
            let claimed = std::thread::scope(|scope| {
                let claims = [(); 4].map(|()| {
                    scope.spawn(|| {
                        together.wait();
                        let claimed = claim();
                        together.wait();
                        claimed
                    })
                });
                claims.map(|claim| claim.join().unwrap())
            });
            assert!(!claimed.iter().any(|claim| matches!(claim, ClaimOutcome::Refused(_))), "{claimed:?}");
        }
    }
}
