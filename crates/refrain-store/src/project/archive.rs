//! Loops and plans that were put aside: their folders, renamed. They can still be read, and a loop comes back when it is
//! resumed.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp;
use refrain_core::LoopId;
use refrain_files::{Folder, split};

use crate::project::layout::{LoopDir, Project};
use crate::{DiskError, OnPath, make_dir_nofollow};

/// When a loop ended, in the name of its folder.
const STAMP: &str = "%Y-%m-%dT%H-%M-%SZ";
const STAMP_LENGTH: usize = 20;

/// Moves a stopped loop into the archive as `<id>-<when it ended>`; the caller holds its runner lock.
/// Errors: [`DiskError`]; the loop then stays where it was.
pub fn put_aside(project: &Project, id: &LoopId, ended_at: Timestamp) -> Result<Utf8PathBuf, DiskError> {
    put_aside_from(&project.loop_dir(id), project.archive(), id, ended_at)
}

pub fn put_plan_aside(project: &Project, id: &LoopId, ended_at: Timestamp) -> Result<Utf8PathBuf, DiskError> {
    put_aside_from(&project.plan_dir(id), project.plan_archive(), id, ended_at)
}

fn put_aside_from(
    dir: &LoopDir,
    archive: Utf8PathBuf,
    id: &LoopId,
    ended_at: Timestamp,
) -> Result<Utf8PathBuf, DiskError> {
    make_dir_nofollow(&archive)?;
    let stamp = ended_at.strftime(STAMP);
    let name = |k: u32| match k {
        0 => archive.join(format!("{id}-{stamp}")),
        k => archive.join(format!("{id}-{stamp}-{k}")),
    };
    let free = (0..).map(name).find(|path| !path.exists()).unwrap_or_else(|| name(u32::MAX));
    rename(&dir.0, &free)?;
    Ok(free)
}

/// The archived loop of that id, the latest if there are several.
pub fn find(project: &Project, id: &LoopId) -> Option<LoopDir> {
    latest(project.archive(), id)
}

/// The archived plan of that id, the latest if there are several.
pub fn find_plan(project: &Project, id: &LoopId) -> Option<LoopDir> {
    latest(project.plan_archive(), id)
}

fn latest(archive: Utf8PathBuf, id: &LoopId) -> Option<LoopDir> {
    let entries = archive.read_dir_utf8().ok()?;
    entries
        .flatten()
        .filter(|entry| is_archived_as(entry.file_name(), id))
        .map(|entry| LoopDir(entry.path().to_owned()))
        .max_by(|a, b| a.0.cmp(&b.0))
}

/// The folders of all loops or plans in an archive by their ids, of each the latest last.
pub fn by_id(archive: &Utf8Path) -> BTreeMap<LoopId, Vec<LoopDir>> {
    let mut all: BTreeMap<LoopId, Vec<LoopDir>> = BTreeMap::new();
    for entry in archive.read_dir_utf8().into_iter().flatten().flatten() {
        if let Some(id) = id_of(entry.file_name()) {
            all.entry(id).or_default().push(LoopDir(entry.path().to_owned()));
        }
    }
    all.values_mut().for_each(|dirs| dirs.sort_by(|a, b| a.0.cmp(&b.0)));
    all
}

/// The id in the name of an archived folder: `a` in `a-2026-11-21T17-30-00Z` and `a-2026-11-21T17-30-00Z-1`. No id has such a
/// time in it.
pub fn id_of(name: &str) -> Option<LoopId> {
    let at = (0..name.len()).find(|at| name.get(*at..*at + STAMP_LENGTH).and_then(stamp).is_some())?;
    let number = name.get(at + STAMP_LENGTH..)?;
    let is_numbered = number.strip_prefix('-').is_some_and(|number| number.parse::<u32>().is_ok());
    if !number.is_empty() && !is_numbered {
        return None;
    }
    name.get(..at)?.strip_suffix('-')?.parse().ok()
}

/// Whether the folder of a loop or plan has its name, as it has where it was made and in the archive.
pub(crate) fn is_folder_of(dir: &LoopDir, id: &LoopId) -> bool {
    dir.0.file_name().is_some_and(|name| name == id.as_str() || is_archived_as(name, id))
}

