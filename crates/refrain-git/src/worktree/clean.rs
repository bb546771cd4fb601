//! A clean checkout: a folder outside the project with exactly the content of a tree, for running gates.
//!
//! It is no worktree of the repository, which does not know of it. Git writes its files with the repository's
//! settings and filters, from an index outside of it, so that nothing that runs there changes what git believes of
//! its files. Files that are neither in the tree nor ignored are removed each time; ignored files stay if the caller
//! lists them, because tools keep their caches there. The written files are compared with the names of their objects,
//! which git does not do. No hook runs, as this is no checkout by the user. `clean_git` makes the `.git` that tools
//! find there.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;

use camino::Utf8Path;
use refrain_core::git::{Oid, RepoPath};

use crate::Cancel;
use crate::candidate::folder_snapshot::FolderSnapshot;
use crate::candidate::integrity::{self, Checkout};
use crate::candidate::stage;
use crate::candidate::status::repository_of;
use crate::error::{GitError, OnPath};
use crate::plumbing::disk::remove;
use crate::plumbing::git::Git;
use crate::plumbing::overrides::OWN_ATTRIBUTES;
use crate::repository::Repository;
use crate::worktree::clean_git::{self, Head};

/// Overrides of the user's configuration here, besides the general ones.
const SETTINGS: &[&str] = &[
    // This includes the `post-index-change` hook.
    "-c",
    "core.hooksPath=/dev/null",
    // All of the tree, regardless of the user's sparse checkout.
    "-c",
    "core.sparseCheckout=false",
];

#[derive(Clone, Copy, Debug)]
pub struct CleanRequest<'a> {
    pub tree: &'a Oid,
    /// The original content of the protected paths, written over the tree.
    pub over: &'a [PreparedCheckout],
    /// The folder, which is created if it is missing. It must belong to the caller alone: its content may be removed.
    pub folder: &'a Utf8Path,
    /// The files that stay: all others are removed first. Tracked files in the list were verified before.
    pub kept: &'a FolderSnapshot,
    /// Git's index of the files; it is outside of the folder, and a wrong one does no harm.
    pub index: &'a Utf8Path,
    pub cancel: Option<&'a Cancel>,
}

/// A path and its required content, which replaces the tree's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreparedCheckout {
    pub path: RepoPath,
    /// Its mode, in octal as git writes it, and its content; none if it must not exist.
    pub file: Option<(String, Oid)>,
}

impl Repository {
    /// Makes a folder contain exactly what the request says, and what its `.gitignore` names. It may be repeated, and
    /// is fast if little has changed. Nested repositories are filled too if this worktree has them; otherwise their
    /// folders are empty, as here.
    /// Errors: [`GitError`] if a file, or a filter of it, fails; [`GitError::Cancelled`]. The folder is unusable then.
    pub fn check_out_clean(&self, request: CleanRequest<'_>) -> Result<(), GitError> {
        // They would give files another content than in any other checkout, and git has no option to ignore them.
        if self.changed_pins()?.iter().any(|name| name == OWN_ATTRIBUTES) {
            return Err(GitError::OtherAttributes(self.common_dir().join(OWN_ATTRIBUTES)));
        }
        request.kept.remove_others(request.folder)?;
        let mut made = self.try_check_out(request, Head::AsThere, request.folder);
        if matches!(made, Err(GitError::Failed { .. } | GitError::Disk { .. })) {
            // A gate left something that git cannot work with: start again with an empty folder.
            remove(request.folder)?;
            remove(request.index)?;
            made = self.try_check_out(request, Head::AsThere, request.folder);
        }
        if made.as_ref().is_err_and(GitError::is_of_objects) {
            // Otherwise git's index, and the next checkout, would take the written files for the tree's.
            remove(request.folder)?;
            remove(request.index)?;
        }
        made
    }

