//! What is to be committed, what the person said of what may be, and the screen for secrets that it goes through.

use refrain_core::git::{LeftOut, Why};
use refrain_core::glob::PathGlob;

use crate::error::GitError;
use crate::git::Git;
use crate::secrets::{self, Found};
use crate::status::Blob;

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
