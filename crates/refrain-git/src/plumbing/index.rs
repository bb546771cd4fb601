//! The user's index: read, copied, locked as git locks it, and updated after a commit.
//!
//! A commit is made from a private index, so that a hook, a failure or a kill in between leaves the user's unchanged.
//! Meanwhile `index.lock` is held, as `git commit -a` holds it: no other git can stage anything in between. The lock
//! contains the loop's id, so that a loop that was killed while holding it does not lock out itself and the user.
//!
//! An index says of each file how it looked when it was read, and git does not read a file again that still looks so. An
//! agent can write that: a candidate is made from an index whose file attributes git wrote for Refrain alone.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::LoopId;
use refrain_files::IfThere;
use refrain_proc::tool::SignalHold;

use crate::error::{GitError, OnPath};
use crate::plumbing::disk::{FileStamp, LARGEST, remove, seen};
use crate::plumbing::git::Git;
use crate::repository::Repository;

/// The start of a loop's lock; the loop's id and a line break follow. An index starts with `DIRC` instead.
const MARK: &str = "refrain loop ";

/// Puts a copy of an index in the place of `copy`, with its modification time: git rereads files that are not older than
/// their index, because they may have been written in the same clock tick. An agent may put a link there at any time.
fn copy_with_time(path: &Utf8Path, copy: &Utf8Path) -> Result<(), GitError> {
    let folder = copy.parent().unwrap_or(copy);
    let made = || -> io::Result<()> {
        let from = refrain_files::open_regular(path)?;
        let meta = from.metadata()?;
        let mut to = tempfile::Builder::new().prefix(".index-").tempfile_in(folder)?;
        io::copy(&mut from.take(LARGEST), &mut to)?;
        let permissions = fs::symlink_metadata(copy).map_or(meta.permissions(), |there| there.permissions());
        to.as_file().set_permissions(permissions)?;
        to.as_file().set_modified(meta.modified()?)?;
        to.persist(copy).map(drop).map_err(|error| error.error)
    };
    made().on("copy", path)
}

/// Lists the entries of an index: `tag mode object stage TAB path`.
const ENTRIES: &[&str] = &["ls-files", "--stage", "-v", "-z"];

/// The records of [`ENTRIES`], by path: a conflict has several.
fn by_path(printed: &[u8]) -> BTreeMap<&[u8], Vec<&[u8]>> {
    let mut entries: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for record in printed.split(|byte| *byte == 0) {
        if let Some(tab) = memchr::memchr(b'\t', record) {
            entries.entry(&record[tab + 1..]).or_default().push(record);
        }
    }
    entries
}

/// Removes the lock of a private index, which only a killed git leaves: no other process knows the path.
pub(crate) fn unlock_private(index: &Utf8Path) -> Result<(), GitError> {
    remove(&Utf8PathBuf::from(format!("{index}.lock")))
}

#[derive(Debug)]
pub(crate) struct Index {
    path: Utf8PathBuf,
    lock: Utf8PathBuf,
}

impl Index {
    pub(crate) fn of(repository: &Repository) -> Self {
        let path = repository.git_dir().join("index");
        Self { lock: repository.git_dir().join("index.lock"), path }
    }

    pub(crate) fn seen(&self) -> FileStamp {
        seen(&self.path)
    }

    /// Copies it, if it exists. Returns its stamp before.
    pub(crate) fn copy_to(&self, copy: &Utf8Path) -> Result<FileStamp, GitError> {
        unlock_private(copy)?;
        let seen = self.bounded()?;
        match seen {
            Some(_) => copy_with_time(&self.path, copy)?,
            None => remove(copy)?,
        }
        Ok(seen)
    }

