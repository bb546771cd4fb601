//! The part of a loop's state on effects outside.

use jiff::Timestamp;

use crate::event::{ClaimSource, Wait};
use crate::git::{Checks, Conflict, Effect, Oid, PullRequest, Refusal};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Publishing {
    /// The iteration's claim, with its gates' proof.
    pub claim: Option<ClaimSource>,
    /// The running effect: an intent is on record, and its result is not.
    pub running: Option<Effect>,
    pub next: Option<Wait>,
    /// The first of the waits in a row, and how many there were.
    pub(in crate::r#loop) waited: Option<(Timestamp, u32)>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct PublishState {
    /// The newest of its commits that its remote has.
    pub pushed: Option<Oid>,
    pub place: Option<(String, String)>,
    pub request: Option<PullRequest>,
    /// The commit that the pull request says is proven.
    pub ready: Option<Oid>,
    pub checks: Option<Checks>,
    /// The result differs from the one before.
    pub is_news: bool,
    pub(in crate::r#loop) checked: Option<Oid>,
    /// It is merged; and the commit on the base, if the forge reports it.
    pub merged: Option<Option<Oid>>,
    /// It is done with: the worktree is back on the base, or why not.
    pub returned: Option<Option<String>>,
    /// The objection to a claim of the iteration.
    pub objection: Option<(u32, Objection)>,
    /// What a person has to resolve, and the message: of the last effect.
    pub refused: Option<(Refusal, String)>,
    /// Why the last effect is to be tried again.
    pub later: Option<String>,
    /// The tree of the head after this iteration, if it lies on what the remote gained since its commit was made.
    pub(in crate::r#loop) rebased: Option<(u32, Oid)>,
    /// How many of its commits the remote has.
    pub(in crate::r#loop) commits: usize,
    pub(in crate::r#loop) rebases: u32,
    pub(in crate::r#loop) conflicts: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Objection {
    Checks(Checks),
    /// The remote has what does not go together with the work.
    Conflict {
        theirs: Oid,
        paths: Vec<Conflict>,
    },
}
