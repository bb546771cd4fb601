use crate::event::PushReport;
use crate::git::{Oid, RepoPath};
use crate::stuck::{IterationResult, Stuck};
use crate::work::WorkDigest;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    pub stuck: Stuck,
    pub(in crate::r#loop) began: Option<WorkDigest>,
    pub(in crate::r#loop) last_recorded: u32,
    /// The fold before the last record, and that record: checks may fail it later.
    pub(in crate::r#loop) before: Option<Box<(Stuck, IterationResult)>>,
    /// It has changed its agent already: there is no second change.
    pub changed: bool,
    /// What is kept of its work, since it was last resumed.
    pub saved: Option<Saved>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Saved {
    Branch {
        name: String,
        commit: Oid,
        /// The remote that it was pushed to, or why not.
        pushed: Option<PushReport>,
        /// Files of it that hold the user's own changes too.
        mixed: Vec<RepoPath>,
    },
    Not {
        why: String,
    },
}
