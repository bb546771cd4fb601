//! Files as the filters of the user make them from their objects, in a folder without the work: a script there would be what
//! an agent wrote.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use refrain_core::git::Oid;
use refrain_core::text::printable;

use crate::candidate::stage;
use crate::error::{GitError, OnPath};
use crate::plumbing::attributes::AttributesFolder;
use crate::plumbing::disk::ScratchFolder;
use crate::plumbing::git::Git;
use crate::repository::Repository;

#[derive(Default)]
pub(crate) struct FilteredFiles {
    folder: Option<ScratchFolder>,
    pub(crate) paths: BTreeSet<Vec<u8>>,
}

impl FilteredFiles {
    /// Runs the filters for the files of `commit` that have one.
    /// Errors: [`GitError::Filter`] if one fails.
    pub(crate) fn make<'a>(
        repository: &Repository,
        git: Git<'_>,
        commit: &Oid,
        files: impl Iterator<Item = (&'a Vec<u8>, &'a stage::File)>,
    ) -> Result<Self, GitError> {
        let names = repository.filters(git)?;
        let files = files.filter_map(|(path, file)| Some((path, file.as_ref()?)));
        let files: Vec<_> = files.filter(|(_, (mode, _))| mode.starts_with("100")).collect();
        if files.is_empty() || names.is_empty() {
            return Ok(Self::default());
        }
        let attributes = AttributesFolder::of(git, commit)?;
        let git = attributes.apply(git, repository.git_dir()).with_filters_apart();
        let asked = list(files.iter().map(|(path, _)| *path));
        let printed = git.output(["check-attr", "-z", "--stdin", "filter"], &asked)?;
        let fields: Vec<_> = printed.split(|byte| *byte == 0).collect();
        let is_filtered = |fields: &&[&[u8]]| names.iter().any(|name| name.as_bytes() == fields[2]);
        let filtered = fields.chunks_exact(3).filter(is_filtered);
        let paths: BTreeSet<_> = filtered.map(|fields| fields[0].to_vec()).collect();
        if paths.is_empty() {
            return Ok(Self::default());
        }
        let folder = ScratchFolder::new()?;
        let index = folder.path().join("index");
        let git = git.with_index(&index);
        let lines = files.iter().flat_map(|(path, (mode, object))| stage::info(mode, object, path));
        stage::put(git, &lines.collect::<Vec<_>>())?;
        let words = ["checkout-index", "-z", "--stdin", &format!("--prefix={}/files/", folder.path())];
        match git.output(words, &list(paths.iter())) {
            Err(GitError::Failed { said, .. }) => Err(GitError::Filter(said)),
            other => other.map(|_| Self { folder: Some(folder), paths }),
        }
    }

    /// Writes the files to the repository, except some. What is in their way was found to be a file of the commit before.
    pub(crate) fn place(&self, repository: &Repository, except: &BTreeSet<Vec<u8>>) -> Result<(), GitError> {
        let Some(folder) = &self.folder else { return Ok(()) };
        for path in self.paths.difference(except) {
            let from = folder.path().as_std_path().join("files").join(OsStr::from_bytes(path));
            let to = repository.on_disk(path);
            let placed = place(&from, &to, repository.root().as_std_path());
            placed.on("write", printable(&to.to_string_lossy()).as_ref())?;
        }
        Ok(())
    }
}

/// Makes the folders of a file. What is in the way of one is a file or a link: nothing is written through it.
pub(super) fn folders_above(file: &Path, root: &Path) -> io::Result<()> {
    let above: Vec<_> = file.ancestors().skip(1).take_while(|folder| *folder != root).collect();
    for folder in above.into_iter().rev() {
        if !folder.symlink_metadata().is_ok_and(|it| it.is_dir()) {
            let _ = fs::remove_file(folder);
            fs::create_dir(folder)?;
        }
    }
    Ok(())
}

/// Writes a copy of a file, in place of a file or an empty folder.
pub(super) fn place(from: &Path, to: &Path, root: &Path) -> io::Result<()> {
    folders_above(to, root)?;
    let parent = to.parent().unwrap_or(root);
    let mut new = tempfile::Builder::new().prefix(".refrain-").tempfile_in(parent)?;
    io::copy(&mut File::open(from)?, &mut new)?;
    new.as_file().set_permissions(fs::metadata(from)?.permissions())?;
    // Git would remove an empty folder, too.
    let _ = fs::remove_dir(to);
    new.persist(to)?;
    Ok(())
}

fn list<'a>(paths: impl Iterator<Item = &'a Vec<u8>>) -> Vec<u8> {
    paths.flat_map(|path| [path.as_slice(), b"\0"].concat()).collect()
}
