//! The user's files that a hand-over replaces, kept until the branch has moved. They are put back as they were: the filters
//! that made them could run a script in the checkout, which is the agent's by then.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use camino::Utf8Path;
use refrain_core::text::printable;
use refrain_files::IfThere;

use crate::error::{GitError, OnPath};
use crate::landing::filtered_files::folders_above;
use crate::plumbing::disk::ScratchFolder;
use crate::repository::Repository;

pub(crate) struct ReplacedFiles {
    folder: ScratchFolder,
    paths: Vec<Vec<u8>>,
}

impl ReplacedFiles {
    /// Keeps those of these files that are there, in a folder in `beside`.
    pub(crate) fn keep<'a>(
        repository: &Repository,
        beside: &Utf8Path,
        paths: impl Iterator<Item = &'a Vec<u8>>,
    ) -> Result<Self, GitError> {
        let mut kept = Self { folder: ScratchFolder::inside(beside)?, paths: Vec::new() };
        for path in paths {
            let file = repository.on_disk(path);
            let copied = duplicate(&file, &kept.file(kept.paths.len())).if_there();
            if copied.on("keep", printable(&file.to_string_lossy()).as_ref())?.is_some() {
                kept.paths.push(path.clone());
            }
        }
        Ok(kept)
    }

    pub(crate) fn paths(&self) -> BTreeSet<&Vec<u8>> {
        self.paths.iter().collect()
    }

    /// Puts them back. What is in the place of one is a file of the hand-over, or an empty folder.
    pub(crate) fn put_back(&self, repository: &Repository) -> Result<(), GitError> {
        for (at, path) in self.paths.iter().enumerate() {
            let file = repository.on_disk(path);
            let back = folders_above(&file, repository.root().as_std_path()).and_then(|()| {
                let _ = fs::remove_file(&file).or_else(|_| fs::remove_dir(&file));
                duplicate(&self.file(at), &file)
            });
            back.on("restore", printable(&file.to_string_lossy()).as_ref())?;
        }
        Ok(())
    }

    fn file(&self, at: usize) -> PathBuf {
        self.folder.path().as_std_path().join(at.to_string())
    }
}

/// The same file under another name, or a copy where that cannot be. A link stays one.
fn duplicate(from: &Path, to: &Path) -> io::Result<()> {
    match fs::hard_link(from, to) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => match fs::read_link(from) {
            Ok(target) => symlink(target, to),
            Err(_) => fs::copy(from, to).map(drop),
        },
        linked => linked,
    }
}
