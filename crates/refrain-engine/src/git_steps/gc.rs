//! What loops of this project left that nothing needs any more, and its removal. Every removal checks again: a loop may have
//! begun meanwhile.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;

use camino::{Utf8DirEntry, Utf8Path, Utf8PathBuf};
use refrain_agents::environment;
use refrain_core::LoopState;
use refrain_core::git::Oid;
use refrain_core::plan::PlanState;
use refrain_core::view::garbage::{Garbage, GarbageKind};
use refrain_git::{GitError, Removal, Repository};
use refrain_store::project::pool::{self, Slot};
use refrain_store::project::{archive, checkout};
use refrain_store::{DiskError, LoopDir, Project, RunnerLock, journal};

use crate::git_steps::discard_refs::KEPT;
use crate::git_steps::merge::own_branch::OwnBranch;
use crate::git_steps::pool::{folder, in_sandbox_of_slot};
use crate::git_steps::repository::{self, marked};
use crate::{EngineError, Service, now};

/// How many files and folders of one folder are counted for its size.
const MOST_FILES: usize = 200_000;

/// What the names of the folders of `refrain demo` begin with.
pub const DEMO_PREFIX: &str = "refrain-demo-";

/// Why nothing is removed of it any more.
fn in_use(what: &str) -> String {
    format!("{what} is in use")
}

impl Service {
    /// Everything that may be removed, the largest of each kind first.
    pub fn garbage(&self) -> Result<Vec<Garbage>, EngineError> {
        // What killed sandboxes left is looked at by no git.
        for dir in self.project.loop_dirs()?.iter().chain(&self.project.plan_dirs()?) {
            crate::sandbox::restore_left(&dir.0)?;
        }
        let over = self.loops_that_are_over()?;
        let mut all = self.on_disk(&over)?;
        if let Some(repository) = self.repository_if_any()? {
            all.extend(self.merged_branches(&repository, &over)?);
            let landed = self.uncleared_plans(&repository)?.into_iter().flat_map(|(_, branches)| branches);
            all.extend(landed.map(|name| Garbage { kind: GarbageKind::Branch, name, bytes: 0 }));
            let over = self.over_at_remotes(&repository, None)?;
            all.extend(over.into_iter().map(|it| Garbage {
                kind: GarbageKind::Remote,
                name: it.name,
                bytes: 0,
            }));
        }
        let now = now().as_second();
        let old = self.discarded_refs().into_iter().filter(|it| it.is_old(now));
        all.extend(old.map(|it| Garbage { kind: GarbageKind::Discarded, name: it.reference, bytes: 0 }));
        all.extend(self.without_project().into_iter().map(|(kind, home)| Garbage {
            kind,
            bytes: pool::size(&home, MOST_FILES).0,
            name: home.into_string(),
        }));
        all.extend(self.demos().into_iter().map(|folder| Garbage {
            kind: GarbageKind::Demo,
            bytes: self.with_its_caches(&folder).iter().map(|folder| pool::size(folder, MOST_FILES).0).sum(),
            name: folder.into_string(),
        }));
        all.sort_by(|a, b| (a.kind, b.bytes, &a.name).cmp(&(b.kind, a.bytes, &b.name)));
        Ok(all)
    }

    /// The checkouts and worktrees for tasks of projects that are gone. A held worktree stays.
    fn without_project(&self) -> Vec<(GarbageKind, Utf8PathBuf)> {
        let state_home = &self.host.state_home;
        let checkouts =
            checkout::orphaned(state_home).into_iter().map(|(home, _)| (GarbageKind::Checkout, home));
        let pools = pool::orphaned(state_home).into_iter().map(|(home, _)| (GarbageKind::TaskWorktree, home));
        checkouts.chain(pools.filter(|(_, home)| pool::held_number(home).is_none())).collect()
    }

    /// The worktrees of loops whose project is gone or was moved, with the project's folder and the size. They are not removed:
    /// what no commit had is only there.
    pub fn worktrees_without_project(&self) -> Vec<(Utf8PathBuf, Utf8PathBuf, u64)> {
        let all = pool::worktrees_without_repository(&self.host.state_home).into_iter();
        all.map(|(worktree, root)| {
            let bytes = pool::size(&worktree, MOST_FILES).0;
            (worktree, root, bytes)
        })
        .collect()
    }

