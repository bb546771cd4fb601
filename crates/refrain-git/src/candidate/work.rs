//! The work as one digest: the content of every file in the worktree that git does not ignore, independent of index
//! and history. Files that were changed or new before the loop count; so do repositories inside of it, as plain
//! files.
//!
//! Git says which files there are, and what its index has of those that are unchanged; all others are read. A file that
//! looks (size, times, inode) as at the last look is not read again. Without a repository every file counts.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::git::Oid;
use refrain_core::work::WorkDigest;
use rustix::fs::{Mode, OFlags};

use crate::Cancel;
use crate::candidate::SUBMODULE;
use crate::error::GitError;
use crate::plumbing::object::{blob, blob_of};
use crate::repository::{Repository, is_refrains};

/// Larger files (in bytes) are compared by stamp until the stamp changes; then they are hashed.
const LARGE: u64 = 8 << 20;

/// How many files and folders are read. With more, the state is unknown, which never counts as "unchanged".
const MOST: usize = 200_000;

/// After how many files and folders a cancellation is looked for.
const EACH: usize = 64;

/// A file changed this shortly before a look may change again with the same stamp: it is read again.
const TICK: Duration = Duration::from_millis(100);

/// The last state of a worktree, so that the next look need not read it again.
#[derive(Debug, Default)]
pub struct WorkSnapshot {
    root: Utf8PathBuf,
    files: BTreeMap<Vec<u8>, Content>,
}

/// The attributes of a file or folder; if it is settled, different content has a different stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    size: u64,
    mode: u32,
    modified: (i64, i64),
    changed: (i64, i64),
    is_settled: bool,
}

#[derive(Debug)]
struct Content {
    stamp: Stamp,
    /// `x` for an executable file, `l` for a link, `f` for any other file.
    kind: u8,
    /// The object name of its content; none if it cannot be read, or is of another kind.
    object: Option<Oid>,
    by_stamp: bool,
}

/// A look at a worktree.
struct Scan<'a> {
    root: &'a Utf8Path,
    /// The files at the last look.
    known: &'a BTreeMap<Vec<u8>, Content>,
    /// See [`settled_before`].
    before: Duration,
    until: Instant,
    cancel: Option<&'a Cancel>,
    files: BTreeMap<Vec<u8>, Content>,
    /// How many files and folders were seen.
    count: usize,
}

impl Stamp {
    fn of(meta: &Metadata, before: Duration) -> Self {
        let changed = (meta.ctime(), meta.ctime_nsec());
        let since = Duration::new(
            u64::try_from(changed.0).unwrap_or_default(),
            u32::try_from(changed.1).unwrap_or_default(),
        );
        Self {
            inode: meta.ino(),
            size: meta.len(),
            mode: meta.mode(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed,
            is_settled: since < before,
        }
    }

    /// Whether a file with stamp `now` has the same content as with stamp `self`.
    fn is_same(&self, now: &Self) -> bool {
        self.is_settled && self.looks(now)
    }

    fn looks(&self, now: &Self) -> bool {
        Self { is_settled: self.is_settled, ..*now } == *self
    }

    fn is_folder(&self) -> bool {
        self.mode & 0o170_000 == 0o040_000
    }

    fn kind(&self) -> u8 {
        match self.mode & 0o170_000 {
            0o120_000 => b'l',
            _ if self.mode & 0o100 != 0 => b'x',
            _ => b'f',
        }
    }
}

impl WorkSnapshot {
    /// The digest of the work now, in the worktree of `repository`, or in the plain folder `root` if there is none.
    /// Errors: [`GitError`] if git cannot be run, [`GitError::TooManyFiles`] beyond 200,000 files and folders, and
    /// [`GitError::Cancelled`] if it takes longer than `until` or is cancelled.
    pub fn look(
        &mut self,
        repository: Option<&Repository>,
        root: &Utf8Path,
        (until, cancel): (Instant, Option<&Cancel>),
    ) -> Result<WorkDigest, GitError> {
        let root = repository.map_or(root, Repository::root);
        if self.root != root {
            *self = Self { root: root.to_owned(), ..Self::default() };
        }
        let (known, before) = (&self.files, settled_before());
        let scan = Scan { root, known, before, until, cancel, files: BTreeMap::new(), count: 0 };
        self.files = match repository {
            Some(repository) => scan.with_git(repository)?,
            None => scan.of_folder()?,
        };
        Ok(self.digest())
    }

