//! Whether a pull request can be merged, and the result of merging it.

use std::fmt;

use refrain_core::git::Oid;

/// Whether a pull request can be merged now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mergeable {
    /// The forge knows no obstacle.
    Yes,
    /// The forge is still computing it.
    NotKnownYet,
    No(Vec<MergeBlocker>),
}

/// A reason why a pull request cannot be merged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MergeBlocker {
    Draft,
    Closed,
    Conflicts,
    /// It has to be rebased onto its base first.
    Behind,
    ReviewMissing,
    ChangesRequested,
    /// A required check has not passed.
    ChecksMissing,
    /// A rule of the project, in the forge's words.
    Rule(String),
}

impl fmt::Display for MergeBlocker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Draft => "it is a draft",
            Self::Closed => "it is closed",
            Self::Conflicts => "it has conflicts with its base",
            Self::Behind => "it has to be brought up to date with its base first",
            Self::ReviewMissing => "a person has to approve it",
            Self::ChangesRequested => "a reviewer asked for changes",
            Self::ChecksMissing => "a required check has not passed",
            Self::Rule(said) => return write!(f, "a rule of the project: {said}"),
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MergeOutcome {
    /// It is merged, by us or earlier by another user.
    Done {
        /// The merge commit; none if the forge does not report it.
        commit: Option<Oid>,
        branch_deleted: bool,
    },
    /// Its head is not the commit to be merged. Nothing was done.
    HeadMoved { head: Oid },
    /// The forge does not merge it now, for example because its base has just moved. Nothing was done, and it may be
    /// tried again.
    NotYet { said: String },
    /// The forge does not merge it. Nothing was done.
    NotMergeable { why: Vec<MergeBlocker>, said: String },
}