    /// The folder of a project, and those in the state home that only its loops use.
    fn with_its_caches(&self, folder: &Utf8Path) -> Vec<Utf8PathBuf> {
        let homes = Project::find(folder)
            .map(|it| vec![it.checkouts(&self.host.state_home), it.pool(&self.host.state_home)]);
        [vec![folder.to_owned()], homes.unwrap_or_default()].concat()
    }

    /// The part of it that takes room on disk.
    pub(crate) fn garbage_on_disk(&self) -> Result<Vec<Garbage>, EngineError> {
        self.on_disk(&self.loops_that_are_over()?)
    }

    fn on_disk(&self, over: &[(LoopState, LoopDir)]) -> Result<Vec<Garbage>, EngineError> {
        let (project, state_home) = (&self.project, &self.host.state_home);
        let mut all = Vec::new();
        let mut push = |kind, folder: &Utf8Path| {
            let bytes = pool::size(folder, MOST_FILES).0;
            all.push(Garbage { kind, name: folder.to_string(), bytes });
        };
        if let Some(repository) = self.repository_if_any()? {
            for (state, dir) in over {
                let LoopState { spec, git, .. } = state;
                if !spec.git.checkout.is_own_worktree() || !spec.worktree.is_dir() {
                    continue;
                }
                let (root, env) = (&self.project.root, marked(&self.host.env, spec));
                let repository = repository::open_in_sandbox(root, &env, (&self.host, spec, dir))?;
                if repository.worktree_value(&spec.worktree, &git.prepared)?.is_none() {
                    push(GarbageKind::Worktree, &spec.worktree);
                }
            }
            if !self.has_open_plan()? {
                for found in pool::found(project, state_home) {
                    let is_free = !found.is_taken && found.held.is_empty();
                    let at = folder(project, &found);
                    if !is_free || !at.is_dir() {
                        continue;
                    }
                    let repository = in_sandbox_of_slot(&self.host, &repository, &found.dir)?;
                    if repository.slot_value(&at, &found.dir)?.is_empty() {
                        push(GarbageKind::TaskWorktree, &found.dir);
                    }
                }
            }
        }
        checkout::unused(project, state_home).iter().for_each(|dir| push(GarbageKind::Checkout, dir));
        let old = archive::dirs_before(project, now().as_second().saturating_sub(KEPT));
        let is_over = |dir: &LoopDir| over.iter().any(|(_, of)| of == dir);
        for output in old.iter().filter(|dir| is_over(dir)).filter_map(archive::output) {
            push(GarbageKind::Output, &output);
        }
        Ok(all)
    }

