//! The work of a loop, looked at when an iteration begins and when its attempt has ended. What cannot be looked at is not
//! known, which never stops a loop.

use std::ffi::OsString;
use std::mem;

use camino::Utf8Path;
use refrain_core::Spec;
use refrain_core::spec::Until;
use refrain_core::work::WorkDigest;
use refrain_git::{Cancel, GitError, Repository, WorkSnapshot};

/// What is known of a loop's worktree, so that the next look need not read it again.
#[derive(Debug, Default)]
pub(crate) struct WorkWatch {
    snapshot: WorkSnapshot,
    place: Place,
}

#[derive(Debug, Default)]
enum Place {
    #[default]
    NotKnown,
    /// A folder without a repository.
    Plain,
    Repository(Box<Repository>),
}

impl WorkWatch {
    /// Of a worktree that git was asked about already.
    pub(crate) fn of(opened: Option<&Repository>) -> Self {
        let place =
            opened.map_or_else(Place::default, |repository| Place::Repository(Box::new(repository.again())));
        Self { place, ..Self::default() }
    }

    /// Whether anything asks for it: a loop of exactly so many iterations is never stuck.
    pub(crate) fn is_needed(spec: &Spec) -> bool {
        spec.until != Until::Count
    }

    /// The work now; none if it cannot be known.
    pub(crate) fn look(
        &mut self,
        worktree: &Utf8Path,
        env: &[(OsString, OsString)],
        cancel: Option<Cancel>,
    ) -> Option<WorkDigest> {
        let place = match mem::take(&mut self.place) {
            Place::Repository(repository) if repository.root() == worktree => {
                Ok(Place::Repository(repository))
            }
            Place::Plain => Ok(Place::Plain),
            Place::Repository(_) | Place::NotKnown => match Repository::open(worktree, env) {
                Ok(repository) => Ok(Place::Repository(Box::new(repository))),
                Err(GitError::NotARepository(_) | GitError::Missing(_)) => Ok(Place::Plain),
                Err(error) => Err(error),
            },
        };
        self.place = match (place.ok()?, cancel) {
            (Place::Repository(repository), Some(cancel)) => {
                Place::Repository(Box::new(repository.with_cancel(cancel)))
            }
            (place, _) => place,
        };
        let repository = match &self.place {
            Place::Repository(repository) => Some(&**repository),
            Place::NotKnown | Place::Plain => None,
        };
        let seen = self.snapshot.look(repository, worktree);
        if seen.is_err() {
            // An agent may have done anything to it: it is found anew the next time.
            *self = Self::default();
        }
        seen.ok()
    }
}
