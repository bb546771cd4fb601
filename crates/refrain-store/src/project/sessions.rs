//! Which loops sessions drive: one small file a loop, so that a hook need not read every journal of the project.
//! Derived, a hint: the journal has the truth.

use std::fs;

use refrain_core::LoopId;
use refrain_files::IfThere;

use crate::{DiskError, OnPath, Project, make_dir_nofollow, write_nofollow};

/// Notes that a loop is driven by the session of this name; by one that has not said its name yet, without.
pub fn note(project: &Project, id: &LoopId, session: Option<&str>) -> Result<(), DiskError> {
    make_dir_nofollow(&project.sessions())?;
    write_nofollow(&project.sessions().join(id.as_str()), session.unwrap_or_default().as_bytes())
}

/// Forgets that: it has stopped, or a runner drives it.
pub fn forget(project: &Project, id: &LoopId) {
    // A convenience: a reader of the note looks into the journal.
    let _ = refrain_files::remove(&project.sessions().join(id.as_str()));
}

/// How often in a row a loop had nothing to do, this iteration included; noted for the next.
pub fn idle_streak(project: &Project, id: &LoopId, iteration: u32) -> Result<usize, DiskError> {
    // No loop can be called so.
    let folder = project.sessions().join(".idle");
    make_dir_nofollow(&folder)?;
    let path = folder.join(id.as_str());
    let noted = fs::read_to_string(&path).unwrap_or_default();
    let last = noted.split_once(' ');
    let last = last.and_then(|(at, streak)| Some((at.parse::<u32>().ok()?, streak.parse::<usize>().ok()?)));
    let streak = match last {
        Some((at, streak)) if (at..=at.saturating_add(1)).contains(&iteration) => streak + 1,
        Some(_) | None => 1,
    };
    write_nofollow(&path, format!("{iteration} {streak}").as_bytes())?;
    Ok(streak)
}

/// The loops that may be driven by a session of this name, or by one that has not said its name, by id.
/// Errors: [`DiskError`]; if there were never any, there are none.
pub fn of(project: &Project, session: &str) -> Result<Vec<LoopId>, DiskError> {
    let folder = project.sessions();
    let entries = folder.read_dir_utf8().if_there().on("read", &folder)?.into_iter().flatten();
    let is_its = |id: &LoopId| {
        let noted = fs::read(folder.join(id.as_str())).unwrap_or_default();
        noted.is_empty() || noted == session.as_bytes()
    };
    // Other things there are not Refrain's: a FIFO would never end.
    let files = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    let names = files.filter_map(|entry| entry.file_name().parse().ok());
    let mut ids: Vec<LoopId> = names.filter(is_its).collect();
    ids.sort();
    Ok(ids)
}
