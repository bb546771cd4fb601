//! Which of the changed paths are the loop's own and may be committed, and which are omitted and why (design.md,
//! section 5).

use std::collections::BTreeSet;
use std::fs::{self, File, Metadata};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;

use refrain_core::git::{LeftOutReason, OmittedPath};
use refrain_core::protect::is_compiled_python;
use rustix::fs::{Mode, OFlags};

use crate::candidate::initial_changes::Before;
use crate::candidate::status::{Entry, Kind, Status, TrackedFile};
use crate::candidate::{Candidate, ChosenFile, Rules, screen, why, why_not_named};
use crate::error::GitError;
use crate::plumbing::commit_config::configured;
use crate::plumbing::git::Git;
use crate::repository::{Repository, is_refrains};
use refrain_secrets::SecretMatch;

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
        // During a conflict the index has several versions of a path, which a tree cannot have.
        let is_staged =
            matches!(&entry.kind, Kind::Tracked(TrackedFile { is_staged: true, .. }) | Kind::Unmerged);
        chosen.has_foreign |= is_staged
            && !matches!(what, FileDecision::Gone | FileDecision::Kept(_) | FileDecision::Allowed(..));
        match what {
            FileDecision::Nothing => {}
            FileDecision::Gone => chosen.gone.push(entry.path.clone()),
            FileDecision::Kept(kept) => chosen.kept.push(kept),
            FileDecision::Allowed(kept, found) => {
                chosen.allowed.push((kept.path.clone(), found));
                chosen.kept.push(kept);
            }
            FileDecision::Out(LeftOutReason::TooLarge { bytes }) => large.push((entry, bytes)),
            FileDecision::Out(why) => chosen.left_out.push(OmittedPath { path: entry.repo_path(), why }),
        }
    }
    sort_large(repository, git, large, &mut chosen)?;
    chosen.left_out.extend(before.lost(repository, status));
    Ok(chosen)
}

/// Whether the path is part of the work. What Refrain and Python write for themselves is not: no commit has it, and nothing is
/// lost with it.
pub(crate) fn is_work(entry: &Entry) -> bool {
    !(is_refrains(&entry.path) || entry.kind == Kind::New && is_compiled_python(&entry.path))
}

enum FileDecision {
    /// Not the loop's, or no longer there.
    Nothing,
    Gone,
    Kept(ChosenFile),
    Allowed(ChosenFile, SecretMatch),
    Out(LeftOutReason),
}

fn look(
    repository: &Repository,
    git: Git<'_>,
    entry: &Entry,
    before: &Before,
    rules: Rules<'_>,
) -> Result<FileDecision, GitError> {
    let path = entry.path.as_slice();
    if !is_work(entry) {
        return Ok(FileDecision::Nothing);
    }
    if let Some(stamp) = before.stamp(path) {
        let is_changed = stamp != repository.stamp(path);
        return Ok(if is_changed {
            FileDecision::Out(LeftOutReason::DirtyBefore)
        } else {
            FileDecision::Nothing
        });
    }
    if before.is_in_the_way(path) {
        return Ok(FileDecision::Out(LeftOutReason::DirtyBefore));
    }
    let in_head = match &entry.kind {
        Kind::Tracked(TrackedFile { is_gone: true, .. }) => return Ok(FileDecision::Gone),
        // A change inside it: only a commit in it could record that.
        Kind::Tracked(TrackedFile { submodule: Some(false), is_staged: false, .. })
            if is_folder(repository, path) =>
        {
            return Ok(FileDecision::Out(LeftOutReason::Repository));
        }
        // Git also reports a former submodule as one: a file in its place is scanned like any other.
        Kind::Tracked(TrackedFile { submodule: Some(_), in_head, .. }) if is_folder(repository, path) => {
            if let Some(why) = why_not_named(path, rules).filter(|_| in_head.is_none()) {
                return Ok(FileDecision::Out(why));
            }
            let kept = ChosenFile { path: path.to_vec(), stamp: None, in_head: in_head.clone() };
            return Ok(FileDecision::Kept(kept));
        }
        Kind::New if path.ends_with(b"/") => return Ok(FileDecision::Out(LeftOutReason::Repository)),
        Kind::Tracked(TrackedFile { in_head, .. }) => in_head.clone(),
        Kind::New | Kind::Unmerged => None,
    };
    let stamp = repository.stamp(path);
    let bytes = match read(&repository.on_disk(path), rules.largest) {
        Content::None => {
            return Ok(if in_head.is_some() { FileDecision::Gone } else { FileDecision::Nothing });
        }
        // A folder in place of a file: its content has entries of its own.
        Content::Folder => return Ok(FileDecision::Gone),
        Content::Other => return Ok(FileDecision::Out(LeftOutReason::Unreadable)),
        Content::TooLarge(bytes) => {
            let by_name = why_not_named(path, rules).filter(|_| in_head.is_none());
            return Ok(FileDecision::Out(by_name.unwrap_or(LeftOutReason::TooLarge { bytes })));
        }
        Content::Bytes(bytes) => bytes,
    };
    let found = screen(git, path, &bytes, in_head.as_ref(), rules)?;
    let kept = ChosenFile { path: path.to_vec(), stamp, in_head };
    Ok(match found {
        None => FileDecision::Kept(kept),
        Some(found) if rules.allow(path) => FileDecision::Allowed(kept, found),
        Some(found) => FileDecision::Out(why(found)),
    })
}

