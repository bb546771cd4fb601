//! Cache of one worktree: the last state of its private index, and its head.

use camino::Utf8PathBuf;
use refrain_core::git::Oid;

use crate::candidate::Candidate;
use crate::candidate::status::Status;
use crate::plumbing::disk::FileStamp;

#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// The content of the private index.
    pub(crate) staged: Option<StagedWork>,
    /// The head at the last survey, if nothing was changed then.
    pub(crate) clean: Option<Oid>,
    /// Nothing has run since git's last look.
    pub(crate) is_still: bool,
}

#[derive(Debug)]
pub(crate) struct StagedWork {
    pub(crate) status: Status,
    /// Nothing in it is omitted or needs to be reported.
    pub(crate) candidate: Candidate,
    pub(crate) tree: Oid,
    /// The stamp of the user's index that the private one was copied from.
    pub(crate) person: FileStamp,
    pub(crate) looks: ReadStamps,
    pub(crate) private: (Utf8PathBuf, FileStamp),
    pub(crate) largest: u64,
}

/// The stamps of the files that git showed, from before they were read; none for a missing file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ReadStamps(pub(crate) Vec<FileStamp>);
