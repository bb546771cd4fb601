//! The end of a plan: what it landed is shown, merged or discarded. A plan has no branch of its own; its work is the line of
//! commits from its base to its tip.

use std::sync::Arc;

use camino::Utf8PathBuf;
use refrain_agents::environment;
use refrain_core::LoopId;
use refrain_core::event::{Ask, Asker, Urgency};
use refrain_core::git::Oid;
use refrain_core::plan::{PlanState, TaskId};
use refrain_core::text::printable;
use refrain_core::view::plan::{PlanStatus, UncommittedWork, WaveCommit};
use refrain_core::view::{StatusWord, Verification};
use refrain_git::{GitError, MergeRequest, MergeResult as Merge, Repository};
use refrain_store::project::archive;
use refrain_store::project::pool::{self, Slot};
use refrain_store::{LoopDir, journal};

use super::landing::Landing;
use crate::git_steps::differences::TreePair;
use crate::git_steps::discard::is_at_rest;
use crate::git_steps::merge::{MergeWork, refused_if_used};
use crate::git_steps::pool::folder;
use crate::git_steps::repository::{self, marked};
use crate::{
    DiscardOutcome, DiscardRefusal, EngineError, KeptWork, LoopRequest, MergeKind, MergeOptions,
    MergeRefusal, MergedBranch, Service, UnverifiedCause,
};

impl Service {
    /// The trees before and after what a plan has landed so far.
    pub(crate) fn plan_trees(&self, id: &LoopId) -> Result<Result<TreePair, String>, EngineError> {
        let state = self.plan(id)?;
        let (Some((base, _)), Some(tip)) = (&state.base, &state.tip) else {
            return Ok(Err("The plan has not begun.".to_owned()));
        };
        let repository = self.plan_repository(&state)?;
        let tree = repository.tree_of(tip)?;
        let note = format!("What the plan has landed, {}, against commit {}.", tip.short(), base.short());
        Ok(Ok(TreePair { repository, from: Some(base.clone()), tree, note, spec: *state.spec.each }))
    }

