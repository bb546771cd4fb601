//! Merging the branch of a loop into what the user has checked out. Nothing is changed before the merged tree is known to be
//! good; the files of the user stay as they are, or the merge is refused.

use std::sync::Arc;

use camino::Utf8PathBuf;
use refrain_core::LoopId;
use refrain_core::git::{Oid, RepoPath};
use refrain_core::plan::FailedGate;
use refrain_core::text::{clip, printable, squeeze};
use refrain_core::view::Verification;
use refrain_git::{Cancel, HandOverRequest, HandedOver, MergeRequest, Merged as Merge};
use refrain_store::journal;
use tokio::sync::watch;

use crate::git_steps::repository::{self, marked};
use crate::plan::landing::{self, Landing};
use crate::plan::verify::{Ran, TreeVerification};
use crate::{EngineError, Service};

/// The longest subject of a commit, in bytes.
const SUBJECT: usize = 72;

/// How the branch of a loop is merged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MergeOptions {
    /// As one commit.
    pub squash: bool,
    /// Also if no gate verified it.
    pub unverified: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergedBranch {
    /// The loop's branch.
    pub branch: String,
    /// The branch that has it now; none if the head is detached.
    pub into: Option<String>,
    /// Where that is now.
    pub head: Oid,
    /// What was done.
    pub how: How,
}

/// What a merge did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// Nothing: the branch was merged before.
    UpToDate,
    /// The branch was moved.
    FastForward,
    /// A merge commit was made.
    Merge,
    /// One commit was made of all.
    Squash,
}

/// Why a branch was not merged. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotMerged {
    /// The loop has not stopped.
    Running,
    /// The loop has no branch of its own.
    NoBranch {
        /// The branch that it worked on.
        worked_on: Option<String>,
    },
    BranchGone(String),
    /// Work of the loop is not committed.
    Uncommitted {
        worktree: Utf8PathBuf,
        /// How many files are changed or new.
        files: usize,
    },
    /// Its branch is the one that is checked out.
    CheckedOut(String),
    /// No gate verified what the branch holds.
    Unverified {
        /// Whether the branch was changed after it was verified.
        has_moved: bool,
    },
    /// Both sides changed the same.
    Conflicts {
        /// The loop's branch.
        branch: String,
        /// Which files.
        paths: Vec<RepoPath>,
    },
    /// A gate fails on the merged tree.
    GateFailed {
        gate: String,
        /// What it printed.
        log: Utf8PathBuf,
    },
    /// The user's branch or files are in the way: why.
    Refused(String),
}

impl Service {
    /// Merges the branch of a loop into what is checked out here: by moving the branch if that is enough, else by a commit whose
    /// tree the required gates passed on.
    ///
    /// # Errors
    /// [`EngineError`] if there is no such loop, another process drives it, or git fails.
    pub async fn merge(
        &self,
        id: &LoopId,
        options: MergeOptions,
    ) -> Result<Result<MergedBranch, NotMerged>, EngineError> {
        let status = self.status(id)?;
        if !status.has_stopped() {
            return Ok(Err(NotMerged::Running));
        }
        let dir = self.locate(id)?.dir;
        let lock = Arc::new(self.lock_of_ended(id, &dir)?);
        let state = journal::read_signed(&dir, &self.host().signing())?.state;
        let spec = &state.spec;
        let Some(branch) = spec.git.new_branch().map(str::to_owned) else {
            return Ok(Err(NotMerged::NoBranch { worked_on: status.branch }));
        };
        let env = marked(&self.host.env, spec);
        let repository = repository::open(&self.project.worktree, &env, spec)?;
        let Some(work) = repository.branch_head(&branch)? else {
            return Ok(Err(NotMerged::BranchGone(branch)));
        };
        let (ours, into) = repository.begin_of_plan()?;
        if into.as_ref() == Some(&branch) {
            return Ok(Err(NotMerged::CheckedOut(branch)));
        }
        let work_tree = repository.tree_of(&work)?;
        let is_verified = status.verification() == Verification::Verified;
        let has_moved = status.tree.as_deref() != Some(work_tree.as_str());
        if (!is_verified || has_moved) && !options.unverified {
            return Ok(Err(NotMerged::Unverified { has_moved: is_verified }));
        }
        if spec.worktree != self.project.worktree && spec.worktree.is_dir() {
            let files = repository::open(&spec.worktree, &env, spec)?.survey()?.dirty.len();
            if files > 0 {
                return Ok(Err(NotMerged::Uncommitted { worktree: spec.worktree.clone(), files }));
            }
        }
        let merged = |head: &Oid, how| {
            Ok(Ok(MergedBranch { branch: branch.clone(), into: into.clone(), head: head.clone(), how }))
        };
        let base = repository.stands_on(&ours, &work, None)?;
        if base == work {
            return merged(&ours, How::UpToDate);
        }
        let index = Utf8PathBuf::from(format!("{}.merge", dir.index()));
        let tree = match base == ours {
            true => work_tree,
            false => {
                let request = MergeRequest {
                    base: &base,
                    tip: &ours,
                    work: &work,
                    except: &[],
                    index: &index,
                    cancel: None,
                };
                match repository.merge(request)? {
                    Merge::Clean { tree } => tree,
                    Merge::Conflict { conflicts, .. } => {
                        let paths = conflicts.into_iter().map(|conflict| conflict.path).collect();
                        return Ok(Err(NotMerged::Conflicts { branch, paths }));
                    }
                }
            }
        };
        if (options.squash || base != ours) && tree == repository.tree_of(&ours)? {
            return merged(&ours, How::UpToDate);
        }
        if base != ours && spec.has_hard_gates() {
            let landing = Landing::of(self, spec.git.pins.clone(), env.clone());
            let gates = TreeVerification {
                each: spec,
                host: self.host(),
                dir: &dir,
                landing: &landing,
                lock: &lock,
                seq: state.seq,
            };
            let cancel = Cancel::new().map_err(|error| EngineError::Process("a wish to stop", error))?;
            let (_keep, stopped) = watch::channel(false);
            if let Ran::Failed(FailedGate { gate, log }) = gates.verify(tree.clone(), cancel, stopped).await?
            {
                return Ok(Err(NotMerged::GateFailed { gate: gate.to_string(), log: dir.0.join(log) }));
            }
        }
        let (to, how) = match (options.squash, base == ours) {
            (false, true) => (work.clone(), How::FastForward),
            (false, false) => {
                let message = format!("Merge branch '{branch}'\n");
                (repository.commit_of(&[&ours, &work], &tree, &message, &[], None)?, How::Merge)
            }
            (true, _) => {
                let trailers = [("Refrain-Loop", id.as_str())];
                let message = subject(&spec.prompt, &branch);
                (repository.commit_of(&[&ours], &tree, &message, &trailers, None)?, How::Squash)
            }
        };
        let handed = repository.hand_over(HandOverRequest {
            id,
            branch: into.as_deref(),
            expected: &ours,
            to: &to,
            why: &format!("refrain merge {id}"),
            index: &index,
            cancel: None,
        })?;
        match handed == HandedOver::Done {
            true => merged(&to, how),
            false => Ok(Err(NotMerged::Refused(landing::why(&handed, into.as_deref())))),
        }
    }
}

/// The first line of the goal, as the subject of a commit.
fn subject(goal: &str, branch: &str) -> String {
    let first = goal.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let first = squeeze(&printable(first));
    if first.is_empty() { format!("Work of {branch}") } else { clip(&first, SUBJECT).into_owned() }
}
