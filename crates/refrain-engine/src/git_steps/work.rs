//! The work of a loop, looked at when an iteration begins and when its attempt has ended. What cannot be looked at is
//! not known, which never stops a loop.

use std::ffi::OsString;
use std::mem;
use std::time::{Duration, Instant};

use camino::Utf8Path;
use refrain_core::Spec;
use refrain_core::spec::Until;
use refrain_core::work::WorkDigest;
use refrain_git::{Cancel, GitError, Repository, Sweeper, WorkSnapshot};

use crate::git_steps::repository;
use crate::sandbox;

/// With more files and folders than this, reading all of them after each iteration is noticed.
pub const MANY_FILES: usize = 10_000;

/// How long a look may take. The work is not known then.
pub(crate) const LONGEST: Duration = Duration::from_secs(20);

/// The last look at a loop's worktree, so that the next one need not read it again.
#[derive(Debug, Default)]
pub(crate) struct WorkWatch {
    snapshot: WorkSnapshot,
    worktree: Worktree,
    sweeper: Option<Sweeper>,
}

#[derive(Debug, Default)]
enum Worktree {
    #[default]
    NotKnown,
    /// A folder without a repository.
    Plain,
    /// One with too many files to be read after each iteration: it is not looked at again.
    TooLarge,
    Repository(Box<Repository>),
}

impl WorkWatch {
    /// Of a worktree that git was asked about already.
    pub(crate) fn of(opened: Option<&Repository>, sweeper: Option<Sweeper>) -> Self {
        let worktree = opened
            .map_or_else(Worktree::default, |repository| Worktree::Repository(Box::new(repository.again())));
        Self { worktree, sweeper, ..Self::default() }
    }

    /// Whether anything needs it: a loop of a fixed number of iterations is never stuck.
    pub(crate) fn is_needed(spec: &Spec) -> bool {
        spec.until != Until::Count
    }

    /// The work now, none if it is not needed or cannot be read, and the programs of git that differ from the pinned
    /// ones.
    pub(crate) fn look(
        &mut self,
        spec: &Spec,
        env: &[(OsString, OsString)],
        cancel: Option<Cancel>,
    ) -> (Option<WorkDigest>, Vec<String>) {
        self.open(spec, env, cancel.clone());
        let changed = match &self.worktree {
            // A repository that cannot be asked runs nothing either.
            Worktree::Repository(repository) => repository.changed_pins().unwrap_or_default(),
            Worktree::NotKnown | Worktree::Plain | Worktree::TooLarge => Vec::new(),
        };
        let work =
            Self::is_needed(spec).then(|| self.look_at_files(&spec.worktree, cancel.as_ref())).flatten();
        (work, changed)
    }

    fn open(&mut self, spec: &Spec, env: &[(OsString, OsString)], cancel: Option<Cancel>) {
        // Git looks at nothing that an agent keeps from being restored.
        if self.sweeper.as_ref().is_some_and(|sweeper| sandbox::restore_left(&sweeper.loop_dir).is_err()) {
            self.worktree = Worktree::NotKnown;
            return;
        }
        let opened = match mem::take(&mut self.worktree) {
            Worktree::Repository(repository) if repository.root() == spec.worktree => {
                Ok(Worktree::Repository(repository))
            }
            known @ (Worktree::Plain | Worktree::TooLarge) => Ok(known),
            Worktree::Repository(_) | Worktree::NotKnown => match repository::open(&spec.worktree, env, spec)
            {
                Ok(repository) => {
                    Ok(Worktree::Repository(Box::new(repository.with_sweeper(self.sweeper.clone()))))
                }
                Err(GitError::NotARepository(_) | GitError::LostLink { .. } | GitError::Missing(_)) => {
                    Ok(Worktree::Plain)
                }
                Err(error) => Err(error),
            },
        };
        self.worktree = match (opened, cancel) {
            (Ok(Worktree::Repository(repository)), Some(cancel)) => {
                Worktree::Repository(Box::new(repository.with_cancel(cancel)))
            }
            (Ok(opened), _) => opened,
            (Err(_), _) => Worktree::NotKnown,
        };
    }

    fn look_at_files(&mut self, worktree: &Utf8Path, cancel: Option<&Cancel>) -> Option<WorkDigest> {
        let until = Instant::now() + LONGEST;
        if matches!(self.worktree, Worktree::NotKnown | Worktree::TooLarge) {
            return None;
        }
        let repository = match &self.worktree {
            Worktree::Repository(repository) => Some(&**repository),
            Worktree::NotKnown | Worktree::Plain | Worktree::TooLarge => None,
        };
        let seen = self.snapshot.look(repository, worktree, (until, cancel));
        if seen.is_err() {
            let is_too_large = repository.is_none() && !cancel.is_some_and(Cancel::is_cancelled);
            let worktree = if is_too_large { Worktree::TooLarge } else { Worktree::NotKnown };
            // An agent may have done anything to it: it is found anew the next time.
            *self = Self { worktree, sweeper: self.sweeper.take(), ..Self::default() };
        }
        seen.ok()
    }
}
