//! What is shown of an agent's prompt: the object that `plan show --json` prints.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Brief, PartKind};
use crate::plan::brief::tokens::tokens;
use crate::plan::{Task, TaskId};

const SCHEMA: u32 = 1;

/// What the agent of a task will be told.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TaskBrief {
    /// The version of this shape.
    pub schema: u32,
    /// The task file.
    pub file: String,
    /// The tag.
    pub tag: String,
    /// The task.
    pub id: TaskId,
    /// What is to be done, in a line.
    pub title: String,
    /// How many tokens the specification may have before it is warned of.
    pub max_spec_tokens: u64,
    /// How many it has.
    pub spec_tokens: u64,
    /// That it has too many, and which part is the largest; null where it has not.
    pub warning: Option<String>,
    /// What the specification is made of.
    pub parts: Vec<BriefPart>,
    /// The whole prompt, to the byte.
    pub prompt: String,
    /// How many tokens that is.
    pub tokens: u64,
}

/// A part of a specification.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct BriefPart {
    /// What it is.
    pub kind: PartKind,
    /// What it is called.
    pub name: String,
    /// How many tokens it has.
    pub tokens: u64,
    /// What it says.
    pub text: String,
}

impl TaskBrief {
    /// The view of the prompt of `task`, which is under a tag in a file.
    pub fn of(
        (file, tag, task): (&str, &str, &Task),
        brief: &Brief,
        max_spec_tokens: u64,
        prompt: String,
    ) -> Self {
        let parts = brief.parts().iter().map(|part| BriefPart {
            kind: part.kind,
            name: part.name.clone(),
            tokens: tokens(&part.text),
            text: part.text.clone(),
        });
        Self {
            schema: SCHEMA,
            file: file.to_owned(),
            tag: tag.to_owned(),
            id: task.id.clone(),
            title: task.title.clone(),
            max_spec_tokens,
            spec_tokens: tokens(brief.text()),
            warning: brief.over_budget(&task.id, max_spec_tokens).map(|problem| problem.to_string()),
            parts: parts.collect(),
            tokens: tokens(&prompt),
            prompt,
        }
    }
}
