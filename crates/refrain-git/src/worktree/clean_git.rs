//! The `.git` of a clean checkout: a small repository of its own that borrows the project's objects.
//!
//! Without one, a tool that looks upwards for `.git` (a build script that runs `git describe`, a linter that lists
//! tracked files) would fail, or find an unrelated repository. With the project's own, it would find the main
//! worktree, and could write to its branches. Here it sees the head, the branches, the tags and the settings of the
//! worktree, with the candidate staged; what it writes is gone before the next gate.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;

use camino::Utf8Path;
use refrain_core::git::Oid;

use crate::error::{GitError, OnPath};
use crate::plumbing::disk::{read, remove, write};
use crate::plumbing::git::Git;
use crate::plumbing::object::is_sha1;
use crate::repository::Repository;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Head<'a> {
    /// As in the worktree: on its branch, also one without a commit, or at its commit.
    AsThere,
    At(&'a Oid),
}

/// Makes the `.git` of `folder`, whose files are those of `tree`, with the index `index`; `refs` is the result of
/// [`refs`]. Files that are already right are not written: some build scripts run again when one of them is newer.
pub(crate) fn make(
    repository: &Repository,
    git: Git<'_>,
    (folder, index): (&Utf8Path, &Utf8Path),
    (head, tree, refs): (Head<'_>, &Oid, Vec<u8>),
) -> Result<(), GitError> {
    let at = folder.join(".git");
    if fs::symlink_metadata(&at).is_ok_and(|meta| !meta.is_dir()) {
        remove(&at)?;
    }
    DirBuilder::new().recursive(true).mode(0o700).create(&at).on("create", &at)?;
    let head = match head {
        Head::AsThere => as_there(repository, git)?,
        Head::At(commit) => format!("{commit}\n"),
    };
    let format = if is_sha1(tree) { "sha1" } else { "sha256" };
    let common = repository.common_dir().canonicalize_utf8().on("find", repository.common_dir())?;
    let files = [
        ("HEAD", Some(head.into_bytes())),
        ("config", Some(config(format, &common, folder).into_bytes())),
        ("packed-refs", Some(refs)),
        ("shallow", read(&common.join("shallow")).ok()),
        ("index", read(index).ok()),
    ];
    let known = files.iter().filter(|(_, content)| content.is_some()).map(|(name, _)| *name);
    let known: Vec<&str> = known.collect();
    for entry in at.read_dir_utf8().on("read", &at)?.flatten() {
        if !known.contains(&entry.file_name()) {
            remove(entry.path())?;
        }
    }
    for (name, content) in files {
        if let Some(content) = content {
            write(&at.join(name), &content)?;
        }
    }
    for made in ["refs/heads", "objects/info", "info"] {
        let made = at.join(made);
        DirBuilder::new().recursive(true).mode(0o700).create(&made).on("create", &made)?;
    }
    write(&at.join("objects/info/alternates"), format!("{}\n", common.join("objects")).as_bytes())?;
    for name in ["exclude", "attributes"] {
        if let Ok(content) = read(&common.join("info").join(name)) {
            write(&at.join("info").join(name), &content)?;
        }
    }
    Ok(())
}

/// The references that are visible there, in the format of `packed-refs`.
pub(crate) fn refs(git: Git<'_>) -> Result<Vec<u8>, GitError> {
    let words =
        ["for-each-ref", "--format=%(objectname) %(refname)", "refs/heads", "refs/remotes", "refs/tags"];
    git.output(words, &[])
}

/// The content of the worktree's `HEAD`.
fn as_there(repository: &Repository, git: Git<'_>) -> Result<String, GitError> {
    if let Some(branch) = repository.current_branch()? {
        return Ok(format!("ref: refs/heads/{branch}\n"));
    }
    Ok(format!("{}\n", git.text(["rev-parse", "--verify", "HEAD"], &[])?))
}

/// The settings of the worktree, with the overrides for this place.
fn config(format: &str, common: &Utf8Path, folder: &Utf8Path) -> String {
    let quoted =
        |path: &Utf8Path| format!("\"{}\"", path.as_str().replace('\\', "\\\\").replace('"', "\\\""));
    let extensions = match format {
        "sha1" => "\trepositoryformatversion = 0\n".to_owned(),
        other => format!("\trepositoryformatversion = 1\n[extensions]\n\tobjectFormat = {other}\n[core]\n"),
    };
    format!(
        "[include]\n\tpath = {}\n[core]\n{extensions}\tbare = false\n\tworktree = {}\n\tfsmonitor = false\n\tsparseCheckout = \
         false\n",
        quoted(&common.join("config")),
        quoted(folder),
    )
}
