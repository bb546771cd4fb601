use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use camino::Utf8Path;

use crate::error::GitError;
use crate::plumbing::git::{Git, environment};

/// Git's version, run in `dir` with the user's environment, within `limit`: `git version 2.47.3`.
/// Errors: [`GitError::Missing`] without a git program; otherwise if it cannot be run.
pub fn version(dir: &Utf8Path, env: &[(OsString, OsString)], limit: Duration) -> Result<String, GitError> {
    Git::new(dir, &environment(env)).within(Some(limit)).text(["--version"], &[])
}

/// The oldest git that does all that Refrain asks of it, as major and minor number.
pub const OLDEST: (u32, u32) = (2, 38);

/// Refuses a git that is too old. A program that is new enough is asked once.
pub(crate) fn check(git: Git<'_>, program: Option<&Path>) -> Result<(), GitError> {
    static NEW_ENOUGH: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    let known = || NEW_ENOUGH.lock().unwrap_or_else(PoisonError::into_inner);
    let program = program.unwrap_or(Path::new("git"));
    if known().contains(program) {
        return Ok(());
    }
    match read_version(&git.text(["--version"], &[])?) {
        (_, true) => known().insert(program.to_owned()),
        (version, false) => return Err(GitError::TooOld(version.to_owned())),
    };
    Ok(())
}

/// The version in what [`version`] returns, and whether it is new enough.
pub fn read_version(said: &str) -> (&str, bool) {
    let version = said.split_whitespace().nth(2).unwrap_or_default();
    let mut numbers = version.split('.').map_while(|number| number.parse::<u32>().ok());
    let numbers = numbers.next().zip(numbers.next());
    (version, numbers.is_some_and(|numbers| numbers >= OLDEST))
}
