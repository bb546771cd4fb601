//! Whether objects match their names, and trees can be checked out: an agent can write into the object store. Git does not
//! check either when it reads them; peeling a name makes it check that name.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use camino::Utf8Path;
use refrain_core::git::{Oid, RepoPath};

use crate::Cancel;
use crate::candidate::checkout_path::check_path;
use crate::candidate::stage;
use crate::error::{GitError, OnPath};
use crate::plumbing::disk::{LARGEST, ScratchFolder};
use crate::plumbing::git::Git;
use crate::plumbing::object::{blob, blob_of, name_of};
use crate::plumbing::verified_objects::VerifiedObjects;
use crate::repository::Repository;

#[derive(Clone, Copy)]
pub(crate) struct Checkout<'a> {
    pub(crate) repository: &'a Repository,
    pub(crate) tree: &'a Oid,
    pub(crate) folder: &'a Utf8Path,
    /// Whether the file at a path was compared before, and not written since.
    pub(crate) is_known: &'a dyn Fn(&[u8]) -> bool,
}

/// An entry of an index or a tree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry<'a> {
    /// A sparse checkout omits it.
    is_skipped: bool,
    pub(crate) mode: &'a [u8],
    pub(crate) object: &'a str,
    pub(crate) path: &'a [u8],
}

impl Entry<'_> {
    /// Its path, or its object if it is no part of another.
    pub(crate) fn name(&self) -> String {
        match self.path {
            b"" => self.object.to_owned(),
            path => RepoPath::from_bytes(path).to_string(),
        }
    }

    /// The line of [`stage::info`] for it.
    pub(crate) fn line(&self) -> Vec<u8> {
        [self.mode, b" ", self.object.as_bytes(), b"\t", self.path, b"\0"].concat()
    }
}

impl Repository {
    /// Checks whether the tree of a commit, or a tree, and all in it match their names, and can be checked out. A missing object
    /// is no error.
    /// Errors: [`GitError::ForgedObject`], [`GitError::BadPath`] or [`GitError::BadTree`] if not; [`GitError`] if git cannot be
    /// run, or is cancelled.
    pub fn verify_tree(&self, treeish: &Oid, cancel: Option<&Cancel>) -> Result<(), GitError> {
        let git = self.git().until(cancel);
        let printed = self.list_files(git, treeish)?;
        let listed = entries(&printed, "ls-tree")?;
        listed.iter().try_for_each(|entry| check_path(entry.path))?;
        let objects = listed.into_iter().filter_map(|entry| match entry.mode {
            b"160000" => None,
            b"040000" => Some(("tree", entry)),
            _ => Some(("blob", entry)),
        });
        verify_objects(git, &objects.collect::<Vec<_>>())
    }

    /// What `git ls-tree -r -t -z` prints of a tree, or the tree of a commit, as its name says.
    fn list_files(&self, git: Git<'_>, treeish: &Oid) -> Result<Vec<u8>, GitError> {
        let ask = |git: Git<'_>| git.output(list(treeish), &[]).map_err(|error| error.of_tree(treeish));
        // Git does not list a forged tree, and does not say so.
        let top = ("tree", Entry { is_skipped: false, mode: b"", object: treeish.as_str(), path: b"" });
        let printed = ask(git).or_else(|error| verify_objects(git, &[top]).and(Err(error)))?;
        if tree_of(&entries(&printed, "ls-tree")?, 0).as_ref() == Some(treeish) {
            return Ok(printed);
        }
        // It is a commit, has modes of old gits, which an index cannot have, or SHA-256 names.
        ask(VerifiedObjects::of(self, git, &[treeish])?.apply(git))
    }

    /// Checks that these entries of an index, which are no conflict, are those of a tree.
    fn verify_entries(&self, git: Git<'_>, files: &[Entry<'_>], tree: &Oid) -> Result<(), GitError> {
        if tree_of(files, 0).as_ref() == Some(tree) {
            return Ok(());
        }
        let printed = self.list_files(git, tree)?;
        let mut listed = entries(&printed, "ls-tree")?;
        listed.retain(|entry| entry.mode != b"040000");
        let same = |(one, other): (&Entry<'_>, &Entry<'_>)| {
            one.path == other.path && one.object == other.object && one.mode == other.mode
        };
        match listed.len() == files.len() && listed.iter().zip(files).all(same) {
            true => Ok(()),
            false => Err(GitError::ForgedObject(format!("tree {tree}"))),
        }
    }

    /// Checks that the index of `git` has the files of a tree. What git calls the tree of an index, it may have read under a
    /// name that is not that of these files.
    pub(crate) fn verify_index(&self, git: Git<'_>, tree: &Oid) -> Result<(), GitError> {
        let printed = git.output(LISTED, &[])?;
        self.verify_entries(git, &entries(&printed, "ls-files")?, tree)
    }
}

