//! Which of the changed paths are the loop's own and may be committed, and which are left out and why (design.md,
//! section 5).

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, Metadata};
use std::io::Read;
use std::ops::Bound;
use std::os::unix::ffi::OsStrExt;

use refrain_core::git::{Base, LeftOut, PathGlob, RepoPath, Why};
use rustix::fs::{Mode, OFlags};

use crate::error::GitError;
use crate::git::Git;
use crate::object::blob;
use crate::repository::{Repository, is_refrains};
use crate::secrets::{self, Found};
use crate::status::{Blob, Entry, Kind, Status, Tracked};

/// The mode of a submodule.
pub(crate) const SUBMODULE: &str = "160000";

/// What is to be committed.
#[derive(Debug, Default)]
pub(crate) struct Candidate {
    /// Paths that are gone.
    pub(crate) gone: Vec<Vec<u8>>,
    /// Paths whose content is new or another, and how they looked when they were screened.
    pub(crate) kept: Vec<Kept>,
    /// What looks like a secret among them, and may be committed all the same.
    pub(crate) allowed: Vec<(Vec<u8>, Found)>,
    /// What is the loop's and stays behind.
    pub(crate) left_out: Vec<LeftOut>,
    /// Whether the index has anything that is not to be committed.
    pub(crate) has_foreign: bool,
}

#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) path: Vec<u8>,
    pub(crate) stamp: Option<u64>,
    /// What the head has of it.
    pub(crate) in_head: Option<Blob>,
}

/// What the person said of what may be committed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules<'a> {
    /// The largest file, in bytes.
    pub(crate) largest: u64,
    /// Where secrets may be.
    pub(crate) allow_secrets: &'a [PathGlob],
}

impl Rules<'_> {
    /// Whether what was found at the path may be there.
    pub(crate) fn allow(self, path: &[u8], found: Found) -> bool {
        found.is_marked || self.allow_secrets.iter().any(|glob| glob.matches(path))
    }
}

/// What was dirty before the loop began.
pub(crate) struct Before(BTreeMap<Vec<u8>, Option<u64>>);

impl Before {
    pub(crate) fn of(base: &Base) -> Self {
        // A repository in the repository ends with a slash.
        let bare = |path: Vec<u8>| path.strip_suffix(b"/").map_or_else(|| path.clone(), <[u8]>::to_vec);
        Self(base.dirty.iter().map(|dirty| (bare(dirty.path.to_bytes()), dirty.stamp)).collect())
    }

    /// How the path looked; none where it was clean.
    pub(crate) fn stamp(&self, path: &[u8]) -> Option<Option<u64>> {
        self.0.get(path.strip_suffix(b"/").unwrap_or(path)).copied()
    }

    /// Whether nothing was.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the path is the person's, or lies in a repository of theirs.
    pub(crate) fn has(&self, path: &[u8]) -> bool {
        self.stamp(path).is_some() || self.is_in_the_way(path)
    }

    /// What the agent put back or took away of the person's: git does not show it any more.
    fn lost(&self, repository: &Repository, status: &Status) -> Vec<LeftOut> {
        let shown: BTreeSet<_> =
            status.entries.iter().map(|entry| entry.path.strip_suffix(b"/").unwrap_or(&entry.path)).collect();
        let is_lost = |(path, stamp): &(&Vec<u8>, &Option<u64>)| {
            !shown.contains(path.as_slice()) && repository.stamp(path) != **stamp
        };
        let lost = self.0.iter().filter(is_lost);
        lost.map(|(path, _)| LeftOut { path: RepoPath::from_bytes(path), why: Why::DirtyBefore }).collect()
    }

    /// Whether the path stands where a folder of the person's was, or the other way round: one cannot be committed
    /// without losing the other.
    fn is_in_the_way(&self, path: &[u8]) -> bool {
        let above = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        let folder = [path, b"/"].concat();
        let below = self.0.range::<[u8], _>((Bound::Included(folder.as_slice()), Bound::Unbounded)).next();
        above.map(|(end, _)| &path[..end]).any(|folder| self.0.contains_key(folder))
            || below.is_some_and(|(dirty, _)| dirty.starts_with(&folder))
    }
}