/// `a-2026-…` belongs to `a`; `a-b-2026-…` to another.
fn is_archived_as(name: &str, id: &LoopId) -> bool {
    let rest = name.strip_prefix(id.as_str()).and_then(|rest| rest.strip_prefix('-'));
    rest.and_then(|rest| stamp(rest.get(..STAMP_LENGTH)?)).is_some()
}

/// The archived loops that ended before this time, in seconds.
pub fn dirs_before(project: &Project, before: i64) -> Vec<LoopDir> {
    let entries = project.archive().read_dir_utf8().into_iter().flatten().flatten();
    let ended = |name: &str| (0..name.len()).find_map(|at| stamp(name.get(at..at + STAMP_LENGTH)?));
    entries
        .filter(|entry| ended(entry.file_name()).is_some_and(|ended| ended < before))
        .map(|entry| LoopDir(entry.path().to_owned()))
        .collect()
}

/// The time of a stamp in the name of an archived loop, in seconds.
fn stamp(text: &str) -> Option<i64> {
    let at = jiff::civil::DateTime::strptime(STAMP, text).ok()?;
    Some(at.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp().as_second())
}

/// The folder of the recorded output of an archived loop, if it is still there.
pub fn output(dir: &LoopDir) -> Option<Utf8PathBuf> {
    let folder = dir.iterations();
    folder.symlink_metadata().is_ok_and(|meta| meta.is_dir()).then_some(folder)
}

/// Removes the folder of the recorded output of an archived loop.
pub fn remove_output(project: &Project, folder: &Utf8Path) -> Result<(), DiskError> {
    let dir = folder.parent().map(|dir| LoopDir(dir.to_owned()));
    let is_its = |dir: &LoopDir| dir.0.parent() == Some(&project.archive()) && dir.iterations() == folder;
    if dir.as_ref().is_some_and(is_its) {
        std::fs::remove_dir_all(folder).on("remove", folder)?;
    }
    Ok(())
}

/// Brings an archived loop back under its id.
/// Errors: [`DiskError`], also if a loop of that id is there.
pub fn bring_back(project: &Project, archived: &LoopDir, id: &LoopId) -> Result<LoopDir, DiskError> {
    let dir = project.loop_dir(id);
    make_dir_nofollow(&project.loops())?;
    rename(&archived.0, &dir.0)?;
    Ok(dir)
}

/// Undoes [`bring_back`].
pub fn put_back(project: &Project, archived: &LoopDir, id: &LoopId) -> Result<(), DiskError> {
    rename(&project.loop_dir(id).0, &archived.0)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archived_loops_are_found_by_the_time_of_their_end() {
        let dir = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(dir.path()).unwrap().to_owned();
        let project = Project { root: root.clone(), worktree: root.clone(), data: root.join("data") };
        for name in ["a-2026-11-21T17-30-00Z", "b-x-2026-11-21T17-30-01Z-2", "strange"] {
            std::fs::create_dir_all(project.archive().join(name).join("iterations")).unwrap();
        }
        let at: Timestamp = "2026-11-21T17:30:01Z".parse().unwrap();
        let found = dirs_before(&project, at.as_second());
        assert_eq!(found, [LoopDir(project.archive().join("a-2026-11-21T17-30-00Z"))]);
        assert_eq!(dirs_before(&project, i64::MAX).len(), 2);
        let ids: Vec<_> = by_id(&project.archive()).into_keys().map(|id| id.to_string()).collect();
        assert_eq!(ids, ["a", "b-x"]);
        for name in [
            "a",
            "a-2026-11-21t17-30-00z",
            "a-2026-11-21T17-30-00Z/../b",
            "a-2026-11-21T17-30-00Z-x",
            "../a-2026-11-21T17-30-00Z",
        ] {
            assert_eq!(id_of(name), None, "{name}");
        }
        let output = output(&found[0]).unwrap();
        remove_output(&project, &root).unwrap();
        assert!(root.is_dir(), "only the output of an archived loop is removed");
        remove_output(&project, &output).unwrap();
        assert!(!output.exists() && found[0].0.is_dir());
    }
}
