//! What the files of a git folder show of its worktree (gitrepository-layout(5)).

use std::fs;

use camino::Utf8Path;

use crate::plumbing::disk::text;

/// The branch of the head in a git folder, none if it is detached; no answer if its file does not show that.
pub(crate) fn head_of(git_dir: &Utf8Path) -> Option<Option<String>> {
    let head = text(&git_dir.join("HEAD")).ok()?;
    let Some(name) = head.strip_prefix("ref: ") else { return Some(None) };
    // If references are not stored in files (reftable), git names an impossible branch there.
    let branch = name.trim_end().strip_prefix("refs/heads/").filter(|name| *name != ".invalid")?;
    Some(Some(branch.to_owned()))
}

/// Whether the git folder of a worktree contains git folders of submodules.
pub(crate) fn has_modules(git_dir: &Utf8Path) -> bool {
    fs::read_dir(git_dir.join("modules")).is_ok_and(|mut entries| entries.next().is_some())
}
