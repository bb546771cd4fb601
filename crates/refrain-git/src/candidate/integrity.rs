//! Whether objects match their names. Git trusts its object store, and an agent can write there. SHA-256 names are
//! not checked.

use std::collections::HashSet;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use camino::Utf8Path;
use refrain_core::git::{Oid, RepoPath};

use crate::candidate::folder_snapshot::FolderSnapshot;
use crate::candidate::next_object;
use crate::candidate::walk::RULES;
use crate::error::{GitError, OnPath};
use crate::plumbing::git::Git;
use crate::plumbing::object::{blob, blob_of, is_sha1, name_of};
use crate::repository::Repository;

/// How many bytes of objects are read at a time, if there is more than one.
const BATCH: u64 = 32 << 20;

#[derive(Clone, Copy)]
pub(crate) struct Checkout<'a> {
    pub(crate) tree: &'a Oid,
    pub(crate) folder: &'a Utf8Path,
    /// The folder that `kept` lists.
    pub(crate) top: &'a Utf8Path,
    /// Files that were already compared.
    pub(crate) kept: &'a FolderSnapshot,
}

/// An entry of an index or a tree.
#[derive(Clone, Copy)]
struct Entry<'a> {
    mode: &'a [u8],
    object: &'a str,
    path: &'a [u8],
}

impl Entry<'_> {
    fn name(&self) -> String {
        RepoPath::from_bytes(self.path).to_string()
    }
}

/// An object and its approximate size in bytes.
struct SizedObject<'a> {
    entry: Entry<'a>,
    bytes: u64,
}

impl Repository {
    /// Checks whether a tree of [`Self::protected`], and those in it, have the content that their names say, and so
    /// the files of it whose content is read: those in `contents`, and the ignore rules.
    /// Errors: [`GitError::ForgedObject`] if one has not; [`GitError`] if git cannot be run.
    pub fn verify_protected(&self, tree: &Oid, contents: &HashSet<RepoPath>) -> Result<(), GitError> {
        if !is_sha1(tree) {
            return Ok(());
        }
        let git = self.git();
        verify_trees(git, tree)?;
        let printed = git.output(list(&["-r"], tree), &[])?;
        let files = entries(&printed, "ls-tree")?;
        let is_read = |entry: &Entry<'_>| {
            entry.path == RULES.as_bytes() || contents.contains(&RepoPath::from_bytes(entry.path))
        };
        let files = files.into_iter().filter(is_read);
        verify_objects(git, "blob", &files.map(|entry| SizedObject { entry, bytes: 0 }).collect::<Vec<_>>())
    }
}

/// Compares the files that git wrote with the tree: which files there are, and the content of those written just now.
pub(crate) fn verify_checkout(git: Git<'_>, checkout: Checkout<'_>) -> Result<(), GitError> {
    let Checkout { tree, folder, top, kept } = checkout;
    if !is_sha1(tree) {
        return Ok(());
    }
    let printed = git.output(["ls-files", "--stage", "-z"], &[])?;
    let files = entries(&printed, "ls-files")?;
    if tree_of(&files, 0).as_ref() != Some(tree) {
        // Old gits wrote trees with modes that an index cannot have.
        verify_trees(git, tree)?;
        let printed = git.output(list(&["-r"], tree), &[])?;
        let listed = entries(&printed, "ls-tree")?;
        let is_same =
            |(one, other): (&Entry<'_>, &Entry<'_>)| one.path == other.path && one.object == other.object;
        if listed.len() != files.len() || !listed.iter().zip(&files).all(is_same) {
            return Err(GitError::ForgedObject(format!("tree {tree}")));
        }
    }
    let mut converted = Vec::new();
    for entry in files.into_iter().filter(|entry| entry.mode != b"160000") {
        let path = folder.as_std_path().join(std::ffi::OsStr::from_bytes(entry.path));
        if kept.has(top, &path) {
            continue;
        }
        let (content, bytes) = file_name(&path).on("read", folder)?;
        // A filter or a line-ending rule gave the file other content than its object.
        if content.is_none_or(|content| content.as_str() != entry.object) {
            converted.push(SizedObject { entry, bytes });
        }
    }
    verify_objects(git, "blob", &converted)
}

