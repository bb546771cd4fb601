//! The work as one digest: the content of every file in the worktree that git does not ignore, independent of index
//! and history. Files that were changed or new before the loop count; so do repositories inside of it, as plain
//! files.
//!
//! The first look asks git which files there are, and takes from its index what it has of those that are unchanged.
//! Every later look compares how each file and folder looks (size, times, inode) with the look before, and reads only
//! what differs. Git is asked again only when a name appears that it may ignore. Without a repository every file
//! counts.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::git::Oid;
use refrain_core::work::WorkDigest;
use rustix::fs::{Mode, OFlags};

use crate::candidate::SUBMODULE;
use crate::error::GitError;
use crate::plumbing::disk::{FileStamp, seen};
use crate::plumbing::git::Git;
use crate::plumbing::object::{blob, blob_of};
use crate::repository::{Repository, is_refrains};

/// Larger files (in bytes) are compared by stamp until the stamp changes; then they are hashed.
const LARGE: u64 = 8 << 20;

/// How many files and folders are read. With more, the state is unknown, which never counts as "unchanged".
const MOST: usize = 200_000;

/// A file changed this shortly before a look may change again with the same stamp: it is read again.
const TICK: Duration = Duration::from_millis(100);

/// The last state of a worktree, so that the next look need not read it again.
#[derive(Debug, Default)]
pub struct WorkSnapshot {
    root: Utf8PathBuf,
    files: BTreeMap<Vec<u8>, Content>,
    folders: BTreeMap<Vec<u8>, Folder>,
    rules: Option<(Utf8PathBuf, FileStamp)>,
    /// The time when the look is given up.
    until: Option<Instant>,
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

#[derive(Debug)]
struct Folder {
    stamp: Stamp,
    /// Every name in it counts: git's ignore rules do not apply.
    is_plain: bool,
    /// Names in it that do not count.
    ignored: BTreeSet<Vec<u8>>,
}

/// Whether the files on disk are enough to decide.
enum WorkScan {
    Complete,
    AskGit,
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
        self.is_settled && Self { is_settled: true, ..*now } == *self
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
    /// [`GitError::Cancelled`] if it takes longer than `until`.
    pub fn look(
        &mut self,
        repository: Option<&Repository>,
        root: &Utf8Path,
        until: Instant,
    ) -> Result<WorkDigest, GitError> {
        let root = repository.map_or(root, Repository::root);
        if self.root != root {
            *self = Self { root: root.to_owned(), ..Self::default() };
        }
        self.until = Some(until);
        let before = settled_before();
        let is_new = self.folders.is_empty();
        if is_new || matches!(self.look_again(before)?, WorkScan::AskGit) {
            match repository {
                Some(repository) => self.ask_git(repository, before)?,
                None => {
                    (self.files, self.folders) = Default::default();
                    self.add_plain(Vec::new(), before)?;
                }
            }
        }
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

    /// Compares the last state with the files now.
    fn look_again(&mut self, before: Duration) -> Result<WorkScan, GitError> {
        if self.rules.as_ref().is_some_and(|(path, looked)| seen(path) != *looked) {
            return Ok(WorkScan::AskGit);
        }
        let (root, mut gone, mut rules_changed) = (self.root.clone(), Vec::new(), false);
        let until = self.until;
        for (path, content) in &mut self.files {
            check_time(until)?;
            let on_disk = join(&root, path);
            let Ok(meta) = fs::symlink_metadata(&on_disk) else {
                rules_changed |= is_rules(path);
                gone.push(path.clone());
                continue;
            };
            let now = Stamp::of(&meta, before);
            if content.stamp.is_same(&now) {
                continue;
            }
            if now.is_folder() {
                return Ok(WorkScan::AskGit);
            }
            let looks_alike = Stamp { is_settled: content.stamp.is_settled, ..now } == content.stamp;
            let after = Content::read(&on_disk, now, content.by_stamp && looks_alike);
            rules_changed |= is_rules(path) && after.object != content.object;
            *content = after;
        }
        gone.iter().for_each(|path| drop(self.files.remove(path)));
        if rules_changed {
            return Ok(WorkScan::AskGit);
        }
        self.look_into_folders(before)
    }

    fn look_into_folders(&mut self, before: Duration) -> Result<WorkScan, GitError> {
        let (mut changed, mut gone) = (Vec::new(), Vec::new());
        for (path, folder) in &mut self.folders {
            match fs::symlink_metadata(join(&self.root, path)) {
                Ok(meta) if meta.is_dir() => {
                    let now = Stamp::of(&meta, before);
                    if !folder.stamp.is_same(&now) {
                        changed.push((path.clone(), folder.is_plain));
                    }
                    folder.stamp = now;
                }
                Ok(_) | Err(_) => gone.push(path.clone()),
            }
        }
        gone.iter().for_each(|path| drop(self.folders.remove(path)));
        for (folder, is_plain) in changed {
            let news: Vec<_> = names(&self.root, &folder)
                .into_iter()
                .map(|name| below(&folder, &name))
                .filter(|path| !self.has(&folder, path))
                .collect();
            if news.is_empty() {
                continue;
            }
            if !is_plain {
                return Ok(WorkScan::AskGit);
            }
            for path in news {
                self.add_plain(path, before)?;
            }
        }
        Ok(WorkScan::Complete)
    }

    /// Whether the path in this folder is known, as a file, folder or ignored.
    fn has(&self, folder: &[u8], path: &[u8]) -> bool {
        let is_ignored = || self.folders.get(folder).is_some_and(|it| it.ignored.contains(last(path)));
        is_refrains(path) || self.files.contains_key(path) || self.folders.contains_key(path) || is_ignored()
    }

    /// Adds a path with everything below it, without ignore rules.
    fn add_plain(&mut self, path: Vec<u8>, before: Duration) -> Result<(), GitError> {
        let mut paths = vec![path];
        while let Some(path) = paths.pop() {
            if is_refrains(&path) || last(&path) == b".git" {
                continue;
            }
            let on_disk = join(&self.root, &path);
            let Ok(meta) = fs::symlink_metadata(&on_disk) else { continue };
            let stamp = Stamp::of(&meta, before);
            if !stamp.is_folder() {
                self.files.insert(path, Content::read(&on_disk, stamp, true));
            } else {
                paths.extend(names(&self.root, &path).into_iter().map(|name| below(&path, &name)));
                let ignored = BTreeSet::from([b".git".to_vec()]);
                self.folders.insert(path, Folder { stamp, is_plain: true, ignored });
            }
            self.check_bound()?;
        }
        Ok(())
    }

    fn check_bound(&self) -> Result<(), GitError> {
        check_time(self.until)?;
        match self.files.len() + self.folders.len() > MOST {
            true => Err(GitError::TooManyFiles { most: MOST }),
            false => Ok(()),
        }
    }

    /// Gets from git the list of files, and the objects of unchanged ones.
    fn ask_git(&mut self, repository: &Repository, before: Duration) -> Result<(), GitError> {
        let git = repository.git();
        let exclude = repository.common_dir().join("info/exclude");
        let looked = seen(&exclude);
        let printed = git.output(LISTED, &[])?;
        let known = std::mem::take(&mut self.files);
        self.folders.clear();
        self.rules = Some((exclude, looked));
        let listed = listed(&printed).ok_or_else(|| GitError::Answer {
            command: "ls-files",
            answer: String::from_utf8_lossy(&printed[..printed.len().min(200)]).into_owned(),
        })?;
        for (path, in_index) in listed {
            if is_refrains(path) {
                continue;
            }
            let on_disk = join(&self.root, path);
            // A missing file is no part of the work; it may never have existed (a sparse checkout).
            let Ok(meta) = fs::symlink_metadata(&on_disk) else { continue };
            let stamp = Stamp::of(&meta, before);
            if stamp.is_folder() {
                // A nested repository, or a submodule.
                self.add_plain(path.strip_suffix(b"/").unwrap_or(path).to_vec(), before)?;
                continue;
            }
            let content = match (in_index, known.get(path)) {
                (Some(object), _) => {
                    Content { kind: stamp.kind(), stamp, object: object.parse().ok(), by_stamp: false }
                }
                (None, Some(content)) if content.stamp.is_same(&stamp) => {
                    Content { stamp, object: content.object.clone(), ..*content }
                }
                (None, content) => Content::read(&on_disk, stamp, content.is_none()),
            };
            self.files.insert(path.to_vec(), content);
            self.check_bound()?;
        }
        self.watch_folders(git, before)
    }

    /// Watches every folder in which a relevant file may appear: all that git does not ignore as a whole.
    fn watch_folders(&mut self, git: Git<'_>, before: Duration) -> Result<(), GitError> {
        let mut folders: BTreeSet<Vec<u8>> = BTreeSet::from([Vec::new()]);
        for path in self.files.keys() {
            let mut path = parent(path);
            while !path.is_empty() && !self.folders.contains_key(path) && folders.insert(path.to_vec()) {
                path = parent(path);
            }
        }
        while !folders.is_empty() {
            let mut unknown = BTreeSet::new();
            for path in &folders {
                let on_disk = join(&self.root, path);
                let Ok(meta) = fs::symlink_metadata(&on_disk) else { continue };
                let (stamp, mut ignored) = (Stamp::of(&meta, before), BTreeSet::new());
                for entry in fs::read_dir(&on_disk).into_iter().flatten().flatten() {
                    let name = entry.file_name().as_bytes().to_vec();
                    let inner = below(path, &name);
                    let is_known = self.files.contains_key(&inner)
                        || self.folders.contains_key(&inner)
                        || folders.contains(&inner)
                        || is_refrains(&inner);
                    if is_known {
                        continue;
                    }
                    let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
                    if is_folder && name != b".git" {
                        unknown.insert(inner);
                    } else {
                        ignored.insert(name);
                    }
                }
                self.folders.insert(path.clone(), Folder { stamp, is_plain: false, ignored });
                self.check_bound()?;
            }
            let ignored = ignored(git, &unknown)?;
            for path in &ignored {
                if let Some(folder) = self.folders.get_mut(parent(path)) {
                    folder.ignored.insert(last(path).to_vec());
                }
            }
            folders = unknown.into_iter().filter(|path| !ignored.contains(path)).collect();
        }
        Ok(())
    }
}

impl Content {
    /// Reads a file, or the target of a link; a large one only if `by_stamp` is not set.
    fn read(on_disk: &std::path::Path, stamp: Stamp, by_stamp: bool) -> Self {
        let (kind, by_stamp) = (stamp.kind(), by_stamp && stamp.size > LARGE);
        let object = || {
            if kind == b'l' {
                return blob(fs::read_link(on_disk).ok()?.as_os_str().as_bytes());
            }
            if stamp.mode & 0o170_000 != 0o100_000 {
                return None;
            }
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let file = rustix::fs::open(on_disk, flags, Mode::empty()).ok()?;
            blob_of(fs::File::from(file), stamp.size).ok()?
        };
        let object = if by_stamp { None } else { object() };
        Self { stamp, kind, object, by_stamp }
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

/// The folders among these that git ignores as a whole.
fn ignored(git: Git<'_>, folders: &BTreeSet<Vec<u8>>) -> Result<BTreeSet<Vec<u8>>, GitError> {
    if folders.is_empty() {
        return Ok(BTreeSet::new());
    }
    let mut input = Vec::new();
    for folder in folders {
        input.extend_from_slice(folder);
        input.extend_from_slice(b"/\0");
    }
    // It exits with 1 if there is none.
    let told = Git::run(git, ["check-ignore", "-z", "--stdin"], &input)?.stdout;
    let paths = told.split(|byte| *byte == 0).filter(|path| !path.is_empty());
    Ok(paths.map(|path| path.strip_suffix(b"/").unwrap_or(path).to_vec()).collect())
}

/// A file changed before this time gets another stamp if it changes again.
fn settled_before() -> Duration {
    #[expect(clippy::disallowed_methods, reason = "compared with the times of files")]
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.saturating_sub(TICK)
}

fn is_rules(path: &[u8]) -> bool {
    last(path) == b".gitignore"
}

fn names(root: &Utf8Path, folder: &[u8]) -> Vec<Vec<u8>> {
    let entries = fs::read_dir(join(root, folder)).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().as_bytes().to_vec()).collect()
}

fn join(root: &Utf8Path, path: &[u8]) -> PathBuf {
    root.as_std_path().join(OsStr::from_bytes(path))
}

fn below(folder: &[u8], name: &[u8]) -> Vec<u8> {
    if folder.is_empty() { name.to_vec() } else { [folder, b"/", name].concat() }
}

fn parent(path: &[u8]) -> &[u8] {
    path.iter().rposition(|byte| *byte == b'/').map_or(b"", |at| &path[..at])
}

fn last(path: &[u8]) -> &[u8] {
    path.iter().rposition(|byte| *byte == b'/').map_or(path, |at| &path[at + 1..])
}

fn check_time(until: Option<Instant>) -> Result<(), GitError> {
    match until.is_some_and(|until| Instant::now() >= until) {
        true => Err(GitError::Cancelled),
        false => Ok(()),
    }
}