    /// Merges what a plan has landed into what is checked out here.
    pub(crate) async fn merge_plan(
        &self,
        id: &LoopId,
        dir: &LoopDir,
        options: MergeOptions<'_>,
    ) -> Result<Result<MergedBranch, MergeRefusal>, EngineError> {
        let status = self.plan_status(id)?;
        if !status.status.has_stopped() {
            return Ok(Err(MergeRefusal::Running));
        }
        if !status.status.is_over() {
            return Ok(Err(MergeRefusal::Continues(status.status)));
        }
        let lock = Arc::new(self.runner_lock::<PlanState>(id, dir)?);
        let state: PlanState = journal::read_as(dir)?.state;
        let Some(tip) =
            state.tip.clone().filter(|tip| state.base.as_ref().is_some_and(|(base, _)| base != tip))
        else {
            return Ok(Err(MergeRefusal::Empty));
        };
        let _worktree = match refused_if_used(self)? {
            Ok(lock) => lock,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let env = marked(&self.host.env, &state.spec.each);
        let repository = repository::open(&self.project.worktree, &env, &state.spec.each)?;
        let (ours, into) = repository.begin_of_plan()?;
        if repository.stands_on(&ours, &tip, None)? == tip {
            let (name, how) = (format!("plan {id}"), MergeKind::UpToDate);
            return Ok(Ok(MergedBranch { name, into, head: ours, how, submodules: Vec::new() }));
        }
        // What a cancelled plan landed passed its gates, as each landing does.
        let is_verified = status.verification() == Verification::Verified
            || status.status == StatusWord::Cancelled && state.spec.each.has_hard_gates();
        if !is_verified && !options.unverified {
            return Ok(Err(MergeRefusal::Unverified(UnverifiedCause::NoGate)));
        }
        let subject = printable(&format!("Tasks of {}", state.spec.tag)).replace('\n', " ");
        let work = MergeWork {
            id,
            spec: &state.spec.each,
            dir,
            lock: &lock,
            seq: state.seq,
            name: format!("plan {id}"),
            revision: tip.to_string(),
            message: format!("Merge plan '{id}'\n"),
            commit: tip,
            line: None,
            subject,
            trailer: "Refrain-Plan",
        };
        self.merge_work(&repository, work, &env, options).await
    }

    /// Archives a plan with the loops of its tasks. What it landed and no branch has, and what its tasks left, is kept.
    pub(crate) fn discard_plan(
        &self,
        id: &LoopId,
        dir: &LoopDir,
        by: Asker,
    ) -> Result<Result<DiscardOutcome, DiscardRefusal>, EngineError> {
        let status = self.plan_status(id)?;
        if !is_at_rest(status.status) {
            return Ok(Err(DiscardRefusal::Running));
        }
        // A runner that has recorded the end may still be leaving.
        drop(self.lock_of_ended::<PlanState>(id, dir)?);
        let state = self.plan(id)?;
        let repository = self.plan_repository(&state)?;
        let left = self.plan_branches(&state);
        let (mut kept, mut saved) = (Vec::new(), Vec::new());
        let rounds = self.plan_rounds(id)?;
        for round in &rounds {
            let branch = state.spec.branch(&round.task, round.round);
            let Some(head) = repository.branch_head(&branch)? else { continue };
            let worktree = repository.checked_out(&branch, &dir.0)?;
            let slot = worktree.as_ref().and_then(|worktree| self.slot_number(worktree));
            let (work, uncommitted) = match (worktree, slot) {
                (None, _) => (head, 0),
                (Some(worktree), None) => return Ok(Err(DiscardRefusal::CheckedOut { branch, worktree })),
                (Some(worktree), Some(slot)) => {
                    let of = (&round.id, dir);
                    match self.keep_uncommitted(&worktree, &state.spec.each, of, head.clone()) {
                        Ok(Ok((work, files))) => {
                            saved.extend((files > 0).then_some((worktree, slot)));
                            (work, files)
                        }
                        Ok(Err(why)) => return Ok(Err(why)),
                        // The worktree stays as it is, and is held.
                        Err(EngineError::Git(error)) if error.is_of_objects() => (head, 0),
                        Err(error) => return Err(error),
                    }
                }
            };
            if uncommitted > 0 || left.contains(&branch) {
                let reference = self.keep_discarded(&repository, &round.id, &work)?;
                kept.push(KeptWork { branch: Some(branch), reference, uncommitted });
            }
        }
        // What was saved of a worktree of the pool, or of work that failed.
        let mut removed = Vec::new();
        for branch in left.into_iter().filter(|branch| branch.starts_with("wip/")) {
            let of = rounds.iter().find(|round| state.spec.is_saved_of(round, &branch));
            let (Some(round), Some(head)) = (of, repository.branch_head(&branch)?) else { continue };
            if let Some(worktree) = repository.checked_out(&branch, &dir.0)? {
                return Ok(Err(DiscardRefusal::CheckedOut { branch, worktree }));
            }
            let reference = self.keep_discarded(&repository, &round.id, &head)?;
            removed.push((format!("refs/heads/{branch}"), head));
            kept.push(KeptWork { branch: Some(branch), reference, uncommitted: 0 });
        }
        if let (Some(_), Some(tip)) = (&status.behind, &state.tip) {
            let reference = self.keep_discarded(&repository, id, tip)?;
            kept.push(KeptWork { branch: None, reference, uncommitted: 0 });
        }
        if !status.status.is_over() {
            self.ask(id, LoopRequest::Cancel, (Ask::Cancel(Urgency::Now), by), |_| {})?;
        }
        for (worktree, number) in saved {
            if let Some(slot) = Slot::take_number(&self.project, &self.host.state_home, number)?
                && repository.remove_saved_worktree(&worktree)?.is_none()
            {
                slot.remove()?;
            }
        }
        let tasks: Vec<(TaskId, u32)> =
            state.tasks.iter().map(|task| (task.card.id.clone(), task.rounds)).collect();
        let env = environment::of_git(&state.spec.each, self.host.env.iter().cloned());
        Landing::new(self, &state, &self.host, env).retire(&state.spec, &tasks);
        let lines = repository.references(&[state.spec.line(), state.spec.last_wave()])?;
        let lines = lines.into_iter().map(|(name, (at, _))| (name, at));
        repository.drop_references(&lines.chain(removed).collect())?;
        self.prune_discarded(&repository)?;
        for round in &rounds {
            match self.archive(&round.id) {
                // An earlier call archived it, or the user did.
                Ok(_) | Err(EngineError::NoLoop { .. } | EngineError::Archived(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Ok(DiscardOutcome {
            archived: self.archive_plan(id, dir)?,
            was_archived: false,
            kept,
            stays: None,
        }))
    }

    fn archive_plan(&self, id: &LoopId, dir: &LoopDir) -> Result<Utf8PathBuf, EngineError> {
        let _lock = self.lock_of_ended::<PlanState>(id, dir)?;
        let ended = journal::read_as::<PlanState>(dir)?.state.ended;
        let ended = ended.ok_or_else(|| EngineError::NotStopped(id.clone()))?;
        let archived = archive::put_plan_aside(&self.project, id, ended.at)?;
        self.host.signing().moved(dir, &LoopDir(archived.clone()));
        Ok(archived)
    }

    /// Work of a stopped plan's tasks that is in no commit.
    pub(super) fn tell_uncommitted(&self, state: &PlanState, view: &mut PlanStatus) {
        let own = format!("refrain/{}/", state.spec.id);
        let dir = self.project.plan_dir(&state.spec.id);
        let Ok(repository) = self.plan_repository(state) else { return };
        let env = environment::of_git(&state.spec.each, self.host.env.iter().cloned());
        for listed in repository.worktrees().unwrap_or_default() {
            let Some(branch) = listed.branch.filter(|branch| branch.starts_with(&own)) else { continue };
            let of = (&self.host, &*state.spec.each, &dir);
            let found = repository::open_in_sandbox(&listed.path, &env, of);
            let files = found.and_then(|there| there.survey()).map_or(0, |base| base.dirty.len());
            if files > 0 {
                view.uncommitted.push(UncommittedWork { branch, folder: listed.path.to_string(), files });
            }
        }
    }

    /// Waves that the branch of a stopped plan had, and no longer has.
    pub(super) fn tell_missing(&self, state: &PlanState, view: &mut PlanStatus) {
        let Some((_, Some(branch))) = &state.base else { return };
        // Nothing that is only compared stays in the repository.
        let repository = self.plan_repository(state).and_then(|repository| {
            Ok(repository.with_private_objects(&self.project.plan_dir(&state.spec.id).0)?)
        });
        let Ok(repository) = repository else { return };
        let Ok(Some(head)) = repository.branch_head(branch) else { return };
        let due = view.behind.as_ref().map_or(&[][..], |behind| &behind.tasks);
        let was_handed_over =
            |wave: &&WaveCommit| !wave.tasks_completed.iter().any(|task| due.contains(task));
        let lacks = |wave: &&WaveCommit| {
            let commit = wave.commit_hash.parse().ok();
            commit.is_some_and(|commit| lacks(&repository, &head, &commit).unwrap_or(false))
        };
        view.missing = view.wave_commits.iter().filter(was_handed_over).filter(lacks).cloned().collect();
    }

    fn plan_repository(&self, state: &PlanState) -> Result<Repository, EngineError> {
        let env = environment::of_git(&state.spec.each, self.host.env.iter().cloned());
        let dir = self.project.plan_dir(&state.spec.id);
        Ok(repository::open_in_sandbox(&self.project.root, &env, (&self.host, &state.spec.each, &dir))?)
    }

    /// The number of the pool's worktree in a folder.
    fn slot_number(&self, worktree: &Utf8PathBuf) -> Option<u32> {
        let real = |path: Utf8PathBuf| path.canonicalize_utf8().unwrap_or(path);
        let all = pool::found(&self.project, &self.host.state_home);
        let found = all.iter().find(|found| real(folder(&self.project, found)) == *worktree)?;
        Some(found.number)
    }
}

/// Whether a commit is not in the history of this head, and what it changed is not in its files: a rebase or an amended
/// commit keeps that.
fn lacks(repository: &Repository, head: &Oid, commit: &Oid) -> Result<bool, GitError> {
    if repository.is_behind(commit, head)? {
        return Ok(false);
    }
    let Some(base) = repository.reference(&format!("{commit}^"))? else { return Ok(false) };
    let index = repository.git_dir().join("unused");
    let request =
        MergeRequest { base: &base, tip: head, work: commit, except: &[], index: &index, cancel: None };
    Ok(match repository.merge(request)? {
        Merge::Clean { tree } => tree != repository.tree_of(head)?,
        Merge::Conflict { .. } => false,
    })
}
