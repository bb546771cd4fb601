//! Operations in progress, detected by the same files in git's folder that `git status` reads.

use camino::Utf8Path;
use refrain_core::git::Operation;

use crate::plumbing::disk::text;

const SIGNS: &[(&str, Operation)] = &[
    // A rebase first: it may stop in the middle of a cherry-pick or a merge of its own.
    ("rebase-merge", Operation::Rebase),
    ("rebase-apply", Operation::Rebase),
    ("MERGE_HEAD", Operation::Merge),
    ("CHERRY_PICK_HEAD", Operation::CherryPick),
    ("REVERT_HEAD", Operation::Revert),
    ("BISECT_LOG", Operation::Bisect),
];

/// The operation in progress in the worktree of this git folder.
pub(crate) fn in_progress(git_dir: &Utf8Path) -> Option<Operation> {
    let sign = SIGNS.iter().find(|(sign, _)| git_dir.join(sign).symlink_metadata().is_ok());
    sign.map(|(_, operation)| *operation).or_else(|| picking(git_dir))
}

/// Between two commits of `git cherry-pick A B` or `git revert A B`, after one was committed by hand, only the todo
/// list shows the operation.
fn picking(git_dir: &Utf8Path) -> Option<Operation> {
    let todo = text(&git_dir.join("sequencer/todo")).ok()?;
    match todo.split_whitespace().next()? {
        "revert" => Some(Operation::Revert),
        _ => Some(Operation::CherryPick),
    }
}