/// Sorts out what git sees.
pub(crate) fn choose(
    repository: &Repository,
    git: Git<'_>,
    status: &Status,
    before: &Before,
    rules: Rules<'_>,
) -> Result<Candidate, GitError> {
    let mut chosen = Candidate::default();
    let mut large = Vec::new();
    for entry in &status.entries {
        let what = look(repository, git, entry, before, rules)?;
        // Of what waits for a decision, the index has several versions, and no tree can.
        let is_staged =
            matches!(&entry.kind, Kind::Tracked(Tracked { is_staged: true, .. }) | Kind::Unmerged);
        chosen.has_foreign |= is_staged && !matches!(what, What::Gone | What::Kept(_) | What::Allowed(..));
        match what {
            What::Nothing => {}
            What::Gone => chosen.gone.push(entry.path.clone()),
            What::Kept(kept) => chosen.kept.push(kept),
            What::Allowed(kept, found) => {
                chosen.allowed.push((kept.path.clone(), found));
                chosen.kept.push(kept);
            }
            What::Out(Why::TooLarge { bytes }) => large.push((entry, bytes)),
            What::Out(why) => chosen.left_out.push(LeftOut { path: entry.repo_path(), why }),
        }
    }
    sort_large(repository, git, large, &mut chosen)?;
    chosen.left_out.extend(before.lost(repository, status));
    Ok(chosen)
}

enum What {
    /// Not the loop's, or not there any more.
    Nothing,
    Gone,
    Kept(Kept),
    /// It looks like a secret, and may be committed.
    Allowed(Kept, Found),
    Out(Why),
}

fn look(
    repository: &Repository,
    git: Git<'_>,
    entry: &Entry,
    before: &Before,
    rules: Rules<'_>,
) -> Result<What, GitError> {
    let path = entry.path.as_slice();
    if is_refrains(path) {
        return Ok(What::Nothing);
    }
    if let Some(stamp) = before.stamp(path) {
        let is_changed = stamp != repository.stamp(path);
        return Ok(if is_changed { What::Out(Why::DirtyBefore) } else { What::Nothing });
    }
    if before.is_in_the_way(path) {
        return Ok(What::Out(Why::DirtyBefore));
    }
    let in_head = match &entry.kind {
        Kind::Tracked(Tracked { is_gone: true, .. }) => return Ok(What::Gone),
        // Something inside of it: only its own commits can say what.
        Kind::Tracked(Tracked { submodule: Some(false), is_staged: false, .. })
            if is_folder(repository, path) =>
        {
            return Ok(What::Out(Why::Repository));
        }
        // Git calls it a submodule also where it only was one: a file in its place is screened as every other.
        Kind::Tracked(Tracked { submodule: Some(_), in_head, .. }) if is_folder(repository, path) => {
            let kept = Kept { path: path.to_vec(), stamp: None, in_head: in_head.clone() };
            return Ok(What::Kept(kept));
        }
        Kind::New if path.ends_with(b"/") => return Ok(What::Out(Why::Repository)),
        Kind::Tracked(Tracked { in_head, .. }) => in_head.clone(),
        Kind::New | Kind::Unmerged => None,
    };
    let stamp = repository.stamp(path);
    let bytes = match read(&repository.on_disk(path), rules.largest) {
        Content::None => return Ok(if in_head.is_some() { What::Gone } else { What::Nothing }),
        // A folder where a file was: what is in it has entries of its own.
        Content::Folder => return Ok(What::Gone),
        Content::Other => return Ok(What::Out(Why::Unreadable)),
        Content::TooLarge(bytes) => return Ok(What::Out(Why::TooLarge { bytes })),
        Content::Bytes(bytes) => bytes,
    };
    let found = screen(git, path, &bytes, in_head.as_ref())?;
    if found.is_none()
        && let Some(content) = blob(&bytes)
    {
        // A filter may make something else of it, which has another name and is looked at where it turns up.
        repository.known().pass(path, content);
    }
    let kept = Kept { path: path.to_vec(), stamp, in_head };
    Ok(match found {
        None => What::Kept(kept),
        Some(found) if rules.allow(path, found) => What::Allowed(kept, found),
        Some(found) => What::Out(why(found)),
    })
}

/// Whether a folder is there now, which of what git tracks only a submodule is: this is where git's own `160000` for the
/// working tree comes from, but not as old.
fn is_folder(repository: &Repository, path: &[u8]) -> bool {
    fs::symlink_metadata(repository.on_disk(path)).is_ok_and(|meta| meta.is_dir())
}

/// Whether this is a secret that the head's version of the file does not have already.
pub(crate) fn screen(
    git: Git<'_>,
    path: &[u8],
    bytes: &[u8],
    in_head: Option<&Blob>,
) -> Result<Option<Found>, GitError> {
    let mut found = secrets::screen(path, bytes, None);
    if found.is_some()
        // The commit of a submodule is no file, and git may not even have it.
        && let Some(blob) = in_head.filter(|blob| blob.mode != SUBMODULE)
    {
        let base = git.output(["cat-file", "blob", blob.object.as_str()], &[])?;
        found = secrets::screen(path, bytes, Some(&base));
    }
    Ok(found)
}

