//! Copies of loops that git remotes have. They lie apart from the loops of this machine, in folders of the same form: what
//! reads a loop reads a copy too. Nothing is lost with them.

use camino::Utf8Path;
use refrain_core::LoopId;
use refrain_core::git::Oid;
use refrain_core::view::RemoteCopy;
use refrain_files::{IfThere, read_regular, remove};
use serde::{Deserialize, Serialize};

use crate::disk::atomic::encode;
use crate::project::layout::{JOURNAL, LoopDir, Project};
use crate::{DiskError, OnPath, write_nofollow};

const NOTE: &str = "copy.json";

/// What is known of a copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyNote {
    #[serde(flatten)]
    pub copy: RemoteCopy,
    /// The commit that it was read from.
    pub commit: Oid,
    /// The loop is over, and this machine removed its references at the remote: nothing newer comes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_last: bool,
}

/// The project with the copies in the place of its loops.
pub fn project(project: &Project) -> Project {
    Project { data: project.data.join("mirrors"), ..project.clone() }
}

/// None if there is no copy.
pub fn note(dir: &LoopDir) -> Option<CopyNote> {
    serde_json::from_slice(&read_regular(&dir.0.join(NOTE), 1 << 16).ok()?).ok()
}

pub fn write_note(dir: &LoopDir, note: &CopyNote) -> Result<(), DiskError> {
    let path = dir.0.join(NOTE);
    write_nofollow(&path, &encode(&path, note)?)
}

/// Removes what is in the folder of a copy, which its caller has locked.
pub fn empty(dir: &LoopDir) -> Result<(), DiskError> {
    for name in [NOTE, JOURNAL] {
        let path = dir.0.join(name);
        remove(&path).on("remove", &path)?;
    }
    gone(&dir.iterations())
}

/// Removes the copy of a loop.
pub fn discard(of: &Project, id: &LoopId) -> Result<(), DiskError> {
    gone(&project(of).loop_dir(id).0)
}

fn gone(folder: &Utf8Path) -> Result<(), DiskError> {
    std::fs::remove_dir_all(folder).if_there().on("remove", folder).map(drop)
}