/// The object name of a file's content, and its size in bytes.
fn file_name(path: &Path) -> std::io::Result<(Option<Oid>, u64)> {
    let meta = fs::symlink_metadata(path)?;
    let content = match meta.is_symlink() {
        true => blob(fs::read_link(path)?.as_os_str().as_bytes()),
        false => blob_of(File::open(path)?, meta.len())?,
    };
    Ok((content, meta.len()))
}

fn list<'a>(how: &[&'a str], tree: &'a Oid) -> Vec<&'a str> {
    [&["--no-replace-objects", "ls-tree", "-z", "--full-tree"], how, &[tree.as_str()]].concat()
}

fn verify_trees(git: Git<'_>, tree: &Oid) -> Result<(), GitError> {
    // The tree itself first: a forged one could list other objects.
    let top = Entry { mode: b"", object: tree.as_str(), path: tree.as_str().as_bytes() };
    verify_objects(git, "tree", &[SizedObject { entry: top, bytes: 0 }])?;
    let printed = git.output(list(&["-r", "-d"], tree), &[])?;
    let folders = entries(&printed, "ls-tree")?.into_iter().filter(|entry| entry.mode == b"040000");
    verify_objects(git, "tree", &folders.map(|entry| SizedObject { entry, bytes: 0 }).collect::<Vec<_>>())
}

fn verify_objects(git: Git<'_>, kind: &str, mut objects: &[SizedObject<'_>]) -> Result<(), GitError> {
    while !objects.is_empty() {
        let mut bytes = 0;
        let fits = |object: &&SizedObject<'_>| {
            bytes += object.bytes;
            bytes <= BATCH
        };
        let (batch, rest) = objects.split_at(objects.iter().take_while(fits).count().max(1));
        objects = rest;
        let names: String = batch.iter().map(|object| format!("{}\n", object.entry.object)).collect();
        let asked = ["--no-replace-objects", "cat-file", "--buffer", "--batch"];
        let printed = git.output(asked, names.as_bytes())?;
        let mut rest = printed.as_slice();
        for SizedObject { entry, .. } in batch {
            let content = next_object(&mut rest).unwrap_or_default();
            let name = name_of(&[format!("{kind} {}\0", content.len()).as_bytes(), content]);
            if name.is_none_or(|name| name.as_str() != entry.object) {
                return Err(GitError::ForgedObject(entry.name()));
            }
        }
    }
    Ok(())
}

/// Reads the output of `git ls-files --stage -z` or `git ls-tree -z`.
fn entries<'a>(printed: &'a [u8], command: &'static str) -> Result<Vec<Entry<'a>>, GitError> {
    let records = printed.split(|byte| *byte == 0).filter(|record| !record.is_empty());
    let entry = |record: &'a [u8]| {
        let tab = memchr::memchr(b'\t', record)?;
        let mut words = record[..tab].split(|byte| *byte == b' ');
        let (mode, second, third) = (words.next()?, words.next()?, words.next()?);
        // A tree's entry has its kind before the object, an index's the stage after it.
        let object = if command == "ls-tree" { third } else { second };
        Some(Entry { mode, object: str::from_utf8(object).ok()?, path: &record[tab + 1..] })
    };
    records
        .map(|record| {
            let answer = || String::from_utf8_lossy(record).into_owned();
            entry(record).ok_or_else(|| GitError::Answer { command, answer: answer() })
        })
        .collect()
}

/// The name of the tree with the entries of an index; `skip` bytes of each path belong to the tree itself.
fn tree_of(entries: &[Entry<'_>], skip: usize) -> Option<Oid> {
    let (mut content, mut rest) = (Vec::new(), entries);
    while let Some(first) = rest.first() {
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
