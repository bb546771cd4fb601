//! Where gates run with `--clean-checkout`: in a folder elsewhere that holds the candidate and nothing else of the worktree.
//! How it comes to hold that is `refrain-git`'s, which folder it is `refrain-store`'s business.

use std::ffi::OsString;
use std::sync::{Arc, Mutex, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::git::RepoPath;
use refrain_core::protect::{Protected, Rule, Touched, Violation};
use refrain_core::{LoopState, Spec};
use refrain_git::{Cancel, CleanRequest, GitError, Repository};
use refrain_store::{CleanPlace, Project};

use crate::chain;
use crate::git_words;

/// The folder that the loop has for it, once it needed one.
pub(crate) type Ground = Arc<Mutex<Option<CleanPlace>>>;

/// Where a gate of this run is started, or why it cannot be.
pub(crate) type Ready = Result<Utf8PathBuf, String>;

fn frozen(touched: &Touched) -> Option<&RepoPath> {
    match touched {
        Touched::Path(violation) if violation.rule != Rule::Existing => Some(&violation.path),
        Touched::Path(_) | Touched::Part(_) | Touched::Program(_) => None,
    }
}

/// What a gate that ran there changed of what is protected: what it then said was not said of that. Blocks.
pub(crate) fn touched_by_gate(spec: &Spec, ground: &Ground, env: &[(OsString, OsString)]) -> Option<String> {
    let ground = ground.lock().unwrap_or_else(PoisonError::into_inner);
    let place = ground.as_ref()?;
    let protect = &spec.protect;
    let found = || -> Result<Vec<Violation>, GitError> {
        let paths = Protected::new(&protect.frozen, &protect.existing)?;
        let repository = Repository::open(&spec.worktree, env)?;
        Ok(paths.touched(&repository.changed_in_checkout(&place.folder(), &place.index())?))
    };
    match found() {
        Ok(violations) => violations.first().map(|violation| format!("while it ran, {violation}")),
        Err(error) => Some(format!("what it did to protected files cannot be seen: {}", chain(&error))),
    }
}

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
    let candidate = state.proving().and_then(|proving| proving.candidate.as_ref());
    let tree = candidate.and_then(|candidate| candidate.tree.as_ref());
    let (Some(candidate), Some(tree)) = (candidate, tree) else {
        return Err("there is no candidate that could be checked out".to_owned());
    };
    let mut ground = ground.lock().unwrap_or_else(PoisonError::into_inner);
    let place = match ground.take() {
        Some(place) => place,
        None => Project::find(&spec.project)
            .and_then(|project| CleanPlace::take(&project, state_home))
            .map_err(|error| chain(&error))?,
    };
    let place = ground.insert(place);
    let folder = place.folder();
    let made = repository().and_then(|repository| {
        // What is frozen and was touched is as it was: a gate that the agent rewrote says nothing.
        let base = state.git.base.as_ref().and_then(|base| base.protected.as_ref());
        let frozen = candidate.touched.iter().filter_map(frozen);
        let over = base.map_or_else(|| Ok(Vec::new()), |base| repository.as_they_were(base, frozen))?;
        let (index, cancel) = (&place.index(), Some(cancel));
        repository.check_out_clean(CleanRequest { tree, over: &over, folder: &folder, index, cancel })
    });
    made.map_err(|error| {
        format!("the clean checkout cannot be made: {}", git_words::say(&error, git_words::LONGEST))
    })?;
    let inside = spec.working_dir.strip_prefix(&spec.worktree).unwrap_or(Utf8Path::new(""));
    let at = folder.join(inside);
    match at.is_dir() {
        true => Ok(at),
        false => Err(format!("the clean checkout has no folder {inside}: nothing in it is committed or new")),
    }
}
