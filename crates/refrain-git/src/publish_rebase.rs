//! A branch that stands on what its remote has: the commits that the remote has not are made anew on the remote's, without a
//! checkout, and then the branch and the worktree are moved there as in a hand-over. What is not committed stays as it is, byte
//! for byte; where it is in the way, that is the answer.

use camino::Utf8Path;
use refrain_core::LoopId;
use refrain_core::git::{Conflict, Oid};

use crate::Cancel;
use crate::error::GitError;
use crate::git::Git;
use crate::handover::{HandOverRequest, HandedOver, Note};
use crate::line::{Heads, since, tree_of};
use crate::merge::oid;
use crate::repository::Repository;

/// How much is told of either side of a conflict, in bytes.
const TOLD: usize = 16 << 10;

/// What is to stand on what.
#[derive(Clone, Copy, Debug)]
pub struct RebaseRequest<'a> {
    /// The loop; its name is in the lock of the index, so that it knows its own.
    pub id: &'a LoopId,
    /// The branch that is checked out; none where the head is detached.
    pub branch: Option<&'a str>,
    /// Where it is.
    pub head: &'a Oid,
    /// What the remote has, and is here already.
    pub theirs: &'a Oid,
    /// A place for private indexes, in the loop's own folder: this, and others beside it.
    pub index: &'a Utf8Path,
    /// Who may stop it, until the first file is written.
    pub cancel: Option<&'a Cancel>,
}

/// What came of it. But for `Done` nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rebased {
    /// The branch stands on theirs.
    Done {
        /// Where it is.
        head: Oid,
    },
    /// Both sides did something that does not go together.
    Conflict {
        /// The commit of ours that does not go.
        at: Oid,
        /// About what.
        conflicts: Vec<Conflict>,
        /// What our side did with these paths since both parted: a diff, cut in its middle where it is long.
        ours: String,
        /// What the remote's side did.
        theirs: String,
    },
    /// The two have no commit in common.
    Unrelated,
    /// The branch or the files could not follow; never [`HandedOver::Done`].
    Hindered(HandedOver),
}

impl Repository {
    /// Makes the commits that are not in `theirs` anew on top of it, each with its author, date and words, and moves the branch
    /// and the files there. One whose change is there already is left out; a merge becomes what it changed on our side. It may
    /// be repeated, also by who finds that another was cut off: what was begun is finished first.
    ///
    /// # Errors
    /// [`GitError`] where git cannot do it, and [`GitError::Cancelled`].
    pub fn rebase_onto(&self, request: RebaseRequest<'_>) -> Result<Rebased, GitError> {
        let RebaseRequest { theirs, cancel, .. } = request;
        let now = self.reference("HEAD")?.ok_or_else(|| GitError::Unborn(self.root().to_owned()))?;
        let mut head = request.head.clone();
        if let Some((from, to)) = Note::begun(self).filter(|(from, to)| [from, to].contains(&&now)) {
            match self.move_to(request, &from, &to)? {
                HandedOver::Done => head = to,
                other => return Ok(Rebased::Hindered(other)),
            }
        } else if now != head {
            return Ok(match self.is_behind(theirs, &now)? {
                true => Rebased::Done { head: now },
                false => Rebased::Hindered(HandedOver::Diverged { head: now }),
            });
        }
        let git = self.git().until(cancel);
        let base = git.run(["merge-base", head.as_str(), theirs.as_str()], &[])?;
        if !base.status.success() {
            return Ok(Rebased::Unrelated);
        }
        let base = oid("merge-base", &String::from_utf8_lossy(&base.stdout))?;
        if base == *theirs {
            return Ok(Rebased::Done { head });
        }
        let to = match self.replay(git, (&base, &head), theirs)? {
            Ok(to) => to,
            Err((at, conflicts)) => {
                let paths: Vec<_> = conflicts.iter().map(|conflict| conflict.path.clone()).collect();
                let (ours, theirs) = self.both_sides(&base, (&head, theirs), &paths, TOLD)?;
                return Ok(Rebased::Conflict { at, conflicts, ours, theirs });
            }
        };
        Ok(match self.move_to(request, &head, &to)? {
            HandedOver::Done => Rebased::Done { head: to },
            other => Rebased::Hindered(other),
        })
    }

    /// The commits behind `base` made anew on `onto`: where they end, or which does not go.
    fn replay(
        &self,
        git: Git<'_>,
        (base, head): (&Oid, &Oid),
        onto: &Oid,
    ) -> Result<Result<Oid, (Oid, Vec<Conflict>)>, GitError> {
        let commits = since(git, base, head)?;
        let heads = Heads::of(git, &commits)?;
        let (mut tip, mut before) = (onto.clone(), base.clone());
        for commit in commits {
            let made = match self.pick(git, &tip, (&commit, &heads))? {
                Ok(made) => made,
                Err(conflicts) => return Ok(Err((commit, conflicts))),
            };
            // What theirs has already would be an empty commit, which is only kept where it was made as one.
            let was_empty = tree_of(git, &before)? == tree_of(git, &commit)?;
            if was_empty || tree_of(git, &made)? != tree_of(git, &tip)? {
                tip = made;
            }
            before = commit;
        }
        Ok(Ok(tip))
    }

    fn move_to(&self, request: RebaseRequest<'_>, from: &Oid, to: &Oid) -> Result<HandedOver, GitError> {
        let RebaseRequest { id, branch, index, cancel, .. } = request;
        let why = "refrain: rebase on the remote";
        self.hand_over(HandOverRequest { id, branch, expected: from, to, why, index, cancel })
    }
}