    /// Removes one of them. Returns why it is kept, if it is needed by now.
    pub fn remove_garbage(&self, garbage: &Garbage) -> Result<Option<String>, EngineError> {
        let name = garbage.name.as_str();
        let path = Utf8PathBuf::from(name);
        let is_orphaned = || self.without_project().iter().any(|(_, home)| *home == path);
        match garbage.kind {
            GarbageKind::Checkout if is_orphaned() => {
                checkout::remove_all(&path)?;
                Ok(None)
            }
            GarbageKind::TaskWorktree if is_orphaned() => {
                pool::remove_all(&path)?;
                Ok(None)
            }
            GarbageKind::Worktree => self.remove_worktree_of_loop(&path),
            GarbageKind::TaskWorktree => self.remove_task_worktree(&path),
            GarbageKind::Checkout => {
                let is_removed = checkout::remove(&self.project, &self.host.state_home, &path)?;
                Ok((!is_removed).then(|| in_use(name)))
            }
            GarbageKind::Output => {
                archive::remove_output(&self.project, &path)?;
                Ok(None)
            }
            GarbageKind::Branch => {
                let repository = self.repository_if_any()?.ok_or(GitError::NotARepository(path))?;
                let mut plans = self.uncleared_plans(&repository)?.into_iter();
                if let Some((plan, _)) = plans.find(|(_, branches)| branches.iter().any(|it| it == name)) {
                    self.clear_plan(&plan);
                    let Some(head) = repository.branch_head(name)? else { return Ok(None) };
                    let dir = self.project.plan_dir(&plan.spec.id).0;
                    if repository.checked_out(name, &dir)?.is_some() {
                        return Ok(Some(in_use(name)));
                    }
                    // If git cannot delete it, its error says why.
                    let is_gone = repository.drop_reference(&format!("refs/heads/{name}"), &head)?;
                    return Ok((!is_gone).then(|| format!("{name} has moved")));
                }
                let found = self
                    .merged_branches(&repository, &self.loops_that_are_over()?)?
                    .into_iter()
                    .any(|it| it.name == name);
                let Some(head) = repository.branch_head(name)?.filter(|_| found) else {
                    return Ok(Some(in_use(name)));
                };
                let is_gone = repository.drop_reference(&format!("refs/heads/{name}"), &head)?;
                Ok((!is_gone).then(|| format!("{name} has moved")))
            }
            GarbageKind::Discarded => {
                let repository = self.repository_if_any()?.ok_or(GitError::NotARepository(path))?;
                let Some(found) = self.discarded_refs().into_iter().find(|it| it.reference == name) else {
                    return Ok(None);
                };
                let is_gone = self.drop_discarded(&repository, &found)?;
                Ok((!is_gone).then(|| format!("{name} has moved")))
            }
            GarbageKind::Remote => {
                let repository = self.repository_if_any()?.ok_or(GitError::NotARepository(path))?;
                match self.over_at_remotes(&repository, Some(name))?.first() {
                    Some(over) => self.remove_at_remote(&repository, over),
                    None => Ok(Some(in_use(name))),
                }
            }
            GarbageKind::Demo => {
                if !self.is_unused_demo(&path) {
                    return Ok(Some(in_use(name)));
                }
                let dirs = Project::find(&path).ok().and_then(|project| project.loop_dirs().ok());
                let caches = self.with_its_caches(&path).into_iter().skip(1).filter(|home| home.is_dir());
                for home in caches {
                    // No runner works in the demo, and the next gc finds what stays.
                    let _ = pool::remove_all(&home);
                }
                let removed = fs::remove_dir_all(&path);
                removed.map_err(|source| DiskError { action: "remove", path, source })?;
                dirs.iter().flatten().for_each(|dir| self.host.signing().forget(dir));
                Ok(None)
            }
        }
    }

    /// Removes the folders of projects that hold no worktree any more. One that is not empty stays.
    pub fn remove_empty_folders(&self) {
        let entries = self.host.state_home.join("worktrees").read_dir_utf8();
        entries.into_iter().flatten().flatten().for_each(|folder| drop(fs::remove_dir(folder.path())));
    }

    /// The folders that `refrain demo` made among the temporary files for this state home, and that no runner works in.
    fn demos(&self) -> Vec<Utf8PathBuf> {
        let Ok(temporary) = Utf8PathBuf::from_path_buf(std::env::temp_dir()) else { return Vec::new() };
        let entries = temporary.read_dir_utf8().into_iter().flatten().flatten();
        entries.map(Utf8DirEntry::into_path).filter(|folder| self.is_unused_demo(folder)).collect()
    }

    fn is_unused_demo(&self, folder: &Utf8Path) -> bool {
        // A link is no folder; another user's folder is not the demo of this one.
        let owner = |path: &Utf8Path| {
            path.symlink_metadata().ok().filter(Metadata::is_dir).map(|folder| folder.uid())
        };
        let is_own_and_idle = || {
            let project = Project::find(folder).ok()?;
            let dirs = [project.loop_dirs().ok()?, project.plan_dirs().ok()?].concat();
            let signing = self.host.signing();
            Some(dirs.iter().any(|dir| signing.remembers(dir)) && dirs.iter().all(RunnerLock::is_free))
        };
        folder.file_name().is_some_and(|name| name.starts_with(DEMO_PREFIX))
            && !self.project.root.starts_with(folder)
            && owner(folder).is_some_and(|own| owner(&self.project.root) == Some(own))
            && folder.join("agent.sh").is_file()
            && is_own_and_idle() == Some(true)
    }

    fn remove_worktree_of_loop(&self, worktree: &Utf8Path) -> Result<Option<String>, EngineError> {
        let over = self.loops_that_are_over()?;
        let Some((state, dir)) = over.into_iter().find(|(state, _)| state.spec.worktree == worktree) else {
            return Ok(Some(in_use(worktree.as_str())));
        };
        let Some(_lock) = RunnerLock::try_take(&dir)? else { return Ok(Some(in_use(worktree.as_str()))) };
        let env = marked(&self.host.env, &state.spec);
        let repository =
            repository::open_in_sandbox(&self.project.root, &env, (&self.host, &state.spec, &dir))?;
        let branch = state.spec.git.new_branch().unwrap_or_default();
        // A loop whose setup failed has not begun.
        let began = match &state.git.began {
            Some(began) => Some(began.clone()),
            None => repository.branch_head(branch)?,
        };
        let Some(began) = began else { return Ok(Some(format!("{worktree} belongs to no branch"))) };
        Ok(match repository.remove_worktree(worktree, branch, &began, &state.git.prepared)? {
            Removal::Removed | Removal::BranchKept => None,
            Removal::Kept(why) => Some(why),
        })
    }

