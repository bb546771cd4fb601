//! Merging the branch of a loop into what the user has checked out. Nothing is changed before the merged tree is known to be
//! good; the files of the user stay as they are, or the merge is refused.

pub(crate) mod own_branch;

use std::ffi::OsString;
use std::sync::Arc;

use camino::Utf8PathBuf;
use refrain_core::event::Event;
use refrain_core::gate::GateSpec;
use refrain_core::git::{CommitResult, Oid, PublishResult, RepoPath, subject};
use refrain_core::memory::goal;
use refrain_core::plan::{FailedGate, TaskId};
use refrain_core::protect::LocalCommit;
use refrain_core::view::{StatusWord, Verification, WaitsFor};
use refrain_core::{LoopId, LoopState, Record, Spec};
use refrain_git::{
    Cancel, GitError, HandOverRequest, HandedOver, MergeRequest, MergeResult as Merge, Repository,
};
use refrain_store::{LoopDir, RunnerLock, WorktreeLock, journal};
use tokio::sync::watch;

use self::own_branch::{OwnBranch, TaskBranch};
use crate::git_steps::repository::{self, OtherHead, marked};
use crate::plan::landing::{self, Landing};
use crate::plan::verify::{GateNotice, GateOutcome, TreeVerification};
use crate::{ByKind, EngineError, LoopRequest, Service};

/// How the branch of a loop is merged.
#[derive(Clone, Copy)]
pub struct MergeOptions<'a> {
    pub squash: bool,
    /// Also if no gate verified it.
    pub unverified: bool,
    pub notice: GateNotice<'a>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergedBranch {
    /// What was merged: the loop's branch, or `plan ID`.
    pub name: String,
    /// The branch that has it now; none if the head is detached.
    pub into: Option<String>,
    pub head: Oid,
    pub how: MergeKind,
    /// The submodules that it has moved or added to a commit of which no remote is known here to have it.
    pub submodules: Vec<LocalCommit>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeKind {
    /// Nothing: the branch was merged before.
    UpToDate,
    FastForward,
    Merge,
    Squash,
}

/// Why a branch was not merged. Nothing was changed.
#[derive(Clone, Debug, PartialEq)]
pub enum MergeRefusal {
    /// The loop has not stopped.
    Running,
    /// The loop has no branch of its own.
    NoBranch {
        worked_on: Option<String>,
        /// Where it worked, and how many files are not committed there.
        folder: Utf8PathBuf,
        uncommitted: usize,
        /// The branch or commit with its commits, if what is checked out here lacks them.
        unmerged: Option<String>,
        has_git: bool,
    },
    /// It is the loop of a task that has landed with its plan.
    Landed {
        plan: LoopId,
        task: TaskId,
        /// The task's commit, and whether what is checked out here has it; none if nothing was changed.
        commit: Option<(Oid, bool)>,
    },
    /// The plan can continue and hand over its work itself; how it stands.
    Continues(StatusWord),
    /// The plan has landed nothing.
    Empty,
    /// Its agent committed there, and nothing to its own branch.
    Switched(OtherHead),
    /// The loop committed nothing, so its branch was removed with its worktree.
    NoWork,
    BranchGone {
        branch: String,
        /// Its last commit on record, if the repository has it.
        last: Option<Oid>,
        /// The reference that keeps it, if the loop was discarded.
        discarded: Option<String>,
    },
    /// Other loops work in this folder.
    Used {
        folder: Utf8PathBuf,
        by: Vec<String>,
    },
    /// Work of the loop is not committed.
    Uncommitted {
        worktree: Utf8PathBuf,
        files: Vec<RepoPath>,
        /// The gates passed on the branch, without these files.
        is_verified: bool,
        /// The gates passed on work that is not on the branch: with these files as they were then.
        with_files: bool,
    },
    /// Its branch is the one that is checked out.
    CheckedOut(String),
    Unverified(UnverifiedCause),
    /// Its gates passed, and the user has not approved it.
    AwaitsApproval,
    Conflicts {
        /// What was to be merged, as git takes it: a branch or a commit.
        revision: String,
        paths: Vec<RepoPath>,
        /// The gates of the loop, or of the tasks of the plan.
        gates: Vec<GateSpec>,
    },
    GateFailed {
        revision: String,
        gate: String,
        log: Utf8PathBuf,
        gates: Vec<GateSpec>,
    },
    /// The user's branch or files are in the way: why.
    Refused(String),
}

/// Why work counts as unverified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnverifiedCause {
    /// It completed without a required gate.
    NoGate,
    /// Its end is not signed with a key that the user trusts.
    Unsigned,
    /// Its branch was changed after the gates passed.
    BranchChanged,
    /// It ended otherwise than completed.
    NotCompleted(StatusWord),
}

