//! Whether a pull request can be merged, and what came of merging it.

use std::fmt;

use refrain_core::git::Oid;

/// Whether a pull request can be merged now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mergeable {
    /// Nothing stands in the way that the forge knows of.
    Yes,
    /// The forge is still finding out.
    NotKnownYet,
    /// This does.
    No(Vec<MergeBlocker>),
}

/// What keeps a pull request from being merged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MergeBlocker {
    Draft,
    Closed,
    /// It does not go together with its base.
    Conflicts,
    /// It has to stand on its base's last commit first.
    Behind,
    /// An approval is missing.
    ReviewMissing,
    /// A reviewer requested changes.
    ChangesRequested,
    /// A check that is required has not passed.
    ChecksMissing,
    /// A rule of the project's, in the forge's words.
    Rule(String),
}

impl fmt::Display for MergeBlocker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Draft => "it is a draft",
            Self::Closed => "it is closed",
            Self::Conflicts => "it has conflicts with its base",
            Self::Behind => "it has to be brought up to date with its base first",
            Self::ReviewMissing => "somebody has to approve it",
            Self::ChangesRequested => "a reviewer asked for changes",
            Self::ChecksMissing => "a required check has not passed",
            Self::Rule(said) => return write!(f, "a rule of the project: {said}"),
        })
    }
}

/// What came of merging.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Merged {
    /// It is merged, by us or earlier by another user.
    Done {
        /// As which commit; none where the forge does not say.
        commit: Option<Oid>,
        /// Its branch is gone from the forge.
        branch_deleted: bool,
    },
    /// It is at another commit than the one that was to be merged. Nothing was done.
    HeadMoved { head: Oid },
    /// The forge does not merge it at this moment, as where its base was just moved. Nothing was done, and it may be tried again.
    NotYet {
        /// In its words.
        said: String,
    },
    /// The forge does not merge it. Nothing was done.
    NotMergeable {
        /// As far as it tells.
        why: Vec<MergeBlocker>,
        /// In its words.
        said: String,
    },
}
