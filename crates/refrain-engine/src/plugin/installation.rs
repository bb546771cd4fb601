//! Carries out what was rehearsed. Each file of ours is noted before it is written and until it is gone, so that a
//! crash in between leaves nothing that the next call does not know.

use camino::Utf8Path;
use refrain_store::DiskError;
use refrain_store::outbox::plugins::{self, InstalledFiles};

use super::rehearsal::Rehearsal;

pub(super) fn install(plan: &Rehearsal, before: &InstalledFiles, folder: &Utf8Path) -> Result<(), DiskError> {
    if plan.noted != *before {
        plan.noted.write(folder)?;
    }
    change(plan)?;
    let mut done = plan.noted.clone();
    done.files.values_mut().for_each(|file| file.was = None);
    if done != plan.noted { done.write(folder) } else { Ok(()) }
}

pub(super) fn remove(plan: &Rehearsal, before: &InstalledFiles, folder: &Utf8Path) -> Result<(), DiskError> {
    change(plan)?;
    let mut noted = plan.noted.clone();
    let files = before.files.keys().filter(|path| !plan.noted.files.contains_key(*path));
    let settings = before.settings.keys().filter(|path| !plan.noted.settings.contains_key(*path));
    let gone: Vec<_> = files.chain(settings).collect();
    // From within.
    for made in before.folders.iter().rev() {
        if gone.iter().any(|path| path.starts_with(made)) {
            // A folder with other files in it is the user's from now on.
            plugins::remove_empty(made)?;
            noted.folders.remove(made);
        }
    }
    if noted != *before {
        noted.write(folder)?;
    }
    Ok(())
}

fn change(plan: &Rehearsal) -> Result<(), DiskError> {
    plan.changes.iter().try_for_each(|change| match &change.after {
        Some(text) => plugins::write(&change.path, change.before.as_deref(), text),
        None => plugins::remove(&change.path),
    })
}
