//! A branch on top of its remote: the commits that the remote lacks are recreated on the remote's, without a
//! checkout, and then the branch and the worktree are moved there as in a hand-over. Uncommitted changes stay byte
//! for byte; if they are in the way, that is the result.

use camino::Utf8Path;
use refrain_core::LoopId;
use refrain_core::git::{Conflict, Oid};

use crate::Cancel;
use crate::error::GitError;
use crate::landing::handover::{HandOverRequest, HandedOver, Note};
use crate::landing::linear_history::{New, since};
use crate::landing::merge::MergeResult;
use crate::plumbing::git::{Git, oid, said};
use crate::repository::Repository;

/// The new commits, oldest first, or the commit that conflicts, and its conflicts.
type Line = Result<Vec<Oid>, (Oid, Vec<Conflict>)>;

/// How much of either side of a conflict is reported, in bytes.
const TOLD: usize = 16 << 10;

/// The commits to rebase, and the new base.
#[derive(Clone, Copy, Debug)]
pub struct RebaseRequest<'a> {
    /// The loop; its id is in the index lock, so that it recognizes its own lock.
    pub id: &'a LoopId,
    /// The branch that is checked out; none if the head is detached.
    pub branch: Option<&'a str>,
    pub head: &'a Oid,
    /// The remote's head, which is already fetched.
    pub theirs: &'a Oid,
    /// The path of private indexes, in the loop's own folder: this, and others beside it.
    pub index: &'a Utf8Path,
    /// Cancels it until the first file is written.
    pub cancel: Option<&'a Cancel>,
}

/// The result. Except for `Done`, nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RebaseOutcome {
    /// The branch is on top of theirs.
    Done { head: Oid },
    Conflict {
        at: Oid,
        conflicts: Vec<Conflict>,
        /// Our changes of these paths since both sides diverged: a diff, cut in its middle if it is long.
        ours: String,
        theirs: String,
    },
    /// The two have no common ancestor.
    Unrelated,
    /// The branch or the files could not follow; never [`HandedOver::Done`].
    Hindered(HandedOver),
}

impl Repository {
    /// Recreates the commits that are not in `theirs` on top of it, each with its author, date and message, and moves
    /// the branch and the files there. A commit whose change is already there is omitted. If one is a merge, whose
    /// other side a linear history would lose, `theirs` is merged instead. It may be repeated, also after another
    /// call was interrupted: that one is finished first, and recognized.
    pub fn rebase_onto(&self, request: RebaseRequest<'_>) -> Result<RebaseOutcome, GitError> {
        let RebaseRequest { branch, head, theirs, index, cancel, .. } = request;
        let git = self.git().until(cancel);
        let checked_out = self.current_branch()?;
        if checked_out.as_deref() != branch {
            return Ok(RebaseOutcome::Hindered(HandedOver::OtherBranch { now: checked_out }));
        }
        let head_now = || self.reference("HEAD")?.ok_or_else(|| GitError::Unborn(self.root().to_owned()));
        let mut now = head_now()?;
        if let Some((from, to)) = Note::begun(index).filter(|(from, to)| [from, to].contains(&&now)) {
            match self.move_to(request, &from, &to)? {
                HandedOver::Done => now = head_now()?,
                other => return Ok(RebaseOutcome::Hindered(other)),
            }
        }
        let Some(base) = common(git, &now, theirs)? else { return Ok(RebaseOutcome::Unrelated) };
        if now != *head && !self.is_of(git, head, (&base, &now))? {
            return Ok(RebaseOutcome::Hindered(HandedOver::Diverged { head: now }));
        }
        if base == *theirs {
            return Ok(RebaseOutcome::Done { head: now });
        }
        let made = match has_merges(git, &base, &now)? {
            true => self.join(git, (&base, &now), theirs)?,
            false => self.replay(git, (&base, &now), theirs)?,
        };
        let to = match made {
            Ok(line) => line.last().unwrap_or(theirs).clone(),
            Err((at, conflicts)) => {
                let paths: Vec<_> = conflicts.iter().map(|conflict| conflict.path.clone()).collect();
                let (ours, theirs) = self.both_sides(&base, (&now, theirs), &paths, TOLD)?;
                return Ok(RebaseOutcome::Conflict { at, conflicts, ours, theirs });
            }
        };
        Ok(match self.move_to(request, &now, &to)? {
            HandedOver::Done => RebaseOutcome::Done { head: to },
            other => RebaseOutcome::Hindered(other),
        })
    }