    fn digest(&self) -> WorkDigest {
        let mut hasher = blake3::Hasher::new();
        for (path, content) in &self.files {
            hasher.update(path);
            hasher.update(&[0, content.kind]);
            match &content.object {
                Some(object) => hasher.update(object.as_str().as_bytes()),
                None => hasher.update(b"-"),
            };
            if content.by_stamp {
                let Stamp { inode, size, modified: (seconds, nanoseconds), .. } = content.stamp;
                hasher.update(&inode.to_le_bytes());
                hasher.update(&size.to_le_bytes());
                hasher.update(&seconds.to_le_bytes());
                hasher.update(&nanoseconds.to_le_bytes());
            }
            hasher.update(b"\n");
        }
        hasher.finalize().into()
    }
}

impl Scan<'_> {
    /// Asked now and then: it is a system call.
    fn is_cancelled(&self) -> bool {
        self.count % EACH == 1 && self.cancel.is_some_and(Cancel::is_cancelled)
    }

    fn of_folder(mut self) -> Result<BTreeMap<Vec<u8>, Content>, GitError> {
        self.add(Vec::new(), None)?;
        Ok(self.files)
    }

    /// Gets from git the list of files, and the objects of unchanged ones.
    fn with_git(mut self, repository: &Repository) -> Result<BTreeMap<Vec<u8>, Content>, GitError> {
        let printed = repository.git().output(LISTED, &[])?;
        let listed = listed(&printed).ok_or_else(|| GitError::Answer {
            command: "ls-files",
            answer: String::from_utf8_lossy(&printed[..printed.len().min(200)]).into_owned(),
        })?;
        for (path, in_index) in listed {
            // The path of a nested repository ends with a slash.
            self.add(path.strip_suffix(b"/").unwrap_or(path).to_vec(), in_index)?;
        }
        Ok(self.files)
    }

    /// Adds a file, or all files in a folder; `in_index` is git's object of a file that is unchanged.
    fn add(&mut self, path: Vec<u8>, in_index: Option<&str>) -> Result<(), GitError> {
        let mut paths = vec![path];
        while let Some(path) = paths.pop() {
            if is_refrains(&path) || last(&path) == b".git" {
                continue;
            }
            self.count += 1;
            if Instant::now() >= self.until || self.is_cancelled() {
                return Err(GitError::Cancelled);
            }
            if self.count > MOST {
                return Err(GitError::TooManyFiles { most: MOST });
            }
            let on_disk = join(self.root, &path);
            // A missing file is no part of the work; it may never have existed (a sparse checkout).
            let Ok(meta) = fs::symlink_metadata(&on_disk) else { continue };
            let stamp = Stamp::of(&meta, self.before);
            if stamp.is_folder() {
                paths.extend(names(&on_disk).into_iter().map(|name| below(&path, &name)));
                continue;
            }
            let known = self.known.get(&path);
            let content = match (known, in_index) {
                (Some(known), _) if known.stamp.is_same(&stamp) => {
                    Content { stamp, object: known.object.clone(), ..*known }
                }
                (None, Some(object)) => {
                    Content { kind: stamp.kind(), stamp, object: object.parse().ok(), by_stamp: false }
                }
                // Also where git says that it is unchanged: an agent can make it say so.
                (known, _) => {
                    let by_stamp = known.is_none_or(|it| it.by_stamp && it.stamp.looks(&stamp));
                    self.read(&on_disk, stamp, by_stamp)?
                }
            };
            self.files.insert(path, content);
        }
        Ok(())
    }