/// Why what was found is left out.
pub(crate) fn why(found: Found) -> Why {
    Why::Secret { what: found.what.to_owned(), line: found.line }
}

/// A file that is larger than what is committed is committed all the same where the person has set up a filter for it,
/// as for Git LFS: what git keeps of it is small then, and that is what the filter is for.
fn sort_large(
    repository: &Repository,
    git: Git<'_>,
    large: Vec<(&Entry, u64)>,
    chosen: &mut Candidate,
) -> Result<(), GitError> {
    if large.is_empty() {
        return Ok(());
    }
    let filtered = filtered(git, large.iter().map(|(entry, _)| entry.path.as_slice()))?;
    for (entry, bytes) in large {
        if filtered.contains(&entry.path) {
            let stamp = repository.stamp(&entry.path);
            let in_head = match &entry.kind {
                Kind::Tracked(tracked) => tracked.in_head.clone(),
                Kind::New | Kind::Unmerged => None,
            };
            chosen.kept.push(Kept { path: entry.path.clone(), stamp, in_head });
        } else {
            let why = Why::TooLarge { bytes };
            chosen.left_out.push(LeftOut { path: entry.repo_path(), why });
        }
    }
    Ok(())
}

/// Those of the paths that a configured filter makes something else of.
fn filtered<'p>(git: Git<'_>, paths: impl Iterator<Item = &'p [u8]>) -> Result<BTreeSet<Vec<u8>>, GitError> {
    let configured =
        git.run(["config", "-z", "--name-only", "--get-regexp", r"^filter\..*\.(clean|process)$"], &[])?;
    let names: BTreeSet<&[u8]> = configured
        .stdout
        .split(|byte| *byte == 0)
        .filter_map(|name| name.strip_prefix(b"filter.")?.rsplitn(2, |byte| *byte == b'.').nth(1))
        .collect();
    let mut input = Vec::new();
    for path in paths {
        input.extend_from_slice(path);
        input.push(0);
    }
    let answer = Git::output(git, ["check-attr", "-z", "--stdin", "filter"], &input)?;
    let fields: Vec<&[u8]> = answer.split(|byte| *byte == 0).collect();
    let is_filtered = |record: &&[&[u8]]| record.len() == 3 && names.contains(record[2]);
    Ok(fields.chunks(3).filter(is_filtered).map(|record| record[0].to_vec()).collect())
}

enum Content {
    None,
    Folder,
    Other,
    TooLarge(u64),
    Bytes(Vec<u8>),
}

/// What a path holds; of a link, where it leads. A FIFO or a device is never opened for long, and never read.
fn read(path: &std::path::Path, largest: u64) -> Content {
    let Ok(meta) = fs::symlink_metadata(path) else { return Content::None };
    if meta.is_dir() {
        return Content::Folder;
    }
    if meta.is_symlink() {
        return fs::read_link(path)
            .map_or(Content::Other, |target| Content::Bytes(target.as_os_str().as_bytes().to_vec()));
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    if !meta.is_file() {
        return Content::Other;
    }
    let Ok(fd) = rustix::fs::open(path, flags, Mode::empty()) else { return Content::Other };
    let mut file = File::from(fd);
    let size = match file.metadata().as_ref().map(Metadata::len) {
        Ok(size) if size > largest => return Content::TooLarge(size),
        Ok(size) => size,
        Err(_) => return Content::Other,
    };
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
    match Read::by_ref(&mut file).take(largest + 1).read_to_end(&mut bytes) {
        Ok(read) if read as u64 > largest => Content::TooLarge(read as u64),
        Ok(_) => Content::Bytes(bytes),
        Err(_) => Content::Other,
    }
}

#[cfg(test)]
mod tests {
    use refrain_core::git::{Dirty, RepoPath};

    use super::*;

    #[test]
    fn a_file_where_a_folder_of_the_persons_was_is_in_the_way_and_the_other_way_round() {
        let dirty = [b"notes".as_slice(), b"docs/a/plan", b"nested/"];
        let dirty = dirty.map(|path| Dirty { path: RepoPath::from_bytes(path), stamp: None });
        let before = Before::of(&Base { dirty: dirty.to_vec(), ..Base::default() });
        for (path, is) in [
            ("notes/one", true),
            ("notes-two", false),
            ("docs/a", true),
            ("docs", true),
            ("docs/b", false),
            ("docs/a/plan/x", true),
            ("nested/file", true),
            ("other", false),
        ] {
            assert_eq!(before.is_in_the_way(path.as_bytes()), is, "{path}");
        }
        assert_eq!(before.stamp(b"nested/"), Some(None));
    }
}
