//! Who may come in over HTTP: the hashes of the tokens that were given out, one small file each in the user's state home,
//! named after the hash. The tokens themselves are kept nowhere.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;

use camino::{Utf8Path, Utf8PathBuf};
use jiff::{Timestamp, ToSpan};

use crate::atomic::make_dir;
use crate::{DiskError, OnPath, write_atomic};

/// How long a token is good for, in hours: a year, and then another is made.
const HOURS: i64 = 24 * 365;

/// The tokens that were given out.
#[derive(Clone, Debug)]
pub struct Keys {
    dir: Utf8PathBuf,
}

impl Keys {
    /// What is kept in this state home.
    #[must_use]
    pub fn new(state_home: &Utf8Path) -> Self {
        Self { dir: state_home.join("serve") }
    }

    /// Lets in whoever has this token from now on. After a crash it is good or it is not, never half.
    ///
    /// # Errors
    /// [`DiskError`] where that cannot be kept.
    pub fn add(&self, token: &str, at: Timestamp) -> Result<(), DiskError> {
        make_dir(&self.dir)?;
        write_atomic(&self.place(token), at.to_string().as_bytes())
    }

    /// Whether this token was given out, and is still good. What cannot be read lets nobody in.
    #[must_use]
    pub fn has(&self, token: &str, now: Timestamp) -> bool {
        let path = self.place(token);
        // Where there is no home, the state home is a place that everybody can write to.
        let own = rustix::process::geteuid().as_raw();
        let is_own = fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_file() && meta.uid() == own);
        let made = fs::read_to_string(&path).ok().filter(|_| is_own);
        let made = made.and_then(|text| text.trim().parse::<Timestamp>().ok());
        made.and_then(|made| made.checked_add(HOURS.hours()).ok()).is_some_and(|end| now < end)
    }

    /// Lets nobody in any more who was; how many tokens were good.
    ///
    /// # Errors
    /// [`DiskError`] where one of them stays.
    pub fn revoke(&self) -> Result<usize, DiskError> {
        let mut count = 0;
        for entry in self.dir.read_dir_utf8().into_iter().flatten().flatten() {
            match fs::remove_file(entry.path()) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(error).on("remove", entry.path());
                }
                _ => count += 1,
            }
        }
        Ok(count)
    }

    fn place(&self, token: &str) -> Utf8PathBuf {
        self.dir.join(blake3::hash(token.as_bytes()).to_hex().as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_good_from_when_it_was_made_until_it_is_old_or_taken_back() {
        let dir = tempfile::tempdir().unwrap();
        let home = Utf8Path::from_path(dir.path()).unwrap();
        let (keys, made) = (Keys::new(home), Timestamp::from_second(1_000_000).unwrap());
        assert!(!keys.has("one", made) && keys.revoke().unwrap() == 0);
        keys.add("one", made).unwrap();
        keys.add("two", made).unwrap();
        assert!(keys.has("one", made) && keys.has("two", made) && !keys.has("three", made));
        assert!(!keys.has("../one", made) && !keys.has("", made));
        assert!(!keys.has("one", made + HOURS.hours()), "it is old");
        for file in fs::read_dir(home.join("serve")).unwrap().flatten() {
            let name = file.file_name().into_string().unwrap();
            assert!(name.len() == 64 && !fs::read_to_string(file.path()).unwrap().contains("one"));
            assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o600);
        }
        assert_eq!(keys.revoke().unwrap(), 2);
        assert!(!keys.has("one", made));
    }
}