/// Lists the entries of an index: `tag mode object stage TAB path`.
pub(crate) const LISTED: &[&str] = &["ls-files", "-t", "--stage", "-z"];

/// Compares the files that git wrote with the tree: which files there are, and the content of those written just now.
/// `git` has the index that git wrote with them.
pub(crate) fn verify_checkout(git: Git<'_>, checkout: Checkout<'_>) -> Result<(), GitError> {
    let Checkout { repository, tree, folder, is_known } = checkout;
    let printed = git.output(LISTED, &[])?;
    let files = entries(&printed, "ls-files")?;
    repository.verify_entries(git, &files, tree)?;
    let mut converted = Vec::new();
    for entry in files.into_iter().filter(|entry| entry.mode != b"160000" && !entry.is_skipped) {
        let path = folder.as_std_path().join(OsStr::from_bytes(entry.path));
        if is_known(entry.path) {
            continue;
        }
        let content = file_name(&path).on("read", folder)?;
        // A filter or a line-ending rule gave the file other content than its object.
        if content.is_none_or(|content| content.as_str() != entry.object) {
            converted.push(entry);
        }
    }
    let Some(other) = other_than_stored(git, &checkout, &converted)? else { return Ok(()) };
    Err(GitError::ForgedObject(RepoPath::from_bytes(other).to_string()))
}

/// The first of these entries whose file is not what git makes of its object.
fn other_than_stored<'a>(
    git: Git<'_>,
    checkout: &Checkout<'_>,
    entries: &[Entry<'a>],
) -> Result<Option<&'a [u8]>, GitError> {
    if entries.is_empty() {
        return Ok(None);
    }
    let scratch = ScratchFolder::new()?;
    let lines: Vec<_> = entries.iter().flat_map(Entry::line).collect();
    // Most are stored as their object says. A conversion that cannot be undone leaves few others.
    let differing = differing(git, &scratch.path().join("index"), &lines)?;
    let others: Vec<_> = entries.iter().filter(|entry| differing.contains(entry.path)).collect();
    if others.is_empty() {
        return Ok(None);
    }
    let names = others.iter().map(|entry| (entry.object.to_owned(), entry.name())).collect();
    let objects = VerifiedObjects::named(checkout.repository, git, &names)?;
    for entry in others {
        let path = checkout.folder.as_std_path().join(OsStr::from_bytes(entry.path));
        let there = refrain_files::read_regular(&path, LARGEST).on("read", checkout.folder)?;
        if there != checked_out(objects.apply(git), entry)? {
            return Ok(Some(entry.path));
        }
    }
    Ok(None)
}

/// The content that a checkout writes for an entry.
pub(crate) fn checked_out(git: Git<'_>, entry: &Entry<'_>) -> Result<Vec<u8>, GitError> {
    let mut path = OsString::from("--path=");
    path.push(OsStr::from_bytes(entry.path));
    let asked = ["cat-file".into(), "--filters".into(), path, entry.object.into()];
    git.printing_up_to(LARGEST).output(asked, &[])
}

/// The paths of these lines of [`stage::info`] whose files differ from their objects, as git would store them. `index` is a
/// path for a private index. No object is read.
pub(crate) fn differing(git: Git<'_>, index: &Utf8Path, lines: &[u8]) -> Result<BTreeSet<Vec<u8>>, GitError> {
    let git = git.with_index(index);
    stage::put(git, lines)?;
    // Its exit code says whether some differ.
    git.run(["update-index", "-q", "--refresh"], &[])?;
    let printed = git.output(["diff-files", "-z", "--name-only", "--ignore-submodules=all"], &[])?;
    Ok(printed.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(<[u8]>::to_vec).collect())
}

/// The object name of a file's content.
fn file_name(path: &Path) -> std::io::Result<Option<Oid>> {
    let meta = fs::symlink_metadata(path)?;
    match meta.is_symlink() {
        true => Ok(blob(fs::read_link(path)?.as_os_str().as_bytes())),
        false => blob_of(File::open(path)?, meta.len()),
    }
}

