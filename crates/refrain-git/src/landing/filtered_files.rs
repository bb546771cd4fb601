//! Files as the filters of the user make them from their objects. The filters run in a folder of their own: one whose script
//! is in the work would run what an agent wrote.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;

use refrain_core::git::Oid;
use refrain_core::text::printable;

use crate::candidate::stage;
use crate::error::{GitError, OnPath};
use crate::plumbing::attributes::AttributesFolder;
use crate::plumbing::disk::ScratchFolder;
use crate::plumbing::git::Git;
use crate::repository::Repository;

pub(crate) struct FilteredFiles {
    folder: ScratchFolder,
    pub(crate) paths: Vec<Vec<u8>>,
}

impl FilteredFiles {
    /// Those of `files`, of `commit`, that a filter makes.
    /// Errors: [`GitError::Filter`] if one fails.
    pub(crate) fn make<'a>(
        repository: &Repository,
        git: Git<'_>,
        commit: &Oid,
        files: impl Iterator<Item = (&'a Vec<u8>, &'a stage::File)>,
    ) -> Result<Self, GitError> {
        let mut made = Self { folder: ScratchFolder::new()?, paths: Vec::new() };
        let names = repository.filters(git)?;
        let files = files.filter_map(|(path, file)| Some((path, file.as_ref()?)));
        let files: Vec<_> = files.filter(|(_, (mode, _))| mode.starts_with("100")).collect();
        if files.is_empty() || names.is_empty() {
            return Ok(made);
        }
        let attributes = AttributesFolder::of(git, commit)?;
        let git = attributes.apply(git, repository.git_dir()).with_filters_apart();
        let asked =
            git.output(["check-attr", "-z", "--stdin", "filter"], &list(files.iter().map(|it| it.0)))?;
        let fields: Vec<_> = asked.split(|byte| *byte == 0).collect();
        for field in fields.chunks_exact(3) {
            if names.iter().any(|name| name.as_bytes() == field[2]) {
                made.paths.push(field[0].to_vec());
            }
        }
        if made.paths.is_empty() {
            return Ok(made);
        }
        let (folder, index) = (made.folder.path().join("files"), made.folder.path().join("index"));
        let git = git.with_index(&index);
        let lines = files.iter().flat_map(|(path, (mode, object))| stage::info(mode, object, path));
        stage::put(git, &lines.collect::<Vec<_>>())?;
        let words = ["checkout-index", "-z", "--stdin", &format!("--prefix={folder}/")];
        match git.output(words, &list(made.paths.iter())) {
            Err(GitError::Failed { said, .. }) => Err(GitError::Filter(said)),
            other => other.map(|_| made),
        }
    }

    /// Gives the files in the repository, as git wrote them without filters, this content.
    pub(crate) fn place(&self, repository: &Repository) -> Result<(), GitError> {
        for path in &self.paths {
            let to = repository.on_disk(path);
            // A sparse checkout does not have it.
            let Some(parent) = to.parent().filter(|_| to.symlink_metadata().is_ok_and(|it| it.is_file()))
            else {
                continue;
            };
            let place = || -> io::Result<()> {
                let from = self.folder.path().as_std_path().join("files").join(OsStr::from_bytes(path));
                let mut new = tempfile::Builder::new().prefix(".refrain-").tempfile_in(parent)?;
                io::copy(&mut File::open(&from)?, &mut new)?;
                new.as_file().set_permissions(fs::metadata(&from)?.permissions())?;
                new.persist(&to)?;
                Ok(())
            };
            place().on("write", printable(&to.to_string_lossy()).as_ref())?;
        }
        Ok(())
    }
}

fn list<'a>(paths: impl Iterator<Item = &'a Vec<u8>>) -> Vec<u8> {
    paths.flat_map(|path| [path.as_slice(), b"\0"].concat()).collect()
}
