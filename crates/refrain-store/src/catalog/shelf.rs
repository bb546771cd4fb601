//! The query for a project's loops: which of them, and how much of each.

use camino::Utf8PathBuf;

use crate::project::layout::Project;

/// A folder of a project's loops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopFolder {
    /// Those that run or have ended.
    Loops,
    /// Those in the archive.
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

/// How much is wanted of each loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// What a list says of it in a line.
    Line,
    /// Its status object too.
    Object,
}
