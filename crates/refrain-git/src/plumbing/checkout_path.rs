//! Paths that a checkout can have.

use refrain_core::git::RepoPath;
use refrain_core::text::cut;

use crate::error::GitError;

/// The longest name that a file can have, in bytes.
const LONGEST_NAME: usize = 255;

/// Refuses a path that `git add` never makes and that no checkout can have.
/// Errors: [`GitError::BadPath`].
pub(crate) fn check_path(path: &[u8]) -> Result<(), GitError> {
    let is_good = |name: &[u8]| {
        // On Windows these are other spellings of `.git`.
        let end = name.iter().position(|byte| matches!(byte, b':' | b'\\')).unwrap_or(name.len());
        let last = name[..end].iter().rposition(|byte| !matches!(byte, b'.' | b' '));
        let stem = &name[..last.map_or(0, |last| last + 1)];
        let is_git = [b".git".as_slice(), b"git~1"].iter().any(|git| stem.eq_ignore_ascii_case(git));
        !matches!(name, b"" | b"." | b"..") && !is_git && name.len() <= LONGEST_NAME
    };
    match path.split(|byte| *byte == b'/').all(is_good) {
        true => Ok(()),
        false => Err(GitError::BadPath(cut(&RepoPath::from_bytes(path).to_string(), 100).into_owned())),
    }
}
