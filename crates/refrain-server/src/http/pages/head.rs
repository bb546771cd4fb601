//! The head of the page of a loop or a plan.

use refrain_core::view::{Charset, StatusWord, Verification};

/// How a loop, or a plan, stands, and what can be done with it.
pub(super) struct Head {
    pub(super) id: String,
    pub(super) status: Label,
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
    pub(super) can_answer: bool,
    pub(super) can_archive: bool,
}

/// The status, and the label of the result, in a word and its style.
pub(super) struct Label {
    pub(super) class: &'static str,
    pub(super) text: &'static str,
}

impl Label {
    pub(super) fn of(status: StatusWord, verified: Option<bool>) -> Self {
        let verification = Verification::of(status, verified);
        let class = match verification {
            Verification::Verified | Verification::Unverified => verification.word(),
            Verification::No | Verification::Pending => status.as_str(),
        };
        Self { class, text: verification.label_or(status, Charset::Unicode) }
    }
}

/// How far it is.
pub(super) struct Progress {
    pub(super) label: &'static str,
    pub(super) done: u64,
    /// None without a limit.
    pub(super) most: Option<u64>,
    pub(super) says: String,
}