    /// Gives the entries of this index, but not their file attributes, to a private one, whose own attributes are kept
    /// for the entries that it has already. Returns the stamp of this index before.
    pub(crate) fn entries_to(&self, git: Git<'_>, private: &Utf8Path) -> Result<FileStamp, GitError> {
        unlock_private(private)?;
        let seen = self.bounded()?;
        let theirs = git.output(ENTRIES, &[])?;
        let git = git.with_index(private);
        let ours = match git.output(ENTRIES, &[]) {
            // Cut off by a power loss.
            Err(GitError::Failed { .. }) => remove(private).map(|()| Vec::new())?,
            printed => printed?,
        };
        let (theirs, ours) = (by_path(&theirs), by_path(&ours));
        let is_other = |path: &&[u8]| theirs.get(path) != ours.get(path);
        let (mut gone, mut there, mut skipped, mut assumed) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (path, records) in ours.iter().filter(|(path, _)| is_other(path)) {
            let object = records[0].split(|byte| *byte == b' ').nth(2).unwrap_or_default();
            gone.extend([b"0 ", object, b"\t", path, b"\0"].concat());
        }
        for (path, records) in theirs.iter().filter(|(path, _)| is_other(path)) {
            there.extend(records.iter().flat_map(|record| [&record[2..], b"\0"].concat()));
            let tag = records[0][0];
            for (list, has_flag) in
                [(&mut skipped, tag.eq_ignore_ascii_case(&b'S')), (&mut assumed, tag.is_ascii_lowercase())]
            {
                if has_flag {
                    list.extend([path, b"\0".as_slice()].concat());
                }
            }
        }
        if gone.is_empty() && there.is_empty() {
            return Ok(seen);
        }
        // Removed entries first: a file may have become a folder.
        git.output(["update-index", "-z", "--index-info"], &[gone, there].concat())?;
        for (flag, paths) in [("--skip-worktree", skipped), ("--assume-unchanged", assumed)] {
            if !paths.is_empty() {
                git.output(["update-index", flag, "-z", "--stdin"], &paths)?;
            }
        }
        // It reads each file whose attributes are unknown; its exit code says whether some differ.
        git.run(["update-index", "-q", "--refresh"], &[])?;
        Ok(seen)
    }

    /// Its stamp, if it exists; an error if it is no regular file of a plausible size.
    fn bounded(&self) -> Result<FileStamp, GitError> {
        let found = refrain_files::open_regular(&self.path).and_then(|file| file.metadata());
        match found.if_there().on("read", &self.path)? {
            Some(meta) if meta.len() > LARGEST => {
                Err(GitError::LargeIndex { path: self.path.clone(), most: LARGEST })
            }
            found => Ok(found.and_then(|_| self.seen())),
        }
    }

    /// Whether another git, or another loop, holds its lock.
    pub(crate) fn is_locked(&self, id: &LoopId) -> bool {
        self.lock.symlink_metadata().is_ok() && !self.is_left_by(id)
    }

    /// Takes the lock; none if another process holds it. A lock that this loop left when it was killed is taken over.
    pub(crate) fn lock(&self, id: &LoopId) -> Result<Option<IndexLock<'_>>, GitError> {
        let signals = SignalHold::begin();
        if self.is_left_by(id) {
            fs::remove_file(&self.lock).on("take away", &self.lock)?;
        }
        // Written to a temporary file first: a kill between creating and writing it would leave an empty lock, which
        // could be another git's and so would be respected for ever.
        let beside = self.path.with_extension(format!("refrain-{id}"));
        // The leftover of a kill may be the same file as a lock.
        let _ = fs::remove_file(&beside);
        write_new(&beside, id).on("write", &beside)?;
        let taken = match fs::hard_link(&beside, &self.lock) {
            // A file system without hard links.
            Err(error) if matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::Unsupported) => {
                write_new(&self.lock, id)
            }
            other => other,
        };
        let _ = fs::remove_file(&beside);
        match taken {
            Ok(()) => Ok(Some(IndexLock { index: self, _signals: signals })),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(None),
            Err(error) => Err(error).on("create", &self.lock),
        }
    }

    fn is_left_by(&self, id: &LoopId) -> bool {
        let mut begin = Vec::new();
        let read =
            refrain_files::open_regular(&self.lock).and_then(|file| file.take(128).read_to_end(&mut begin));
        read.is_ok() && begin == format!("{MARK}{id}\n").into_bytes()
    }
}

/// Creates a lock of this loop if there is no file.
fn write_new(path: &Utf8Path, id: &LoopId) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(format!("{MARK}{id}\n").as_bytes())
}

#[derive(Debug)]
pub(crate) struct IndexLock<'a> {
    index: &'a Index,
    /// A signal ends this process only after the lock is removed.
    _signals: SignalHold,
}

impl IndexLock<'_> {
    pub(crate) fn seen(&self) -> FileStamp {
        self.index.seen()
    }

    pub(crate) fn copy_to(&self, copy: &Utf8Path) -> Result<(), GitError> {
        self.index.copy_to(copy).map(|_| ())
    }

    /// Replaces the index by a copy of `other`, and releases the lock. It is one rename, so there is always a complete
    /// index. It is not synced, as git's is not: after a power loss `git reset` recreates it.
    pub(crate) fn replace_with(self, other: &Utf8Path) -> Result<(), GitError> {
        copy_with_time(other, &self.index.path)
    }
}

impl Drop for IndexLock<'_> {
    fn drop(&mut self) {
        // If that fails, the next commit of this loop finds its own lock and takes it over.
        let _ = fs::remove_file(&self.index.lock);
    }
}
