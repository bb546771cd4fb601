//! Discarding a loop: its branch, with what no commit had, becomes a reference that no list of branches shows.

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::event::{Ask, Asker, Urgency};
use refrain_core::git::{Base, Oid};
use refrain_core::plan::TaskStarted;
use refrain_core::view::StatusWord;
use refrain_core::{LoopId, LoopState, Spec};
use refrain_git::{Bounds, GitError, Repository, TreeRequest, Worktree};
use refrain_store::{LoopDir, journal};

use crate::git_steps::differences::named;
use crate::git_steps::merge::own_branch::TaskBranch;
use crate::git_steps::repository::{self, marked};
use crate::{ByKind, EngineError, LoopLocation, LoopRequest, Service};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiscardOutcome {
    pub archived: Utf8PathBuf,
    /// It was discarded, or archived and left no branch, before: nothing was changed.
    pub was_archived: bool,
    pub kept: Vec<KeptWork>,
    /// The branch that stays, as it is that of a task, and the plan that has it.
    pub stays: Option<(String, LoopId)>,
}

/// Discarded work that a reference keeps for 30 days.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptWork {
    /// The branch that was removed; none if the work was on none.
    pub branch: Option<String>,
    pub reference: String,
    /// How many of its files were in no commit; the reference has them.
    pub uncommitted: usize,
}

/// Why a loop or plan was not discarded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiscardRefusal {
    Running,
    CheckedOut {
        branch: String,
        worktree: Utf8PathBuf,
    },
    /// Its worktree holds something that a commit cannot keep.
    NotKept {
        worktree: Utf8PathBuf,
        why: String,
    },
}

impl Service {
    /// Archives a loop or plan that has stopped, and keeps its work as `refs/refrain/discarded/ID` for 30 days. One that could
    /// still continue is cancelled. It may be repeated.
    pub fn discard(
        &self,
        id: &LoopId,
        by: Asker,
    ) -> Result<Result<DiscardOutcome, DiscardRefusal>, EngineError> {
        match self.find(id)? {
            ByKind::Loop(found) => self.discard_loop(id, found, by),
            ByKind::Plan(dir) if dir == self.project.plan_dir(id) => self.discard_plan(id, &dir, by),
            ByKind::Plan(dir) => {
                let (mut before, spec) = (self.discarded_before(id, dir), self.plan(id)?.spec);
                let of_round = |round: TaskStarted| {
                    let (branch, reference) =
                        (spec.branch(&round.task, round.round), self.discarded(&round.id)?);
                    Some(KeptWork { branch: Some(branch), reference, uncommitted: 0 })
                };
                before.kept.extend(self.plan_rounds(id)?.into_iter().filter_map(of_round));
                Ok(Ok(before))
            }
        }
    }

    fn discarded_before(&self, id: &LoopId, LoopDir(archived): LoopDir) -> DiscardOutcome {
        let kept = |reference| KeptWork { branch: None, reference, uncommitted: 0 };
        let kept = self.discarded(id).map(kept).into_iter().collect();
        DiscardOutcome { archived, was_archived: true, kept, stays: None }
    }