    fn try_check_out(
        &self,
        request: CleanRequest<'_>,
        head: Head<'_>,
        top: &Utf8Path,
    ) -> Result<(), GitError> {
        let CleanRequest { folder, index, kept, .. } = request;
        // Git removes untracked files: through a symbolic link it would remove files elsewhere.
        if fs::symlink_metadata(folder).is_ok_and(|meta| !meta.is_dir()) {
            remove(folder)?;
        }
        DirBuilder::new().recursive(true).mode(0o700).create(folder).on("create", folder)?;
        // The lock of a git that was killed.
        remove(&index.with_file_name(format!("{}.lock", index.file_name().unwrap_or_default())))?;
        let git = self.git().until(request.cancel).with_index(index).for_files_in(folder, self.git_dir());
        let tree = self.lay_over(request)?;
        let reset = ["read-tree", "--reset", "-u", "--no-recurse-submodules", tree.as_str()];
        // References are independent of the files.
        let (refs, files) = std::thread::scope(|both| {
            let refs = both.spawn(|| clean_git::refs(git));
            let files = run(git, &reset).and_then(|()| run(git, &["clean", "-ffdq"]));
            (refs.join(), files)
        });
        files?;
        let is_known = |path: &[u8]| kept.has(top, &folder.as_std_path().join(OsStr::from_bytes(path)));
        let written = Checkout { repository: self, tree: &tree, folder, is_known: &is_known };
        integrity::verify_checkout(git, written)?;
        let refs = refs.unwrap_or_else(|panicked| std::panic::resume_unwind(panicked))?;
        clean_git::make(self, git, (folder, index), (head, request.tree, refs))?;
        if folder.join(".gitmodules").symlink_metadata().is_ok() {
            self.fill_repositories(git, request, top)?;
        }
        Ok(())
    }

    /// The tree with the original protected files over it.
    fn lay_over(&self, request: CleanRequest<'_>) -> Result<Oid, GitError> {
        let CleanRequest { tree, over, index, cancel, .. } = request;
        if over.is_empty() {
            return Ok(tree.clone());
        }
        let scratch = index.with_extension("scratch");
        let git = self.git().until(cancel).with_index(&scratch);
        git.output(["read-tree", tree.as_str()], &[])?;
        self.verify_index(git, tree)?;
        // Deleted files first: a file may have become a folder.
        let (mut gone, mut there) = (Vec::new(), Vec::new());
        for PreparedCheckout { path, file } in over {
            match file {
                None => gone.extend(stage::info("0", tree, &path.to_bytes())),
                Some((mode, object)) => there.extend(stage::info(mode, object, &path.to_bytes())),
            }
        }
        gone.extend(there);
        stage::put(git, &gone)?;
        let answer = git.text(["write-tree"], &[])?;
        answer.parse().map_err(|_| GitError::Answer { command: "write-tree", answer })
    }

    /// Fills the folders of nested repositories in the tree from those of this worktree.
    fn fill_repositories(
        &self,
        git: Git<'_>,
        request: CleanRequest<'_>,
        top: &Utf8Path,
    ) -> Result<(), GitError> {
        let printed = git.output(["ls-files", "--stage", "-z"], &[])?;
        for (commit, path) in printed.split(|byte| *byte == 0).filter_map(repository_of) {
            let theirs = self.root().join(path);
            if theirs.join(".git").symlink_metadata().is_err() {
                continue;
            }
            let theirs = Self::open(&theirs, self.env())?.guarded_like(self);
            let asked = ["rev-parse", "--verify", &format!("{commit}^{{tree}}")];
            let answer = theirs.git().until(request.cancel).text(asked, &[])?;
            let tree = answer.parse().map_err(|_| GitError::Answer { command: "rev-parse", answer })?;
            let name = blake3::hash(path.as_bytes()).to_hex();
            let request = CleanRequest {
                tree: &tree,
                over: &[],
                folder: &request.folder.join(path),
                kept: request.kept,
                index: &request.index.with_extension(&name[..16]),
                cancel: request.cancel,
            };
            theirs.try_check_out(request, Head::At(&commit), top)?;
        }
        Ok(())
    }
}

fn run(git: Git<'_>, args: &[&str]) -> Result<(), GitError> {
    git.output(SETTINGS.iter().chain(args), &[]).map(drop)
}
