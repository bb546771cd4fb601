//! The head of the page of a loop or a plan.

/// The status of a loop or a plan, and the possible actions.
pub(super) struct Head {
    pub(super) id: String,
    pub(super) status: &'static str,
    pub(super) reason: String,
    pub(super) needs: String,
    /// Of a task of a plan: the plan, and the task in words.
    pub(super) task: Option<(String, String)>,
    pub(super) progress: Option<Progress>,
    pub(super) facts: Vec<(&'static str, String)>,
    /// The tree that waits for approval, if one does; empty if it has no name.
    pub(super) approves: Option<String>,
    pub(super) can_stop: bool,
    pub(super) can_cancel: bool,
    pub(super) can_resume: bool,
    pub(super) can_steer: bool,
    pub(super) can_archive: bool,
}

/// How far it is.
pub(super) struct Progress {
    pub(super) label: &'static str,
    pub(super) done: u64,
    /// None without a limit.
    pub(super) most: Option<u64>,
    pub(super) says: String,
}
