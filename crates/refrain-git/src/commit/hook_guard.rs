//! A hook that stages files itself (`git add -u`) adds the user's changes, or omitted ones, to the loop's commit.
//!
//! A hook may change the loop's files or add its own: only existing content that must not be committed is harm. Such
//! a commit is undone as long as it is the head: the branch is moved back by compare-and-swap. The user's index has
//! not been touched by then and the files never are, so everything is as before, except for effects of hooks after
//! the commit. If the branch has moved on, another process builds on the commit: then it is only reported.

use refrain_core::git::{Oid, OmittedPath, RepoPath, SkipReason};

use crate::candidate::initial_changes::Before;
use crate::candidate::stage::{Change, changed};
use crate::commit::reconcile_history::CommitAndTree;
use crate::commit::{Job, Outcome};
use crate::error::GitError;
use crate::plumbing::git::Git;

impl Job<'_> {
    /// The commit, unless a hook added foreign changes and the commit could be undone; if not, the list of these
    /// changes.
    pub(crate) fn without_taken(
        &self,
        made: CommitAndTree,
        parent: Option<&Oid>,
        before: &Before,
        left_out: &[OmittedPath],
    ) -> Result<(Outcome, Vec<RepoPath>), GitError> {
        let paths = taken(self.git, parent, &made, before, left_out)?;
        if paths.is_empty() || !self.undo(&made, parent)? {
            return Ok((Ok(made), paths));
        }
        Ok((Err(SkipReason::HookTook { paths }), Vec::new()))
    }

    /// Moves the branch back, if the commit is the head and directly follows the parent.
    fn undo(&self, made: &CommitAndTree, parent: Option<&Oid>) -> Result<bool, GitError> {
        let parents = self.git.text(["rev-parse", &format!("{}^@", made.commit)], &[])?;
        if parents != parent.map(Oid::as_str).unwrap_or_default() {
            return Ok(false);
        }
        let mut args = vec!["update-ref".to_owned(), "-m".to_owned(), "refrain: undo the commit".to_owned()];
        if parent.is_none() {
            args.push("-d".to_owned());
        }
        args.extend(self.place());
        args.extend(parent.map(Oid::to_string));
        args.push(made.commit.to_string());
        // Cannot be cancelled: a half-finished undo would leave the commit that it should remove.
        Ok(self.git.to_its_end().run(args, &[])?.status.success())
    }
}

/// The changes in a commit that do not belong there.
fn taken(
    git: Git<'_>,
    parent: Option<&Oid>,
    made: &CommitAndTree,
    before: &Before,
    left_out: &[OmittedPath],
) -> Result<Vec<RepoPath>, GitError> {
    if before.is_empty() && left_out.is_empty() {
        return Ok(Vec::new());
    }
    let bare = |left: &OmittedPath| {
        let path = left.path.to_bytes();
        path.strip_suffix(b"/").map_or_else(|| path.clone(), <[u8]>::to_vec)
    };
    let left_out: Vec<Vec<u8>> = left_out.iter().map(bare).collect();
    let printed = changed(git, parent, &made.commit)?;
    let changes = Change::all(&printed);
    let paths = changes.iter().map(|change| change.path);
    let is_taken = |path: &&[u8]| before.has(path) || left_out.iter().any(|left| left == path);
    Ok(paths.filter(is_taken).map(RepoPath::from_bytes).collect())
}