impl Service {
    /// Merges the branch of a loop, or what a plan landed, into what is checked out here: by moving the branch if that is enough, else by a commit whose
    /// tree the required gates passed on.
    pub async fn merge(
        &self,
        id: &LoopId,
        options: MergeOptions<'_>,
    ) -> Result<Result<MergedBranch, MergeRefusal>, EngineError> {
        let dir = match self.find(id)? {
            ByKind::Loop(found) => found.dir,
            ByKind::Plan(dir) => return self.merge_plan(id, &dir, options).await,
        };
        let status = self.status(id)?;
        if !status.has_stopped() {
            return Ok(Err(MergeRefusal::Running));
        }
        if status.status == StatusWord::Moved {
            self.refuse_moved(id, &dir, LoopRequest::Merge)?;
        }
        if status.waits_for == Some(WaitsFor::Approval) && !options.unverified {
            return Ok(Err(MergeRefusal::AwaitsApproval));
        }
        let lock = Arc::new(self.lock_of_ended::<LoopState>(id, &dir)?);
        let journal::Whole { state, records, .. } = journal::whole(&dir, &self.host().signing())?;
        let spec = &state.spec;
        let Some(branch) = spec.git.new_branch().map(str::to_owned) else {
            let env = marked(&self.host.env, spec);
            if let Some(TaskBranch { plan, task, landed: Some(commit), .. }) = self.task_branch(&state) {
                let repository = repository::open(&self.project.worktree, &env, spec)?;
                let (head, _) = repository.begin_of_plan()?;
                let has = |commit: &Oid| {
                    repository.stands_on(&head, commit, None).is_ok_and(|base| base == *commit)
                };
                let commit = commit.map(|commit| (commit.clone(), has(&commit)));
                return Ok(Err(MergeRefusal::Landed { plan, task, commit }));
            }
            let there = repository::open_in_sandbox(&spec.worktree, &env, (&self.host, spec, &dir));
            let has_git = there.is_ok();
            let before = state.git.base.as_ref().map(|base| base.dirty.as_slice()).unwrap_or_default();
            let uncommitted = there.and_then(|there| {
                let files = there.survey()?.dirty.into_iter().map(|it| it.path).collect();
                Ok(there.unprepared(files, before).len())
            });
            // Files that the loop did not leave are the user's.
            let has_committed_all = status.status == StatusWord::Completed
                && state.git.last.as_ref().is_some_and(|last| !last.is_explained());
            let uncommitted = uncommitted.ok().filter(|_| !has_committed_all).unwrap_or_default();
            let unmerged = self.unmerged(&state, &env, status.branch.as_deref()).unwrap_or_default();
            let (worked_on, folder) = (status.branch, spec.worktree.clone());
            return Ok(Err(MergeRefusal::NoBranch { worked_on, folder, uncommitted, unmerged, has_git }));
        };
        let env = marked(&self.host.env, spec);
        let repository = repository::open(&self.project.worktree, &env, spec)?;
        let head = repository.branch_head(&branch)?;
        let there = spec.worktree != self.project.worktree && spec.worktree.is_dir();
        let there = there
            .then(|| repository::open_in_sandbox(&spec.worktree, &env, (&self.host, spec, &dir)))
            .transpose()
            .or_else(|error| if head.is_none() { Ok(None) } else { Err(error) })?;
        if let Some(there) = &there
            && let Some(began) = &state.git.began
            && let Some(other) = repository::switched_to(there, spec, began)?
        {
            return Ok(Err(MergeRefusal::Switched(other)));
        }
        let Some(work) = head else {
            return Ok(match self.branch_state_of(&dir, &state)? {
                Some(OwnBranch::Merged { into, .. }) => {
                    let ((head, _), how) = (repository.begin_of_plan()?, MergeKind::UpToDate);
                    Ok(MergedBranch { name: branch, into, head, how, submodules: Vec::new() })
                }
                Some(OwnBranch::Empty) => Err(MergeRefusal::NoWork),
                Some(OwnBranch::Open | OwnBranch::Landed(_) | OwnBranch::Discarded(_) | OwnBranch::Gone)
                | None => {
                    let last = state.git.head.clone().filter(|head| repository.tree_of(head).is_ok());
                    Err(MergeRefusal::BranchGone { branch, last, discarded: self.discarded(id) })
                }
            });
        };
        if repository.branch()?.as_ref() == Some(&branch) {
            return Ok(Err(MergeRefusal::CheckedOut(branch)));
        }
        let work_tree = repository.tree_of(&work)?;
        let is_verified = status.verification() == Verification::Verified;
        let has_moved = status.tree.as_deref() != Some(work_tree.as_str());
        if let Some(there) = there {
            let files = there.survey()?.dirty.into_iter().map(|it| it.path).collect();
            let files = there.unprepared(files, &state.git.prepared);
            if !files.is_empty() {
                let (is_verified, with_files) = (is_verified && !has_moved, is_verified && has_moved);
                let worktree = spec.worktree.clone();
                return Ok(Err(MergeRefusal::Uncommitted { worktree, files, is_verified, with_files }));
            }
        }
        if (!is_verified || has_moved) && !options.unverified {
            let cause = match (is_verified, status.status) {
                (true, _) => UnverifiedCause::BranchChanged,
                (false, StatusWord::Completed) if status.signed == Some(false) => UnverifiedCause::Unsigned,
                (false, StatusWord::Completed) => UnverifiedCause::NoGate,
                (false, word) => UnverifiedCause::NotCompleted(word),
            };
            return Ok(Err(MergeRefusal::Unverified(cause)));
        }
        let _worktree = match refused_if_used(self)? {
            Ok(lock) => lock,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let work = MergeWork {
            id,
            spec,
            dir: &dir,
            lock: &lock,
            seq: state.seq,
            subject: subject(&goal(spec)).unwrap_or_else(|| format!("Work of {branch}")),
            message: format!("Merge branch '{branch}'\n"),
            revision: branch.clone(),
            name: branch,
            commit: work,
            line: state.git.began.as_ref().map(|began| LineOfWork::of(began, &records)),
            trailer: "Refrain-Loop",
        };
        self.merge_work(&repository, work, &env, options).await
    }

    /// Where the commits of a loop without a branch of its own are, if what is checked out here lacks them.
    fn unmerged(
        &self,
        state: &LoopState,
        env: &[(OsString, OsString)],
        worked_on: Option<&str>,
    ) -> Result<Option<String>, GitError> {
        let Some(last) = state.git.commits.last() else { return Ok(None) };
        let repository = repository::open(&self.project.worktree, env, &state.spec)?;
        repository.tree_of(last)?;
        let has = |head: &Oid| repository.stands_on(head, last, None).is_ok_and(|base| base == *last);
        if has(&repository.begin_of_plan()?.0) {
            return Ok(None);
        }
        let branch = match worked_on {
            Some(branch) => repository.branch_head(branch)?.filter(has).and(worked_on),
            None => None,
        };
        Ok(Some(branch.map_or_else(|| last.short().to_string(), str::to_owned)))
    }

    pub(crate) async fn merge_work(
        &self,
        repository: &Repository,
        work: MergeWork<'_>,
        env: &[(OsString, OsString)],
        options: MergeOptions<'_>,
    ) -> Result<Result<MergedBranch, MergeRefusal>, EngineError> {
        let MergeWork {
            id,
            spec,
            dir,
            lock,
            seq,
            name,
            revision,
            commit: work,
            line,
            message,
            subject,
            trailer,
        } = work;
        let (ours, into) = repository.begin_of_plan()?;
        let merged = |head: &Oid, how| {
            let submodules = repository
                .new_entries(Some(&ours), head)
                .and_then(|entries| repository.local_commits(&entries, true));
            let submodules = submodules.unwrap_or_default();
            let (name, into, head) = (name.clone(), into.clone(), head.clone());
            Ok(Ok(MergedBranch { name, into, head, how, submodules }))
        };
        let index = Utf8PathBuf::from(format!("{}.merge", dir.index()));
        let why = format!("refrain merge {id}");
        let branch = into.as_deref();
        let request = HandOverRequest {
            id,
            branch,
            expected: &ours,
            to: &ours,
            why: &why,
            is_from_sandbox: spec.sandbox.is_some(),
            index: &index,
            cancel: None,
        };
        let give =
            |expected: &Oid, to: &Oid| repository.hand_over(HandOverRequest { expected, to, ..request });
        let refused = |handed| Ok(Err(MergeRefusal::Refused(landing::why(&handed, into.as_deref()))));
        if let Some((from, to)) = repository.moved_ahead_of_index(&index)? {
            let handed = give(&from, &to)?;
            if handed != HandedOver::Done {
                return refused(handed);
            }
        }
        let base = repository.stands_on(&ours, &work, None)?;
        if base == work {
            return merged(&ours, MergeKind::UpToDate);
        }
        let from = line.map_or_else(|| Ok(base.clone()), |line| line.start(repository, &base, &work))?;
        let merge =
            MergeRequest { base: &from, tip: &ours, work: &work, except: &[], index: &index, cancel: None };
        let tree = match repository.merge(merge)? {
            Merge::Clean { tree } => tree,
            Merge::Conflict { conflicts, .. } => {
                let paths = conflicts.into_iter().map(|conflict| conflict.path).collect();
                let gates = spec.gates.clone();
                return Ok(Err(MergeRefusal::Conflicts { revision, paths, gates }));
            }
        };
        let is_forward = base == ours && tree == repository.tree_of(&work)?;
        if (options.squash || !is_forward) && tree == repository.tree_of(&ours)? {
            return merged(&ours, MergeKind::UpToDate);
        }
        let (to, how) = match (options.squash, is_forward) {
            (false, true) => (work.clone(), MergeKind::FastForward),
            (false, false) => {
                (repository.commit_of(&[&ours, &work], &tree, &message, &[], None)?, MergeKind::Merge)
            }
            (true, _) => {
                let trailers = [(trailer, id.as_str())];
                (repository.commit_of(&[&ours], &tree, &subject, &trailers, None)?, MergeKind::Squash)
            }
        };
        if !is_forward && spec.has_hard_gates() {
            // Gates take minutes: what is in the way of this commit is said before them.
            let handed = repository.check_hand_over(HandOverRequest { to: &to, ..request })?;
            if handed != HandedOver::Done {
                return refused(handed);
            }
            let landing = Landing::of(self, (self.host(), spec, dir), env.to_vec());
            let (host, notice) = (self.host(), options.notice);
            let gates = TreeVerification { each: spec, host, dir, landing: &landing, lock, seq, notice };
            let cancel = Cancel::new().map_err(|error| EngineError::Process("a wish to stop", error))?;
            let (_keep, stopped) = watch::channel(false);
            if let GateOutcome::Failed(FailedGate { gate, log }) =
                gates.verify(tree.clone(), cancel, stopped).await?
            {
                let (gate, log, gates) = (gate.to_string(), dir.0.join(log), spec.gates.clone());
                return Ok(Err(MergeRefusal::GateFailed { revision, gate, log, gates }));
            }
        }
        let handed = give(&ours, &to)?;
        if handed == HandedOver::Done { merged(&to, how) } else { refused(handed) }
    }
}

/// The work of a loop or plan that is to be merged.
pub(crate) struct MergeWork<'a> {
    pub(crate) id: &'a LoopId,
    /// The loop, or what all loops of the plan have in common: its required gates verify a merge.
    pub(crate) spec: &'a Spec,
    pub(crate) dir: &'a LoopDir,
    pub(crate) lock: &'a Arc<RunnerLock>,
    pub(crate) seq: u64,
    /// The branch, or `plan ID`.
    pub(crate) name: String,
    /// The branch or the commit, as git takes it.
    pub(crate) revision: String,
    pub(crate) commit: Oid,
    /// None for what Refrain itself put on the commits before it.
    pub(crate) line: Option<LineOfWork<'a>>,
    pub(crate) message: String,
    pub(crate) subject: String,
    /// The trailer of a squashed commit that names the loop or plan.
    pub(crate) trailer: &'static str,
}