    fn discard_loop(
        &self,
        id: &LoopId,
        LoopLocation { dir, archived }: LoopLocation,
        by: Asker,
    ) -> Result<Result<DiscardOutcome, DiscardRefusal>, EngineError> {
        let word = self.status(id)?.status;
        if !is_at_rest(word) {
            return Ok(Err(DiscardRefusal::Running));
        }
        // A runner that has recorded the end may still be leaving.
        drop(self.lock_of_ended::<LoopState>(id, &dir)?);
        self.refuse_moved(id, &dir, LoopRequest::Discard)?;
        let state = journal::read_signed(&dir, &self.host.signing())?.state;
        // One that is kept for good holds what its agent put elsewhere than on its branch.
        let holds_worktree = state.holds_worktree() || (!archived && state.git.kept.is_some());
        let stays = self.task_branch(&state);
        let (spec, began, last) = (state.spec, state.git.began, state.git.head);
        let repository = match spec.git.new_branch() {
            Some(branch) => {
                let env = marked(&self.host.env, &spec);
                let of = (&self.host, &spec, &dir);
                Some((branch, repository::open_in_sandbox(&self.project.root, &env, of)?))
            }
            None => None,
        };
        let is_own = spec.git.checkout.is_own_worktree();
        // Another loop may have its worktree there, if this one never had any.
        let is_on_branch = |(branch, repository): &(&str, Repository)| -> Result<bool, GitError> {
            let own = spec.worktree.canonicalize_utf8().unwrap_or_else(|_| spec.worktree.clone());
            let is_it = |listed: &Worktree| listed.path == own && listed.branch.as_deref() == Some(*branch);
            Ok(repository.worktrees()?.iter().any(is_it))
        };
        let has_it = is_own
            && (holds_worktree || repository.as_ref().map(is_on_branch).transpose()?.unwrap_or_default());
        let has_worktree = has_it && spec.worktree.is_dir();
        // Long after the end, another loop or the user may have made a branch of that name.
        let is_known = |head: &Oid| !archived || has_it || last.as_ref() == Some(head);
        let head = match &repository {
            Some((branch, repository)) => repository.branch_head(branch)?.filter(is_known),
            None => None,
        };
        let (mut kept, has_branch) = (Vec::new(), head.is_some());
        // Without commits its branch was removed; its agent may have committed elsewhere.
        let head = head.or_else(|| began.clone().filter(|_| !archived && has_worktree));
        if let (Some((branch, repository)), Some(head)) = (&repository, head) {
            // Without a worktree of its own the branch must be checked out nowhere: the folder of the loop is no worktree.
            let own = if is_own { &spec.worktree } else { &dir.0 };
            if let Some(worktree) = repository.checked_out(branch, own)? {
                return Ok(Err(DiscardRefusal::CheckedOut { branch: (*branch).to_owned(), worktree }));
            }
            let (work, uncommitted) = match has_worktree {
                false => (head, 0),
                true => match self.keep_uncommitted(&spec.worktree, &spec, (id, &dir), head)? {
                    Ok(work) => work,
                    Err(why) => return Ok(Err(why)),
                },
            };
            if began.as_ref() != Some(&work) {
                let reference = self.keep_discarded(repository, id, &work)?;
                let branch = has_branch.then(|| (*branch).to_owned());
                kept.push(KeptWork { branch, reference, uncommitted });
            }
        }
        if archived && !has_branch {
            return Ok(Ok(self.discarded_before(id, dir)));
        }
        if !archived && !word.is_over() {
            self.ask(id, LoopRequest::Cancel, (Ask::Cancel(Urgency::Now), by), |_| {})?;
        }
        if let Some((branch, repository)) = &repository {
            // A cancelled loop without work removes its worktree itself.
            if has_it
                && spec.worktree.is_dir()
                && let Some(why) = repository.remove_saved_worktree(&spec.worktree)?
            {
                return Ok(Err(DiscardRefusal::NotKept { worktree: spec.worktree, why }));
            }
            if let Some(head) = repository.branch_head(branch)?.filter(|_| has_branch) {
                repository.drop_reference(&format!("refs/heads/{branch}"), &head)?;
            }
            self.prune_discarded(repository)?;
        }
        let env = marked(&self.host.env, &spec);
        let is_there = |task: &TaskBranch| {
            let repository = repository::open(&self.project.root, &env, &spec);
            repository
                .and_then(|repository| repository.branch_head(&task.branch))
                .is_ok_and(|head| head.is_some())
        };
        let stays = stays.filter(is_there).map(|task| (task.branch, task.plan));
        let archived = if archived { dir.0 } else { self.archive(id)? };
        Ok(Ok(DiscardOutcome { archived, was_archived: false, kept, stays }))
    }

    /// A commit that has `head` and everything in a worktree that git does not ignore, and how many files no commit had; a
    /// refusal if a commit leaves some of it out, such as a secret. Neither the worktree nor a branch is changed.
    pub(crate) fn keep_uncommitted(
        &self,
        worktree: &Utf8Path,
        spec: &Spec,
        (id, dir): (&LoopId, &LoopDir),
        head: Oid,
    ) -> Result<Result<(Oid, usize), DiscardRefusal>, EngineError> {
        let not_kept = |why| Ok(Err(DiscardRefusal::NotKept { worktree: worktree.to_owned(), why }));
        let env = marked(&self.host.env, spec);
        let there = repository::open_in_sandbox(worktree, &env, (&self.host, spec, dir))?;
        let found = there.survey()?;
        if let Some(operation) = found.operation {
            return not_kept(format!("a {operation} is in progress in it"));
        }
        let (at, files) = (found.head.unwrap_or_else(|| head.clone()), found.dirty.len());
        if files == 0 && at == head {
            return Ok(Ok((head, 0)));
        }
        let index = Utf8PathBuf::from(format!("{}.discard", dir.index()));
        let (tree, left_out) = there.tree_and_rest(TreeRequest {
            base: &Base::default(),
            index: &index,
            bounds: Bounds { largest_file: u64::MAX / 2, ..Bounds::of(&spec.git, None) },
        })?;
        if !left_out.is_empty() {
            return not_kept(named(&left_out));
        }
        let parents = if at == head { vec![&head] } else { vec![&at, &head] };
        let message = format!("Work of {id} that was not committed\n");
        let commit = there.commit_of(&parents, &tree, &message, &[("Refrain-Loop", id.as_str())], None)?;
        Ok(Ok((commit, files)))
    }
}

/// Whether no process drives it.
pub(crate) fn is_at_rest(word: StatusWord) -> bool {
    word.has_stopped() || word == StatusWord::Crashed
}
