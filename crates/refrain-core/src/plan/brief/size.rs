//! How large a specification is, and the warning if it is too large: it names the large part and never cuts.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Brief, PartKind};
use crate::plan::brief::tokens::tokens;
use crate::plan::{Problem, TaskId};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Size {
    pub tokens: u64,
    /// Its parts, in their order.
    pub parts: Vec<PartSize>,
}

/// How large a part is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PartSize {
    /// What it is.
    pub kind: PartKind,
    /// What it is called.
    pub name: String,
    /// In tokens.
    pub tokens: u64,
}

impl Brief {
    pub fn size(&self) -> Size {
        let of = |part: &super::Part| PartSize {
            kind: part.kind,
            name: part.name.clone(),
            tokens: tokens(&part.text),
        };
        Size { tokens: tokens(self.text()), parts: self.parts().iter().map(of).collect() }
    }

    /// The problem if it has more than `most` tokens: by how much, and which part is the largest.
    pub fn over_budget(&self, task: &TaskId, most: u64) -> Option<Problem> {
        let size = Some(self.size()).filter(|size| size.tokens > most)?;
        let largest = size.parts.into_iter().max_by_key(|part| part.tokens)?;
        Some(Problem::OverBudget {
            task: task.clone(),
            tokens: size.tokens,
            budget: most,
            largest: (largest.name, largest.tokens),
        })
    }
}
