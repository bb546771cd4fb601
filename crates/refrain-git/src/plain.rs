//! The configuration of a worktree: it is read by git, once, and again when one of its files has changed: an agent that
//! installs packages may well install hooks.

use std::sync::PoisonError;

use crate::configuration::Configured;
use crate::error::GitError;
use crate::git::Git;
use crate::repository::Repository;

/// Whether a commit may be made of its parts: `git commit` would run no hook and sign nothing.
pub(crate) fn is_plain(repository: &Repository, git: Git<'_>) -> Result<bool, GitError> {
    configured(repository, git, |configured| configured.is_plain(repository.pins()))?
}

/// What a worktree is configured to do, as its files are now.
pub(crate) fn configured<T>(
    repository: &Repository,
    git: Git<'_>,
    ask: impl FnOnce(&mut Configured) -> T,
) -> Result<T, GitError> {
    // What is in it is right or not there, whoever was disturbed while holding it.
    let mut known = repository.configured.lock().unwrap_or_else(PoisonError::into_inner);
    known.retain(|_, configured| configured.is_current());
    let own = Some(repository.git_dir().to_owned());
    let mut of = [None, own.clone()].into_iter().find(|of| known.contains_key(of));
    if of.is_none() {
        let read = Configured::read(repository, git)?;
        let its = own.filter(|_| !read.is_common);
        known.insert(its.clone(), read);
        of = Some(its);
    }
    let found = of.and_then(|of| known.get_mut(&of));
    found.map(ask).ok_or_else(|| GitError::Answer { command: "config", answer: String::new() })
}
