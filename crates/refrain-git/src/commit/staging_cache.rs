//! The last staging in the private index: directly after the proof, the proven content is committed, and no file that is
//! written later.
//!
//! A file counts as unchanged if it looks as it did, down to the time that its inode was changed, which no program
//! can set. Two writes in one tick of the clock look the same, so a file that was written in the very tick of the
//! look is not cached: as git does with an index that is not newer than its files.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use camino::Utf8Path;
use refrain_core::git::Oid;

use crate::candidate::Candidate;
use crate::candidate::memory::{ReadStamps, StagedWork};
use crate::candidate::status::{Kind, Status};
use crate::error::GitError;
use crate::plumbing::disk::{FileStamp, seen};
use crate::plumbing::index::Index;
use crate::repository::Repository;

impl ReadStamps {
    /// Records their stamps. None if a later change could go unnoticed: in a nested repository, or in a file that is
    /// not older than `copy`, which was written just before git was asked.
    pub(crate) fn of(repository: &Repository, status: &Status, copy: &Utf8Path) -> Option<Self> {
        let (.., seconds, nanoseconds) = seen(copy)?;
        let is_older = |file: &FileStamp| file.is_none_or(|(.., s, n)| (s, n) < (seconds, nanoseconds));
        let is_file = |kind: &Kind| match kind {
            Kind::Tracked(tracked) => tracked.submodule.is_none(),
            Kind::New => true,
            Kind::Unmerged => false,
        };
        let is_plain = status.entries.iter().all(|it| is_file(&it.kind) && !it.path.ends_with(b"/"));
        let looks = Self::now(repository, status);
        (is_plain && looks.0.iter().all(is_older)).then_some(looks)
    }

    fn now(repository: &Repository, status: &Status) -> Self {
        Self(status.entries.iter().map(|entry| look(&repository.on_disk(&entry.path))).collect())
    }
}

/// As [`seen`], of a link itself.
fn look(path: &Path) -> FileStamp {
    let meta = fs::symlink_metadata(path).ok()?;
    Some((meta.ino(), meta.len(), meta.mtime(), meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec()))
}

impl Status {
    /// Whether the head and its branch are unchanged.
    fn stands(&self, repository: &Repository) -> Result<bool, GitError> {
        Ok(repository.current_branch()? == self.branch && repository.reference("HEAD")? == self.head)
    }
}

impl StagedWork {
    /// Caches the content of the private index `index`, if it contains all changes of the loop.
    pub(crate) fn keep(
        repository: &Repository,
        (index, person): (&Utf8Path, FileStamp),
        (status, looks): (Status, Option<ReadStamps>),
        (candidate, tree): (Candidate, &Oid),
        largest: u64,
    ) {
        let is_all = candidate.left_out.is_empty() && candidate.allowed.is_empty();
        let private = (index.to_owned(), seen(index));
        let staged = looks.filter(|_| is_all).map(|looks| {
            let tree = tree.clone();
            Self { status, candidate, tree, person, looks, private, largest }
        });
        repository.memory().staged = staged;
    }

    /// The cached state directly after a look, if no command has run since, the head is the same, and no file that
    /// git showed has changed. Git is not asked whether others have: it would look with an index that an agent may write.
    pub(crate) fn take(
        repository: &Repository,
        index: &Utf8Path,
        largest: u64,
    ) -> Result<Option<Self>, GitError> {
        match Self::last(repository, index, largest) {
            Some(staged) if staged.status.stands(repository)? => Ok(Some(staged)),
            Some(_) | None => Ok(None),
        }
    }

    /// The cached state, if the private index, the user's, and the files that git showed are unchanged.
    fn last(repository: &Repository, index: &Utf8Path, largest: u64) -> Option<Self> {
        let staged = repository.memory().staged.take()?;
        let is_there = staged.largest == largest
            && staged.private == (index.to_owned(), seen(index))
            && staged.person == Index::of(repository).seen()
            && staged.looks == ReadStamps::now(repository, &staged.status);
        is_there.then_some(staged)
    }
}