    fn remove_task_worktree(&self, dir: &Utf8Path) -> Result<Option<String>, EngineError> {
        let number = dir.file_name().and_then(|name| name.parse().ok());
        let slot = match number {
            Some(number) => Slot::take_number(&self.project, &self.host.state_home, number)?,
            None => None,
        };
        let (Some(slot), Some(repository)) = (slot, self.repository_if_any()?) else {
            return Ok(Some(in_use(dir.as_str())));
        };
        let repository = in_sandbox_of_slot(&self.host, &repository, &slot.dir())?;
        match repository.remove_slot(&slot.folder(), &slot.dir())? {
            Removal::Removed | Removal::BranchKept => {
                slot.remove()?;
                Ok(None)
            }
            Removal::Kept(why) => Ok(Some(why)),
        }
    }

    /// The branches of loops that are over, if what is checked out has all their work and they are checked out nowhere.
    fn merged_branches(
        &self,
        repository: &Repository,
        over: &[(LoopState, LoopDir)],
    ) -> Result<Vec<Garbage>, EngineError> {
        // Without a commit, or with a detached head in the middle of something, nothing counts as merged.
        let Ok((head, current)) = repository.begin_of_plan() else { return Ok(Vec::new()) };
        let mut all = Vec::new();
        for (state, dir) in over {
            let Some(branch) = state.spec.git.new_branch().filter(|it| current.as_deref() != Some(*it))
            else {
                continue;
            };
            let Some(at) = repository.branch_head(branch)? else { continue };
            // A squashed merge has the work without its commits. Commits that undo each other have no work that could be there.
            let began = state.git.began.as_ref().map(|began| repository.tree_of(began)).transpose()?;
            let has_work = began != Some(repository.tree_of(&at)?);
            let is_merged = has_commits(repository, &head, &at)?
                || has_work && matches!(self.branch_state_of(dir, state), Ok(Some(OwnBranch::Merged { .. })));
            if is_merged && repository.checked_out(branch, &dir.0)?.is_none() {
                all.push(Garbage { kind: GarbageKind::Branch, name: branch.to_owned(), bytes: 0 });
            }
        }
        Ok(all)
    }

    /// The loops that cannot continue, with their folders: those that are completed or cancelled, archived ones included. One
    /// that cannot be read is none of them.
    fn loops_that_are_over(&self) -> Result<Vec<(LoopState, LoopDir)>, EngineError> {
        let mut dirs = self.project.loop_dirs()?;
        dirs.extend(archive::dirs_before(&self.project, i64::MAX));
        let over = |dir: LoopDir| {
            let state = journal::read_signed(&dir, &self.host.signing()).ok()?.state;
            state.is_final().then_some((state, dir))
        };
        Ok(dirs.into_iter().filter_map(over).collect())
    }

    /// Whether a plan could continue: its tasks come back to their worktrees.
    fn has_open_plan(&self) -> Result<bool, EngineError> {
        let is_open = |dir: &LoopDir| {
            let plan = journal::read_as::<PlanState>(dir);
            plan.map_or(true, |plan| !plan.state.lifecycle.is_final())
        };
        Ok(self.project.plan_dirs()?.iter().any(is_open))
    }

    /// The repository that the project is in; none if it is a plain folder.
    fn repository_if_any(&self) -> Result<Option<Repository>, EngineError> {
        let env = environment::of_person(self.host.env.iter().cloned());
        match Repository::open(&self.project.worktree, &env) {
            Ok(repository) => Ok(Some(repository)),
            Err(GitError::NotARepository(_) | GitError::Missing(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

fn has_commits(repository: &Repository, into: &Oid, at: &Oid) -> Result<bool, GitError> {
    match repository.stands_on(into, at, None) {
        Ok(base) => Ok(base == *at),
        // One that cannot be compared stays.
        Err(GitError::Failed { .. } | GitError::ForgedObject(_) | GitError::Unrelated { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}
