//! Copies of objects in a folder of their own, each of which is what its name says. An agent can write into the repository's
//! object store, there may be several contents under one name, and each git that reads decides anew which it takes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirBuilder, File};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::DirBuilderExt;

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::git::Oid;

use crate::candidate::integrity::{check_path, verify_trees};
use crate::error::{GitError, OnPath};
use crate::plumbing::disk::{ScratchFolder, remove};
use crate::plumbing::git::Git;

/// Removed when it is dropped.
#[derive(Debug)]
pub(crate) struct VerifiedObjects {
    folder: ScratchFolder,
    shallow: Utf8PathBuf,
}

impl VerifiedObjects {
    /// These commits with their folders, the files in which they differ, and those that set attributes. The first has no
    /// history here.
    /// Errors: [`GitError::ForgedObject`] if one is not what its name says, [`GitError::BadPath`] if no checkout can have one;
    /// [`GitError`] if git fails.
    pub(crate) fn of(git: Git<'_>, store: &Utf8Path, commits: &[&Oid]) -> Result<Self, GitError> {
        let make = || {
            let objects = Self::named(git, store, &names(git, commits)?)?;
            let root = commits.first().map(|root| format!("{root}\n")).unwrap_or_default();
            write(&objects.shallow, &root)?;
            // A forged folder names other objects than the one that was copied.
            let (here, names) = (objects.apply(git), lines(&names(objects.apply(git), commits)?));
            let asked = ["cat-file", "--buffer", "--batch-check"];
            let printed = here.without_fetching().text(asked, names.as_bytes())?;
            match printed.lines().find_map(|line| line.strip_suffix(" missing")) {
                Some(missing) => Err(GitError::ForgedObject(missing.to_owned())),
                None => Ok(objects),
            }
        };
        make().or_else(|error| match error {
            // Git does not say which object is wrong.
            GitError::Failed { .. } => verify_trees(git, commits).and(Err(error)),
            error => Err(error),
        })
    }

    /// The objects with these names.
    /// Errors: As [`VerifiedObjects::of`].
    pub(crate) fn named(git: Git<'_>, store: &Utf8Path, names: &BTreeSet<String>) -> Result<Self, GitError> {
        let folder = ScratchFolder::new()?;
        let objects = Self { shallow: folder.path().join("shallow"), folder };
        let (info, pack) = (objects.folder.path().join("info"), objects.folder.path().join("pack"));
        for folder in [&info, &pack] {
            fs::create_dir(folder).on("create", folder)?;
        }
        write(&objects.shallow, "")?;
        let alternates = info.join("alternates");
        write(&alternates, &format!("{store}\n"))?;
        let (here, pack) = (objects.apply(git), pack.join("pack"));
        let packed =
            here.text(["pack-objects", "-q", "--window=0", pack.as_str()], lines(names).as_bytes())?;
        remove(&alternates)?;
        // It computes each name from the content.
        let (index, packed) = (objects.folder.path().join("found.idx"), format!("{pack}-{packed}.pack"));
        here.output(["index-pack", "-o", index.as_str(), &packed], &[])?;
        let listed = fs::read(&index).on("read", &index)?;
        let listed = here.text(["show-index"], &listed)?;
        // `offset name (checksum)`
        let found: BTreeSet<_> = listed.lines().filter_map(|line| line.split(' ').nth(1)).collect();
        match names.iter().find(|name| !found.contains(name.as_str())) {
            Some(other) => Err(GitError::ForgedObject(other.clone())),
            None => Ok(objects),
        }
    }

    /// The same git, with these objects alone.
    pub(crate) fn apply<'a>(&'a self, git: Git<'a>) -> Git<'a> {
        git.with_objects(self.folder.path(), &self.shallow)
    }

    /// Gives the objects that git made here to the repository with this object folder.
    pub(crate) fn give(&self, store: &Utf8Path) -> Result<(), GitError> {
        let folders = fs::read_dir(self.folder.path()).on("read", self.folder.path())?;
        for folder in folders.filter_map(|folder| folder.ok()?.file_name().into_string().ok()) {
            if folder.len() != 2 {
                continue;
            }
            let (from, to) = (self.folder.path().join(&folder), store.join(&folder));
            if let Err(error) = DirBuilder::new().mode(0o777).create(&to)
                && error.kind() != ErrorKind::AlreadyExists
            {
                return Err(error).on("create", &to);
            }
            for file in from.read_dir_utf8().on("read", &from)? {
                let file = file.on("read", &from)?;
                let (to, beside) =
                    (to.join(file.file_name()), to.join(format!("tmp_obj_{}", file.file_name())));
                if !to.exists() {
                    fs::copy(file.path(), &beside).on("write", &beside)?;
                    fs::rename(&beside, &to).on("write", &to)?;
                }
            }
        }
        Ok(())
    }
}

fn write(path: &Utf8Path, text: &str) -> Result<(), GitError> {
    File::create(path).and_then(|mut file| file.write_all(text.as_bytes())).on("write", path)
}

/// The objects that [`VerifiedObjects::of`] copies, as git reads them now.
fn names(git: Git<'_>, commits: &[&Oid]) -> Result<BTreeSet<String>, GitError> {
    let mut names: BTreeSet<_> = commits.iter().map(ToString::to_string).collect();
    let trees = commits.iter().map(|commit| format!("{commit}^{{tree}}"));
    let trees = git.text(["rev-parse".to_owned()].into_iter().chain(trees), &[])?;
    names.extend(trees.lines().map(str::to_owned));
    let mut files: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
    for commit in commits {
        let printed = git.output(["ls-tree", "-r", "-t", "-z", "--full-tree", commit.as_str()], &[])?;
        for record in printed.split(|byte| *byte == 0).filter(|record| !record.is_empty()) {
            check_path(record.splitn(2, |byte| *byte == b'\t').nth(1).unwrap_or_default())?;
            match kind_and_object(record) {
                Some(("tree", object)) => drop(names.insert(object.to_owned())),
                Some(("blob", object)) if record.ends_with(b".gitattributes") => {
                    names.insert(object.to_owned());
                }
                Some(("blob", _)) => *files.entry(record.to_vec()).or_default() += 1,
                Some(_) | None => {}
            }
        }
    }
    let differing = files.iter().filter(|(_, count)| **count < commits.len());
    names.extend(differing.filter_map(|(record, _)| Some(kind_and_object(record)?.1.to_owned())));
    Ok(names)
}

/// Of a record of `git ls-tree -z`: `mode kind object TAB path`.
fn kind_and_object(record: &[u8]) -> Option<(&str, &str)> {
    let mut words = str::from_utf8(record.split(|byte| *byte == b'\t').next()?).ok()?.split(' ').skip(1);
    Some((words.next()?, words.next()?))
}

fn lines(names: &BTreeSet<String>) -> String {
    names.iter().map(|name| format!("{name}\n")).collect()
}