    /// Reads a file, or the target of a link; a large one only if `by_stamp` is not set.
    fn read(&self, on_disk: &Path, stamp: Stamp, by_stamp: bool) -> Result<Content, GitError> {
        let (kind, by_stamp) = (stamp.kind(), by_stamp && stamp.size > LARGE);
        let content = |object| Content { stamp, kind, object, by_stamp };
        if by_stamp {
            return Ok(content(None));
        }
        if kind == b'l' {
            let target = fs::read_link(on_disk).ok();
            return Ok(content(target.and_then(|target| blob(target.as_os_str().as_bytes()))));
        }
        if stamp.mode & 0o170_000 != 0o100_000 {
            return Ok(content(None));
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let Ok(file) = rustix::fs::open(on_disk, flags, Mode::empty()) else { return Ok(content(None)) };
        let mut reader = Timed { file: file.into(), until: self.until, cancel: self.cancel, is_over: false };
        let object = blob_of(&mut reader, stamp.size);
        if reader.is_over {
            return Err(GitError::Cancelled);
        }
        Ok(content(object.ok().flatten()))
    }
}

/// Reads a file as long as there is time: an agent can make one of terabytes that takes no room.
struct Timed<'a> {
    file: fs::File,
    until: Instant,
    cancel: Option<&'a Cancel>,
    is_over: bool,
}

impl Read for Timed<'_> {
    fn read(&mut self, part: &mut [u8]) -> io::Result<usize> {
        self.is_over = Instant::now() >= self.until || self.cancel.is_some_and(Cancel::is_cancelled);
        if self.is_over { Err(io::ErrorKind::TimedOut.into()) } else { self.file.read(part) }
    }
}

/// Lists the index with its objects, its changed or missing files, and new files.
const LISTED: &[&str] =
    &["ls-files", "-z", "-t", "--stage", "--modified", "--deleted", "--others", "--exclude-standard"];

/// Each path that git does not ignore, and its object if the file is unchanged.
fn listed(printed: &[u8]) -> Option<BTreeMap<&[u8], Option<&str>>> {
    let mut listed = BTreeMap::new();
    for record in printed.split(|byte| *byte == 0).filter(|record| !record.is_empty()) {
        let (mark, rest) = record.split_at_checked(2)?;
        if mark == b"? " {
            listed.insert(rest, None);
            continue;
        }
        // mode object stage TAB path
        let tab = rest.iter().position(|byte| *byte == b'\t')?;
        let (mut fields, path) = (str::from_utf8(&rest[..tab]).ok()?.split(' '), &rest[tab + 1..]);
        let (mode, object, stage) = (fields.next()?, fields.next()?, fields.next()?);
        // A later record for the same path says that it is changed or missing.
        let is_clean = mark == b"H " && stage == "0" && mode != SUBMODULE;
        listed.insert(path, is_clean.then_some(object));
    }
    Some(listed)
}

/// A file changed before this time gets another stamp if it changes again.
fn settled_before() -> Duration {
    #[expect(clippy::disallowed_methods, reason = "compared with the times of files")]
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.saturating_sub(TICK)
}

fn names(folder: &Path) -> Vec<Vec<u8>> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().as_bytes().to_vec()).collect()
}

fn join(root: &Utf8Path, path: &[u8]) -> PathBuf {
    root.as_std_path().join(OsStr::from_bytes(path))
}

fn below(folder: &[u8], name: &[u8]) -> Vec<u8> {
    if folder.is_empty() { name.to_vec() } else { [folder, b"/", name].concat() }
}

fn last(path: &[u8]) -> &[u8] {
    path.iter().rposition(|byte| *byte == b'/').map_or(path, |at| &path[at + 1..])
}