/// Which commits a loop has in its work. An agent can put the work on others, as by `git reset --soft`: the work would revert
/// them, and its differences do not show that.
pub(crate) struct LineOfWork<'a> {
    began: &'a Oid,
    /// The commits that Refrain made.
    made: Vec<&'a Oid>,
    /// The first of the loop's commits each time that Refrain put them on what the remote had.
    rebased: Vec<&'a Oid>,
}

impl<'a> LineOfWork<'a> {
    fn of(began: &'a Oid, records: &'a [Record]) -> Self {
        let mut line = Self { began, made: Vec::new(), rebased: Vec::new() };
        for record in records {
            if let Event::CommitSettled(report) = &record.event
                && let CommitResult::Made { commit, .. } = &report.result
            {
                line.made.push(commit);
            } else if let Event::PublishSettled(report) = &record.event
                && let PublishResult::Rebased { commits, .. } = &report.result
            {
                line.made.extend(commits);
                line.rebased.extend(commits.first());
            }
        }
        line
    }

    /// Where the work begins that is compared with `base`, up to which `ours` and it have the same commits.
    fn start(&self, repository: &Repository, base: &Oid, work: &Oid) -> Result<Oid, GitError> {
        if self.made.contains(&base) || repository.is_behind(base, self.began)? {
            return Ok(base.clone());
        }
        for first in &self.rebased {
            // Git may have removed what was rebased once more.
            if let Ok(Some(onto)) = repository.parent_of(first)
                && repository.is_behind(base, &onto)?
            {
                return Ok(base.clone());
            }
        }
        repository.stands_on(self.began, work, None)
    }
}

/// Claims the folder that is merged into.
pub(crate) fn refused_if_used(service: &Service) -> Result<Result<WorktreeLock, MergeRefusal>, EngineError> {
    let folder = &service.project.worktree;
    Ok(WorktreeLock::claim_alone(&service.project, folder)?
        .map_err(|by| MergeRefusal::Used { folder: folder.clone(), by }))
}
