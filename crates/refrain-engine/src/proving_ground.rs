//! Where gates run with `--clean-checkout`: in a folder elsewhere that holds the candidate and nothing else of the worktree.
//! How it comes to hold that is `refrain-git`'s, which folder it is `refrain-store`'s business.

use std::sync::{Arc, Mutex, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::LoopState;
use refrain_git::{Cancel, CleanRequest, Repository};
use refrain_store::{CleanPlace, Project};

use crate::{chain, repository};

/// The folder that the loop has for it, once it needed one.
pub(crate) type Ground = Arc<Mutex<Option<CleanPlace>>>;

/// Where a gate of this run is started, or why it cannot be.
pub(crate) type Ready = Result<Utf8PathBuf, String>;

/// Makes the ground hold the candidate that is to be proven; returns the folder in it that corresponds to the one that the
/// agent works in.
pub(crate) fn prepare(
    state: &LoopState,
    ground: &Ground,
    state_home: &Utf8Path,
    repository: impl FnOnce() -> Result<Repository, refrain_git::GitError>,
    cancel: &Cancel,
) -> Ready {
    let spec = &state.spec;
    let candidate = state.proving().and_then(|proving| proving.candidate.as_ref()?.tree.as_ref());
    let tree = candidate.ok_or("there is no candidate that could be checked out")?;
    let mut ground = ground.lock().unwrap_or_else(PoisonError::into_inner);
    let place = match ground.take() {
        Some(place) => place,
        None => Project::find(&spec.project)
            .and_then(|project| CleanPlace::take(&project, state_home))
            .map_err(|error| chain(&error))?,
    };
    let place = ground.insert(place);
    let folder = place.folder();
    let request =
        CleanRequest { tree, over: &[], folder: &folder, index: &place.index(), cancel: Some(cancel) };
    let made = repository().and_then(|repository| repository.check_out_clean(request));
    made.map_err(|error| format!("the clean checkout cannot be made: {}", repository::say(&error)))?;
    let inside = spec.working_dir.strip_prefix(&spec.worktree).unwrap_or(Utf8Path::new(""));
    let at = folder.join(inside);
    match at.is_dir() {
        true => Ok(at),
        false => Err(format!("the clean checkout has no folder {inside}: nothing in it is committed or new")),
    }
}
