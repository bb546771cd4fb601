//! A branch that is done with, as its pull request is merged: the worktree goes to what its work has become, and the branch away.
//! Nothing is lost by that: what is not committed stays or keeps everything as it is, and the branch goes only from where it was
//! merged.

use refrain_core::git::Oid;

use crate::error::GitError;
use crate::landing::linear_history::since;
use crate::plumbing::git::said;
use crate::publish::Upstream;
use crate::repository::Repository;

/// What git ignores is a file of the person's all the same: one that is in the way stops it.
const KEEPING: &str = "--no-overwrite-ignore";

/// Where a worktree goes when its branch is done with.
#[derive(Clone, Copy, Debug)]
pub enum BaseReturn<'a> {
    /// To this branch, which then follows its remote.
    To(&'a str),
    /// To what the remote's branch has, on no branch: the worktree is about to be removed.
    Detached,
}

impl Repository {
    /// Brings the worktree back to the base, and takes `branch` away where it is still at `head`. Says why it is kept where
    /// something stands in the way. It may be repeated.
    ///
    /// # Errors
    /// [`GitError`] where git cannot be asked, and [`GitError::Cancelled`].
    pub fn back_from(
        &self,
        (branch, head): (&str, &Oid),
        back: BaseReturn<'_>,
        base: &Upstream,
    ) -> Result<Option<String>, GitError> {
        // What cannot be fetched now, the person fetches later.
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
            Some(now) if now != *head => Ok(Some("somebody committed to it since it was merged".to_owned())),
            Some(_) => {
                let refname = format!("refs/heads/{branch}");
                let done = self.git().run(["update-ref", "-d", &refname, head.as_str()], &[])?;
                Ok((!done.status.success()).then(|| said(&done)))
            }
        }
    }

    /// The tree of `head`, and the commits that stand on `base` up to there, oldest first.
    pub fn standing_on(&self, base: &Oid, head: &Oid) -> Result<(Oid, Vec<Oid>), GitError> {
        Ok((self.tree_by(self.git(), head)?, since(self.git(), base, head)?))
    }

    /// The branch that is checked out; none where the head is detached.
    pub fn branch(&self) -> Result<Option<String>, GitError> {
        self.current_branch()
    }
}
