//! The content to commit, the user's rules for it, and the scan for secrets.

pub(crate) mod checkout_path;
pub(crate) mod exactness;
pub(crate) mod files;
pub(crate) mod folder_snapshot;
pub(crate) mod initial_changes;
pub(crate) mod integrity;
pub(crate) mod links;
pub(crate) mod memory;
pub(crate) mod protect;
pub(crate) mod stage;
pub(crate) mod status;
pub(crate) mod submodules;
pub(crate) mod tree;
pub(crate) mod walk;
pub(crate) mod work;

use refrain_core::git::{GitSpec, LeftOutReason, Oid, OmittedPath};
use refrain_core::glob::PathGlob;

use crate::candidate::status::Blob;
use crate::error::GitError;
use crate::plumbing::git::Git;
use refrain_proc::tool::Cancel;
use refrain_secrets::{self as secrets, SecretMatch};

pub(crate) const SUBMODULE: &str = "160000";

#[derive(Debug, Default)]
pub(crate) struct Candidate {
    pub(crate) gone: Vec<Vec<u8>>,
    /// Paths with new or changed content, with their file stamps at the time of the scan.
    pub(crate) kept: Vec<ChosenFile>,
    /// Suspected secrets among them that may be committed.
    pub(crate) allowed: Vec<(Vec<u8>, SecretMatch)>,
    /// Changes of the loop that are not committed.
    pub(crate) left_out: Vec<OmittedPath>,
    /// Whether the index contains anything that is not to be committed.
    pub(crate) has_foreign: bool,
}

#[derive(Debug)]
pub(crate) struct ChosenFile {
    pub(crate) path: Vec<u8>,
    pub(crate) stamp: Option<u64>,
    pub(crate) in_head: Option<Blob>,
}

/// What limits an operation: its files and its time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bounds<'a> {
    /// The largest file that is staged or scanned, in bytes.
    pub largest_file: u64,
    pub allow_secrets: &'a [PathGlob],
    pub cancel: Option<&'a Cancel>,
}

impl<'a> Bounds<'a> {
    pub fn of(git: &'a GitSpec, cancel: Option<&'a Cancel>) -> Self {
        Self { largest_file: git.largest_file, allow_secrets: &git.allow_secrets, cancel }
    }

    pub(crate) fn rules(self, base: Option<&'a Oid>) -> Rules<'a> {
        Rules { largest: self.largest_file, allow_secrets: self.allow_secrets, base }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules<'a> {
    /// The largest file, in bytes.
    pub(crate) largest: u64,
    pub(crate) allow_secrets: &'a [PathGlob],
    /// The commit that the loop began at: an allow mark on a line that it contains is the user's.
    pub(crate) base: Option<&'a Oid>,
}

impl Rules<'_> {
    /// Whether suspected secrets are allowed at the path.
    pub(crate) fn allow(self, path: &[u8]) -> bool {
        self.allow_secrets.iter().any(|glob| glob.matches(path))
    }
}

/// Whether this is a secret that the head's version of the file does not have already, and that no mark in the base
/// allows.
pub(crate) fn screen(
    git: Git<'_>,
    path: &[u8],
    bytes: &[u8],
    in_head: Option<&Blob>,
    rules: Rules<'_>,
) -> Result<Option<SecretMatch>, GitError> {
    let mut found = secrets::screen(path, bytes, None);
    let mut known = None;
    if found.is_some()
        // A submodule's commit is no file, and git may not even have it.
        && let Some(blob) = in_head.filter(|blob| blob.mode != SUBMODULE)
    {
        let in_head = git.output(["cat-file", "blob", blob.object.as_str()], &[])?;
        found = secrets::screen(path, bytes, Some(&in_head));
        known = Some(in_head);
    }
    if let Some(SecretMatch { is_marked: true, .. }) = found
        && let Some(base) = rules.base
    {
        let marked = secrets::marked_lines(&file_in(git, base, path)?);
        if !marked.is_empty() {
            let known = [known.unwrap_or_default(), b"\n".to_vec(), marked].concat();
            found = secrets::screen(path, bytes, Some(&known));
        }
    }
    Ok(found)
}

/// The content of a path in a commit; empty if it has no file there.
fn file_in(git: Git<'_>, commit: &Oid, path: &[u8]) -> Result<Vec<u8>, GitError> {
    let input = [commit.as_str().as_bytes(), b":", path, b"\0"].concat();
    let printed = Git::output(git, ["cat-file", "--batch", "-z"], &input)?;
    Ok(next_object(&mut printed.as_slice()).unwrap_or_default().to_vec())
}

/// The next object that `git cat-file --batch` printed: `<name> <type> <size>`, the bytes, and a line break.
pub(crate) fn next_object<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let end = memchr::memchr(b'\n', rest)?;
    let size = str::from_utf8(&rest[..end]).ok()?.rsplit(' ').next()?.parse().ok()?;
    let content = rest.get(end + 1..)?.get(..size)?;
    *rest = rest.get(end + 1 + size + 1..)?;
    Some(content)
}

pub(crate) fn what(found: SecretMatch) -> String {
    match found.is_marked {
        true => format!("{}; its allow mark is newer than the loop, so it does not count", found.what),
        false => found.what.to_owned(),
    }
}

pub(crate) fn why(found: SecretMatch) -> LeftOutReason {
    LeftOutReason::Secret { what: what(found), line: found.line }
}

/// The reason why a new path is omitted for its name alone.
pub(crate) fn why_not_named(path: &[u8], rules: Rules<'_>) -> Option<LeftOutReason> {
    let what = secrets::screen_name(path).filter(|_| !rules.allow(path))?;
    Some(why(SecretMatch { what, line: None, is_marked: false }))
}
