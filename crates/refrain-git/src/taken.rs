//! A hook that stages for itself (`git add -u`) puts into the loop's commit what is the person's, or what was left out of it.
//!
//! A hook may well change what the loop changed, or add files of its own making: only what was there and was not to be
//! committed is harm. Such a commit is undone as long as it is the head: the branch is moved back by compare-and-swap. The
//! person's index has not been touched by then and the files never are, so all is as it was before, but for what hooks behind
//! the commit did with it. Where the branch has moved on, somebody builds on the commit: then it is only told.

use refrain_core::git::{LeftOut, Oid, RepoPath};

use crate::adopt::Made;
use crate::candidate::Before;
use crate::error::GitError;
use crate::git::Git;
use crate::stage::{Change, changed};

/// What of a commit was not to be in it.
pub(crate) fn taken(
    git: Git<'_>,
    parent: Option<&Oid>,
    made: &Made,
    before: &Before,
    left_out: &[LeftOut],
) -> Result<Vec<RepoPath>, GitError> {
    if before.is_empty() && left_out.is_empty() {
        return Ok(Vec::new());
    }
    let bare = |left: &LeftOut| {
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
