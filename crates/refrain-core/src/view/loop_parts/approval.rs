//! A person's answer, or the open question, about what a loop claims to have done, as shown.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::r#loop::{self, LoopState};

/// What a person says of the candidate that they were asked about last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Approval {
    /// What they say.
    pub state: ApprovalWord,
    /// When they said it; null while they have not.
    pub at: Option<Timestamp>,
    /// Which iteration left the candidate.
    pub iteration: u32,
    /// Its tree; null where there is no repository.
    pub tree: Option<String>,
}

/// What a person says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ApprovalWord {
    /// Nothing yet: they are asked.
    Awaited,
    /// That it is good.
    Given,
    /// That it is not: the loop went on without.
    Refused,
}

impl Approval {
    /// The approval of the last candidate; none if no person was asked.
    pub fn of(state: &LoopState) -> Option<Self> {
        let proof = state.proof.as_ref()?;
        let (word, at) = match proof.approval? {
            r#loop::Approval::Awaited => (ApprovalWord::Awaited, None),
            r#loop::Approval::Given(at) => (ApprovalWord::Given, Some(at)),
            r#loop::Approval::Refused(at) => (ApprovalWord::Refused, Some(at)),
        };
        Some(Self {
            state: word,
            at,
            iteration: state.iteration,
            tree: proof.candidate.tree.as_ref().map(ToString::to_string),
        })
    }
}
