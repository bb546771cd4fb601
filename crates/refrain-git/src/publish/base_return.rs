//! A branch whose pull request is merged: the worktree moves to the updated base, and the branch is deleted. Nothing
//! is lost: uncommitted changes stay or stop the operation, and the branch is deleted only if it is still at the
//! merged commit.

use refrain_core::git::Oid;

use crate::error::GitError;
use crate::landing::linear_history::since;
use crate::plumbing::git::said;
use crate::publish::Upstream;
use crate::repository::Repository;

/// Ignored files belong to the user all the same: one that is in the way stops it.
const KEEPING: &str = "--no-overwrite-ignore";

/// The place of a worktree after its branch is merged.
#[derive(Clone, Copy, Debug)]
pub enum BaseReturn<'a> {
    /// On this branch, which then follows its remote.
    To(&'a str),
    /// At the remote branch's commit, on no branch: the worktree is about to be removed.
    Detached,
}

impl Repository {
    /// Returns the worktree to the base, and deletes `branch` if it is still at `head`. If something prevents that,
    /// returns the reason. It may be repeated.
    pub fn back_from(
        &self,
        (branch, head): (&str, &Oid),
        back: BaseReturn<'_>,
        base: &Upstream,
    ) -> Result<Option<String>, GitError> {
        // If it cannot be fetched now, the user can fetch it later.
        let newest = self.fetch(base, None)?.ok().flatten();
        if self.current_branch()?.as_deref() == Some(branch) {
            let to = match (back, &newest) {
                (BaseReturn::To(name), _) => ["--no-guess", name],
                (BaseReturn::Detached, Some(newest)) => ["--detach", newest.as_str()],
                (BaseReturn::Detached, None) => {
                    return Ok(Some("the base cannot be fetched from the remote".to_owned()));
                }
            };
            let switch = ["switch", "--quiet", KEEPING].into_iter().chain(to);
            let done = self.git().run(switch, &[])?;
            if !done.status.success() {
                return Ok(Some(said(&done)));
            }
        }
        if let (BaseReturn::To(name), Some(newest)) = (back, &newest)
            && self.current_branch()?.as_deref() == Some(name)
        {
            let done = self.git().run(["merge", "--quiet", "--ff-only", KEEPING, newest.as_str()], &[])?;
            if !done.status.success() {
                return Ok(Some(format!("{name} cannot follow the remote: {}", said(&done))));
            }
        }
        if let Some(by) = self.checked_out(branch, self.root())? {
            return Ok(Some(format!("it is checked out in {by}")));
        }
        match self.branch_head(branch)? {
            None => Ok(None),
            Some(now) if now != *head => Ok(Some("it has new commits since it was merged".to_owned())),
            Some(_) => {
                let refname = format!("refs/heads/{branch}");
                let done = self.git().run(["update-ref", "-d", &refname, head.as_str()], &[])?;
                Ok((!done.status.success()).then(|| said(&done)))
            }
        }
    }

    /// The tree of `head`, and the commits from `base` up to there, oldest first.
    pub fn standing_on(&self, base: &Oid, head: &Oid) -> Result<(Oid, Vec<Oid>), GitError> {
        Ok((self.tree_by(self.git(), head)?, since(self.git(), base, head)?))
    }

    /// The branch that is checked out; none if the head is detached.
    pub fn branch(&self) -> Result<Option<String>, GitError> {
        self.current_branch()
    }
}
