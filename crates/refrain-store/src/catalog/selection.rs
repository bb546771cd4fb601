//! The query for a project's loops: which of them, and how much of each.

use camino::Utf8PathBuf;

use crate::project::layout::Project;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopFolder {
    /// Those that run or have ended.
    Loops,
    Archive,
}

impl LoopFolder {
    pub(super) fn is_archive(self) -> bool {
        self == Self::Archive
    }

    pub(super) fn folder(self, project: &Project) -> Utf8PathBuf {
        match self {
            Self::Loops => project.loops(),
            Self::Archive => project.archive(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// What a list says of it in a line.
    Line,
    Object,
}
