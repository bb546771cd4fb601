//! What is shown of a loop, or a plan, whose journal is damaged.

use schemars::JsonSchema;
use serde::Serialize;

use crate::view::{Kind, SCHEMA};

/// A loop, or a plan, whose journal is damaged: its row in `list --json`, and what `status --json` prints of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DamagedRow {
    /// The version of this shape.
    pub schema: u32,
    /// The name of its folder; the path of a project that cannot be listed.
    pub id: String,
    /// `plan` for a plan; left out if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<Kind>,
    /// That it is damaged.
    pub status: DamagedWord,
    /// The project's folder.
    pub project: String,
    /// What is damaged: the file, the line, and what is wrong with it.
    pub reason: String,
    /// What to type next.
    pub needs: String,
}

/// The status of what is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DamagedWord {
    /// Its journal cannot be read, or is cut off.
    Damaged,
}

impl DamagedWord {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Damaged => "damaged",
        }
    }
}

impl DamagedRow {
    /// The row of the loop, the plan or the project of that name.
    pub fn new(id: &str, kind: Option<Kind>, project: &str, reason: String) -> Self {
        Self {
            schema: SCHEMA,
            id: id.to_owned(),
            kind,
            status: DamagedWord::Damaged,
            project: project.to_owned(),
            reason,
            needs: format!("refrain verify {id}, refrain doctor"),
        }
    }
}