    /// Whether an interrupted rebase of `head` left the line from `base` to `now`.
    fn is_of(&self, git: Git<'_>, head: &Oid, (base, now): (&Oid, &Oid)) -> Result<bool, GitError> {
        if self.reference(&format!("{now}^2"))?.as_ref() == Some(base) {
            return Ok(self.reference(&format!("{now}^1"))?.as_ref() == Some(head));
        }
        let Some(from) = common(git, head, base)? else { return Ok(false) };
        let Ok(made) = self.replay(git, (&from, head), base)? else { return Ok(false) };
        let line = since(git, base, now)?;
        // Signed commits get new names each time, but have the same trees.
        Ok(made == line || (made.len() == line.len() && self.trees(git, &made)? == self.trees(git, &line)?))
    }

    /// The commits after `base` recreated on `onto`, oldest first, or the one that conflicts.
    fn replay(&self, git: Git<'_>, (base, head): (&Oid, &Oid), onto: &Oid) -> Result<Line, GitError> {
        let commits = since(git, base, head)?;
        let heads = self.heads(git, &commits)?;
        let (mut before, mut line) = (base.clone(), Vec::new());
        for commit in commits {
            let tip = line.last().unwrap_or(onto);
            let made = match self.pick(git, tip, (&commit, &heads))? {
                Ok(made) => made,
                Err(conflicts) => return Ok(Err((commit, conflicts))),
            };
            // A change that `theirs` already has would be an empty commit, which is kept only if the original was empty
            // too.
            let was_empty = self.tree_by(git, &before)? == self.tree_by(git, &commit)?;
            if was_empty || self.tree_by(git, &made)? != self.tree_by(git, tip)? {
                line.push(made);
            }
            before = commit;
        }
        Ok(Ok(line))
    }

    /// Merges both sides in one commit.
    fn join(&self, git: Git<'_>, (base, head): (&Oid, &Oid), theirs: &Oid) -> Result<Line, GitError> {
        let tree = match self.merge_trees(git, base, (head, theirs))? {
            MergeResult::Clean { tree } => tree,
            MergeResult::Conflict { conflicts, .. } => return Ok(Err((head.clone(), conflicts))),
        };
        let (parents, message) = ([head, theirs], "Merge what others pushed to this branch\n");
        Ok(Ok(vec![self.make_commit(git, &New { tree: &tree, parents: &parents, message, trailers: &[] })?]))
    }

    fn move_to(&self, request: RebaseRequest<'_>, from: &Oid, to: &Oid) -> Result<HandedOver, GitError> {
        let RebaseRequest { id, branch, index, cancel, .. } = request;
        let why = "refrain: rebase on the remote";
        // The worktree is that of the loop: what a filter runs there, it runs in the sandbox.
        let is_from_sandbox = false;
        let request = HandOverRequest { id, branch, expected: from, to, why, is_from_sandbox, index, cancel };
        self.hand_over(request)
    }
}

/// The merge base of both histories; none if they have no common ancestor.
fn common(git: Git<'_>, one: &Oid, other: &Oid) -> Result<Option<Oid>, GitError> {
    let done = git.run(["merge-base", one.as_str(), other.as_str()], &[])?;
    match done.status.code() {
        Some(0) => {
            oid("merge-base", String::from_utf8_lossy(&done.stdout).lines().next().unwrap_or_default())
                .map(Some)
        }
        Some(1) => Ok(None),
        _ => Err(GitError::Failed { command: "git merge-base".to_owned(), said: said(&done) }),
    }
}

/// Whether there is a merge among the commits of a line.
fn has_merges(git: Git<'_>, base: &Oid, head: &Oid) -> Result<bool, GitError> {
    let range = format!("{base}..{head}");
    let words = ["rev-list", "--first-parent", "--merges", "--max-count=1", &range, "--"];
    Ok(!git.text(words, &[])?.is_empty())
}
