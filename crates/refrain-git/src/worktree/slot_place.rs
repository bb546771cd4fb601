//! The folder of a pool's worktree and its link to the repository: whether both exist and match, and how to repair
//! them.

use std::fs;

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::git::Oid;

use crate::error::{GitError, OnPath};
use crate::plumbing::disk::{remove, text, write};
use crate::plumbing::git_files::named;
use crate::plumbing::worktree_list::has_modules;
use crate::repository::Repository;

pub(crate) enum Folder {
    Nothing,
    Whole,
    /// Files without their link to the repository.
    Broken,
    /// Something else than a worktree of the pool, with the reason.
    Strange(String),
}

pub(crate) fn folder(repository: &Repository, folder: &Utf8Path) -> Result<Folder, GitError> {
    match fs::symlink_metadata(folder) {
        Err(_) => return nothing(repository, folder),
        Ok(meta) if !meta.is_dir() => return Ok(Folder::Strange("it is no folder".to_owned())),
        Ok(_) if fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none()) => {
            return nothing(repository, folder);
        }
        Ok(_) => {}
    }
    let dot_git = folder.join(".git");
    if fs::symlink_metadata(&dot_git).is_ok_and(|meta| meta.is_dir()) {
        return Ok(Folder::Strange("it has become a repository of its own".to_owned()));
    }
    let Some(named) = named(&dot_git) else { return Ok(Folder::Broken) };
    if repository.git_dir_of(folder).is_some_and(|dir| !has_head(&dir) && has_modules(&dir)) {
        return Ok(Folder::Strange("its git folder is broken, and has the commits of submodules".to_owned()));
    }
    Ok(match is_of(&named, repository) {
        Some(true) if has_head(&named) => Folder::Whole,
        Some(true) | None => Folder::Broken,
        Some(false) => Folder::Strange("it belongs to another repository".to_owned()),
    })
}

/// Whether a git folder is that of a worktree of the repository; none if that cannot be determined.
fn is_of(git_dir: &Utf8Path, repository: &Repository) -> Option<bool> {
    let common = text(&git_dir.join("commondir")).ok()?;
    let common = git_dir.join(common.trim_end()).canonicalize_utf8().ok()?;
    Some(common == repository.common_dir().canonicalize_utf8().ok()?)
}

/// The git folder of a worktree of the repository, as git names it; none if the worktree is incomplete.
pub(crate) fn git_dir(repository: &Repository, folder: &Utf8Path) -> Option<Utf8PathBuf> {
    let dot_git = folder.join(".git");
    fs::symlink_metadata(&dot_git).ok().filter(fs::Metadata::is_file)?;
    let named = named(&dot_git)?.canonicalize_utf8().ok()?;
    (is_of(&named, repository)? && has_head(&named)).then_some(named)
}

impl Repository {
    /// Whether git would find this worktree and its git folder where it did, as far as that is known without asking
    /// it: of a linked worktree without a configuration of its own only the file says that which leads there. Of what
    /// all worktrees are configured to do nothing counts that could say else (git-worktree(1), CONFIGURATION FILE).
    pub fn is_where_it_was(&self) -> bool {
        self.git_dir() != self.common_dir()
            && git_dir(self, self.root()).is_some_and(|found| found == self.git_dir())
            && self.git_dir().join("config.worktree").symlink_metadata().is_err()
    }
}

/// There are no files, but git may still have the commits of their submodules.
fn nothing(repository: &Repository, folder: &Utf8Path) -> Result<Folder, GitError> {
    let left = repository.submodule_commits_left(folder);
    Ok(left.map_or(Folder::Nothing, Folder::Strange))
}

/// Whether a git folder is valid, judging by its head.
fn has_head(git_dir: &Utf8Path) -> bool {
    let head = text(&git_dir.join("HEAD")).unwrap_or_default();
    head.starts_with("ref: refs/") || head.trim_end().parse::<Oid>().is_ok()
}

/// Reconnects files to the repository: to their own git folder, or to a new one with its head at `at`. No file is
/// written.
pub(crate) fn mend(
    repository: &Repository,
    folder: &Utf8Path,
    beside: &Utf8Path,
    at: &Oid,
) -> Result<(), GitError> {
    let dot_git = folder.join(".git");
    let known = repository.git_dir_of(folder);
    remove(&dot_git)?;
    if let Some(git_dir) = known {
        if has_head(&git_dir) && git_dir.join("commondir").is_file() {
            return write(&dot_git, format!("gitdir: {git_dir}\n").as_bytes());
        }
        // Without its head it is useless, and git cannot remove it either.
        remove(&git_dir)?;
    }
    let aside = aside(beside);
    repository.add_empty_worktree(repository.git(), &aside, (at, None))?;
    let git_dir = named(&aside.join(".git"))
        .ok_or_else(|| GitError::Answer { command: "worktree add", answer: aside.to_string() })?;
    write(&git_dir.join("gitdir"), format!("{dot_git}\n").as_bytes())?;
    fs::rename(aside.join(".git"), &dot_git).on("write", &dot_git)?;
    remove(&aside)?;
    let there = Repository::open(folder, repository.env())?.guarded_like(repository);
    there.git().output(["read-tree", at.as_str()], &[]).map(drop)
}

/// The path where a new git folder is made, to which existing files are then linked.
fn aside(beside: &Utf8Path) -> Utf8PathBuf {
    beside.join("mending")
}

/// Removes the leftovers of a repair that was killed.
pub(crate) fn forget_mending(repository: &Repository, beside: &Utf8Path) -> Result<(), GitError> {
    let path = aside(beside);
    if path.symlink_metadata().is_err() {
        return Ok(());
    }
    if repository.listed(&path)?.is_some() {
        // If git does not remove it, it goes with the folder.
        let _ = repository.worktrees_to_change().remove_whatever(&path);
    }
    remove(&path)
}
