//! The user's files that a hand-over replaces, kept until the branch has moved. They are put back as they were: a filter that
//! makes one anew could run a script of the checkout, which has the work of the agent then.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use camino::Utf8PathBuf;
use refrain_core::text::printable;
use refrain_files::IfThere;

use crate::error::{GitError, OnPath};
use crate::landing::filtered_files::{folders_above, place};
use crate::plumbing::disk::remove;
use crate::repository::Repository;

/// Removed when it is dropped; after a kill, by the next hand-over.
pub(crate) struct ReplacedFiles {
    folder: Utf8PathBuf,
    paths: Vec<Vec<u8>>,
}

impl Drop for ReplacedFiles {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl ReplacedFiles {
    /// Keeps those of these files that are there, in this folder.
    pub(crate) fn keep<'a>(
        repository: &Repository,
        folder: Utf8PathBuf,
        paths: impl Iterator<Item = &'a Vec<u8>>,
    ) -> Result<Self, GitError> {
        remove(&folder)?;
        fs::create_dir(&folder).on("create", &folder)?;
        let mut kept = Self { folder, paths: Vec::new() };
        for path in paths {
            let file = repository.on_disk(path);
            // A link would give the file another time of its last change: git would take it for changed.
            let copied = copy(&file, &kept.file(kept.paths.len())).if_there();
            if copied.on("keep", printable(&file.to_string_lossy()).as_ref())?.is_some() {
                kept.paths.push(path.clone());
            }
        }
        Ok(kept)
    }

    pub(crate) fn paths(&self) -> BTreeSet<&Vec<u8>> {
        self.paths.iter().collect()
    }

    /// Puts all of them back. What is in the place of one is a file of the hand-over, or an empty folder.
    /// Errors: The first, if some cannot be put back.
    pub(crate) fn put_back(&self, repository: &Repository) -> Result<(), GitError> {
        let root = repository.root().as_std_path();
        let mut all = Ok(());
        for (at, path) in self.paths.iter().enumerate() {
            let file = repository.on_disk(path);
            let back = match fs::read_link(self.file(at)) {
                Ok(target) => folders_above(&file, root).and_then(|()| {
                    let _ = fs::remove_file(&file).or_else(|_| fs::remove_dir(&file));
                    symlink(target, &file)
                }),
                Err(_) => place(&self.file(at), &file, root),
            };
            all = all.and(back.on("restore", printable(&file.to_string_lossy()).as_ref()));
        }
        all
    }

    fn file(&self, at: usize) -> PathBuf {
        self.folder.as_std_path().join(at.to_string())
    }
}

/// A link stays one.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    match fs::read_link(from) {
        Ok(target) => symlink(target, to),
        Err(_) => fs::copy(from, to).map(drop),
    }
}