pub(crate) fn list(treeish: &Oid) -> [&str; 7] {
    ["--no-replace-objects", "ls-tree", "-r", "-t", "-z", "--full-tree", treeish.as_str()]
}

/// Why git failed on a worktree: the tree of its head, if that is to blame, else `error`.
pub(crate) fn cause(repository: &Repository, git: Git<'_>, error: GitError) -> GitError {
    let head = git.text(["rev-parse", "--verify", "HEAD"], &[]).ok().and_then(|head| head.parse().ok());
    match head.map(|head| repository.verify_tree(&head, None)) {
        Some(Err(found)) if found.is_of_objects() => found,
        Some(_) | None => error,
    }
}

fn verify_objects(git: Git<'_>, objects: &[(&str, Entry<'_>)]) -> Result<(), GitError> {
    // A clone without all objects would get each from its remote.
    let git = git.without_fetching();
    let ask =
        |names: &str| git.output(["cat-file", "--buffer", "--batch-check=%(objecttype)"], names.as_bytes());
    let names: String =
        objects.iter().map(|(kind, entry)| format!("{}^{{{kind}}}\n", entry.object)).collect();
    let printed = ask(&names)?;
    let answers = printed.split(|byte| *byte == b'\n');
    let wrong = objects.iter().zip(answers).filter(|((kind, _), answer)| *answer != kind.as_bytes());
    let wrong: Vec<_> = wrong.map(|((_, entry), _)| entry).collect();
    if wrong.is_empty() {
        return Ok(());
    }
    let names: String = wrong.iter().map(|entry| format!("{}\n", entry.object)).collect();
    let printed = ask(&names)?;
    let is_there = |answer: &[u8]| !answer.ends_with(b" missing");
    let forged = wrong.iter().zip(printed.split(|byte| *byte == b'\n')).find(|(_, answer)| is_there(answer));
    forged.map_or(Ok(()), |(entry, _)| Err(GitError::ForgedObject(entry.name())))
}

/// Reads the output of `git ls-files -t --stage -z` or `git ls-tree -z`.
pub(crate) fn entries<'a>(printed: &'a [u8], command: &'static str) -> Result<Vec<Entry<'a>>, GitError> {
    let records = printed.split(|byte| *byte == 0).filter(|record| !record.is_empty());
    let entry = |record: &'a [u8]| {
        // `mode kind object`, or `tag mode object stage`.
        let tab = memchr::memchr(b'\t', record)?;
        let mut words = record[..tab].split(|byte| *byte == b' ');
        let (first, second, object) = (words.next()?, words.next()?, words.next()?);
        let mode = if command == "ls-tree" { first } else { second };
        let object = str::from_utf8(object).ok()?;
        Some(Entry { is_skipped: first == b"S", mode, object, path: &record[tab + 1..] })
    };
    records
        .map(|record| {
            let answer = || String::from_utf8_lossy(record).into_owned();
            entry(record).ok_or_else(|| GitError::Answer { command, answer: answer() })
        })
        .collect()
}

/// The SHA-1 name of the tree with these files; `skip` bytes of each path belong to the tree itself. Folders in the list do
/// not count.
fn tree_of(entries: &[Entry<'_>], skip: usize) -> Option<Oid> {
    let (mut content, mut rest) = (Vec::new(), entries);
    while let Some((first, more)) = rest.split_first() {
        if first.mode == b"040000" {
            rest = more;
            continue;
        }
        let path = first.path.get(skip..)?;
        let (mode, name, object, count) = match memchr::memchr(b'/', path) {
            None => (first.mode, path, first.object.to_owned(), 1),
            Some(end) => {
                let folder = &first.path[..=skip + end];
                let count = rest.iter().take_while(|entry| entry.path.starts_with(folder)).count();
                let tree = tree_of(&rest[..count], folder.len())?;
                (&b"40000"[..], &path[..end], tree.to_string(), count)
            }
        };
        content.extend_from_slice(&[mode, b" ", name, b"\0"].concat());
        for at in (0..object.len()).step_by(2) {
            content.push(u8::from_str_radix(object.get(at..at + 2)?, 16).ok()?);
        }
        rest = &rest[count..];
    }
    name_of(&[format!("tree {}\0", content.len()).as_bytes(), &content])
}
