//! What is kept in mind of one worktree and need not be asked again: what was staged in its private index last, and where
//! its head was.

use camino::Utf8PathBuf;
use refrain_core::git::Oid;

use crate::candidate::Candidate;
use crate::candidate::status::Status;
use crate::plumbing::disk::Seen;

/// What need not be asked again.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// What stands in the private index.
    pub(crate) staged: Option<Staged>,
    /// The head at the last survey, where nothing was changed then.
    pub(crate) clean: Option<Oid>,
    /// Nothing was run since git looked last.
    pub(crate) is_still: bool,
}

/// A candidate in a private index.
#[derive(Debug)]
pub(crate) struct Staged {
    pub(crate) status: Status,
    /// Nothing in it is omitted or needs to be reported.
    pub(crate) candidate: Candidate,
    pub(crate) tree: Oid,
    /// How the person's index looked, which the private one was copied from.
    pub(crate) person: Seen,
    pub(crate) looks: Looks,
    /// The private index, and how it was left.
    pub(crate) private: (Utf8PathBuf, Seen),
    /// The largest file that it may have.
    pub(crate) largest: u64,
}

/// How the files looked that git shows, before any of them was read; none of one that is gone.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Looks(pub(crate) Vec<Seen>);
