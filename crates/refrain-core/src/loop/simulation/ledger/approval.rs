//! What must hold if a person has the last word: nothing of a claim is completed, merged or committed without their yes
//! to that very tree, and silence is no answer.

use crate::event::{ApprovedTree, BlockReason, End};
use crate::git::Oid;

#[derive(Debug, Default)]
pub(super) struct Approval {
    given: Option<ApprovedTree>,
    pub(super) sent_back: bool,
}

impl Approval {
    /// A person resumes the loop that ended like this, with this tree.
    pub(super) fn hear(&mut self, end: Option<End>, approved: Option<&ApprovedTree>, tree: Option<&Oid>) {
        if end != Some(End::Blocked { why: BlockReason::Approval }) {
            return assert_eq!(approved, None, "no approval was requested");
        }
        assert!(approved.is_none_or(|it| it.tree.as_ref() == tree), "they were asked about something else");
        self.given = approved.cloned();
        self.sent_back = approved.is_none();
    }

    /// Whether they said yes to this tree, or of this iteration if it has no name.
    pub(super) fn is_given(&self, tree: Option<&Oid>, iteration: u32) -> bool {
        let is_it = |given: &ApprovedTree| {
            given.tree.as_ref() == tree && (tree.is_some() || given.attempt.iteration == iteration)
        };
        self.given.as_ref().is_some_and(is_it)
    }
}
