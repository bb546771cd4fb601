//! The status of a worktree and its submodules. Git would run programs that are configured inside them; Refrain
//! queries each one separately without running any.

use std::path::Path;

use camino::Utf8Path;

use crate::candidate::checkout_path::check_path;
use crate::candidate::integrity;
use crate::candidate::status::{self, Entry, Kind, Status, TrackedFile, repository_of};
use crate::error::GitError;
use crate::plumbing::git::Git;
use crate::repository::Repository;

/// Errors: those of [`Repository::verify_tree`] too, if the head or the index has what no checkout can have.
pub(crate) fn look(repository: &Repository, git: Git<'_>) -> Result<Status, GitError> {
    let mut status = status::read(git).map_err(|error| match error {
        GitError::Failed { .. } => integrity::cause(repository, git, error),
        error => error,
    })?;
    // A new file has the name that it has on disk; a nested repository ends with a slash.
    let mut tracked = status.entries.iter().filter(|entry| entry.kind != Kind::New);
    tracked.try_for_each(|entry| check_path(&entry.path))?;
    if repository.root().join(".gitmodules").symlink_metadata().is_ok() {
        look_inside(repository, git, &mut status)?;
    }
    Ok(status)
}

/// Adds the submodules whose commit is unchanged but whose content is not. One that is not cloned has no content: git does not
/// show what is in its folder.
fn look_inside(repository: &Repository, git: Git<'_>, status: &mut Status) -> Result<(), GitError> {
    let printed = git.output(["ls-files", "--stage", "-z"], &[])?;
    for record in printed.split(|byte| *byte == 0) {
        let Some((_, path)) = repository_of(record) else { continue };
        let is_known =
            |entry: &Entry| entry.path.strip_suffix(b"/").unwrap_or(&entry.path) == path.as_bytes();
        let inside = repository.root().join(path);
        if status.entries.iter().any(is_known) {
            continue;
        }
        let is_changed = match inside.join(".git").symlink_metadata() {
            Ok(_) => is_changed_inside(repository, &inside)?,
            Err(_) => has_entries(inside.as_std_path()),
        };
        if is_changed {
            let tracked =
                TrackedFile { is_staged: false, is_gone: false, in_head: None, submodule: Some(false) };
            status.entries.push(Entry { path: path.as_bytes().to_vec(), kind: Kind::Tracked(tracked) });
        }
    }
    Ok(())
}

/// Whether there is something in a folder.
pub(crate) fn has_entries(folder: &Path) -> bool {
    folder.read_dir().is_ok_and(|mut entries| entries.next().is_some())
}

/// Whether anything in a submodule differs from its commit. An agent may have configured it: no program of it is run.
fn is_changed_inside(repository: &Repository, inside: &Utf8Path) -> Result<bool, GitError> {
    let submodule = match Repository::open(inside, repository.env()) {
        Ok(submodule) => {
            let pins = repository.pins().cloned().unwrap_or_default();
            submodule.guarded_like(repository).with_pins(Some(&pins))
        }
        Err(GitError::Cancelled) => return Err(GitError::Cancelled),
        Err(_) => return Ok(true),
    };
    let asked = ["status", "--porcelain", "--ignore-submodules=dirty"];
    Ok(!submodule.git().output(asked, &[])?.is_empty())
}
