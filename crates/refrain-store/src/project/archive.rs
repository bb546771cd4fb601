//! Loops that were put aside: their folders, renamed. They can still be read, and come back when they are resumed.

use camino::Utf8PathBuf;
use jiff::Timestamp;
use refrain_core::LoopId;
use refrain_files::{Folder, split};

use crate::project::layout::{LoopDir, Project};
use crate::{DiskError, OnPath, make_dir_nofollow};

/// Moves a stopped loop into the archive as `<id>-<when it ended>`; the caller holds its runner lock.
///
/// # Errors
/// [`DiskError`]; the loop then stays where it was.
pub fn put_aside(project: &Project, id: &LoopId, ended_at: Timestamp) -> Result<Utf8PathBuf, DiskError> {
    let archive = project.archive();
    make_dir_nofollow(&archive)?;
    let stamp = ended_at.strftime("%Y-%m-%dT%H-%M-%SZ");
    let name = |k: u32| match k {
        0 => archive.join(format!("{id}-{stamp}")),
        k => archive.join(format!("{id}-{stamp}-{k}")),
    };
    let free = (0..).map(name).find(|path| !path.exists()).unwrap_or_else(|| name(u32::MAX));
    rename(&project.loop_dir(id).0, &free)?;
    Ok(free)
}

/// The archived loop of that id, the latest if there are several.
#[must_use]
pub fn find(project: &Project, id: &LoopId) -> Option<LoopDir> {
    let entries = project.archive().read_dir_utf8().ok()?;
    entries
        .flatten()
        .filter(|entry| {
            let stamp = entry.file_name().strip_prefix(id.as_str()).and_then(|rest| rest.strip_prefix('-'));
            // `a-2026-…` belongs to `a`; `a-b-2026-…` to another.
            stamp.is_some_and(|stamp| stamp.len() >= 20 && stamp.as_bytes()[10] == b'T')
        })
        .map(|entry| LoopDir(entry.path().to_owned()))
        .max_by(|a, b| a.0.cmp(&b.0))
}

/// Brings an archived loop back under its id.
///
/// # Errors
/// [`DiskError`], also if a loop of that id is there.
pub fn bring_back(project: &Project, archived: &LoopDir, id: &LoopId) -> Result<LoopDir, DiskError> {
    let dir = project.loop_dir(id);
    make_dir_nofollow(&project.loops())?;
    rename(&archived.0, &dir.0)?;
    Ok(dir)
}

fn rename(from: &Utf8PathBuf, to: &Utf8PathBuf) -> Result<(), DiskError> {
    let moved = || {
        let ((here, name), (there, other)) = (split(from)?, split(to)?);
        let (here, there) = (Folder::open(here)?, Folder::open(there)?);
        here.rename_to(name, &there, other)?;
        here.sync()?;
        there.sync()
    };
    moved().on("move", from)
}