/// Whether a folder is there now. Of tracked paths, only a submodule is one: this corresponds to git's `160000` for
/// the working tree, but is up to date.
fn is_folder(repository: &Repository, path: &[u8]) -> bool {
    fs::symlink_metadata(repository.on_disk(path)).is_ok_and(|meta| meta.is_dir())
}

/// A file over the size limit is committed all the same if the user has set up a filter for it, as for Git LFS: the
/// stored object is small then.
fn sort_large(
    repository: &Repository,
    git: Git<'_>,
    large: Vec<(&Entry, u64)>,
    chosen: &mut Candidate,
) -> Result<(), GitError> {
    if large.is_empty() {
        return Ok(());
    }
    let filtered = filtered(repository, git, large.iter().map(|(entry, _)| entry.path.as_slice()))?;
    for (entry, bytes) in large {
        if filtered.contains(&entry.path) {
            let stamp = repository.stamp(&entry.path);
            let in_head = match &entry.kind {
                Kind::Tracked(tracked) => tracked.in_head.clone(),
                Kind::New | Kind::Unmerged => None,
            };
            chosen.kept.push(ChosenFile { path: entry.path.clone(), stamp, in_head });
        } else {
            let why = LeftOutReason::TooLarge { bytes };
            chosen.left_out.push(OmittedPath { path: entry.repo_path(), why });
        }
    }
    Ok(())
}

/// Those of the paths that a filter of the user changes.
pub(crate) fn filtered<'p>(
    repository: &Repository,
    git: Git<'_>,
    paths: impl Iterator<Item = &'p [u8]>,
) -> Result<BTreeSet<Vec<u8>>, GitError> {
    let names = configured(repository, git, |it| it.filters(repository.pins()))??;
    let is_known = |name: &[u8]| str::from_utf8(name).is_ok_and(|name| names.contains(name));
    with_attribute(git, "filter", paths, is_known)
}

/// Those of the paths of which an attribute has such a value.
pub(crate) fn with_attribute<'p>(
    git: Git<'_>,
    attribute: &str,
    paths: impl Iterator<Item = &'p [u8]>,
    is_such: impl Fn(&[u8]) -> bool,
) -> Result<BTreeSet<Vec<u8>>, GitError> {
    let mut input = Vec::new();
    for path in paths {
        input.extend_from_slice(path);
        input.push(0);
    }
    let answer = Git::output(git, ["check-attr", "-z", "--stdin", attribute], &input)?;
    let fields: Vec<&[u8]> = answer.split(|byte| *byte == 0).collect();
    let records = fields.chunks(3).filter(|record| record.len() == 3 && is_such(record[2]));
    Ok(records.map(|record| record[0].to_vec()).collect())
}

enum Content {
    None,
    Folder,
    Other,
    TooLarge(u64),
    Bytes(Vec<u8>),
}

/// The content of a path; of a link, its target. A FIFO or a device never blocks, and is never read.
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
