//! Who may come in over HTTP: the hashes of the tokens and cookies that were given out, one small file each in the user's
//! state home, named after the hash. They themselves are kept nowhere.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;

use camino::{Utf8Path, Utf8PathBuf};
use jiff::{Timestamp, ToSpan};

use crate::atomic::make_dir;
use crate::{DiskError, OnPath, write_atomic};

/// How long each is good for, in hours: a year, and then another is made.
const HOURS: i64 = 24 * 365;
/// What tells the hash of a cookie from that of a token.
const COOKIE: &str = "refrain serve 2026-11-22 the cookie of a browser";

/// What somebody shows to be let in; the one is never good as the other.
#[derive(Clone, Copy)]
pub enum Pass<'a> {
    /// A program's, or a person's who types it.
    Token(&'a str),
    /// A browser's, which it sends to one host alone.
    Cookie {
        /// That host, as it says it.
        host: &'a str,
        /// What it sends.
        value: &'a str,
    },
}

impl Pass<'_> {
    fn hash(self) -> blake3::Hash {
        match self {
            Self::Token(token) => blake3::hash(token.as_bytes()),
            Self::Cookie { host, value } => {
                let mut hasher = blake3::Hasher::new_derive_key(COOKIE);
                hasher.update(host.as_bytes()).update(b"\0").update(value.as_bytes());
                hasher.finalize()
            }
        }
    }
}

/// What was given out.
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

    /// Lets in whoever has this from now on, and clears away what is old. After a crash it is good or it is not, never half.
    ///
    /// # Errors
    /// [`DiskError`] where that cannot be kept.
    pub fn add(&self, pass: Pass<'_>, at: Timestamp) -> Result<(), DiskError> {
        make_dir(&self.dir)?;
        let all = self.dir.read_dir_utf8().into_iter().flatten().flatten();
        for old in all.filter(|entry| is_over(entry.path(), at)) {
            // One that stays lets nobody in either.
            let _ = fs::remove_file(old.path());
        }
        write_atomic(&self.place(pass), at.to_string().as_bytes())
    }

    /// Whether this was given out, and is still good. What cannot be read lets nobody in.
    #[must_use]
    pub fn has(&self, pass: Pass<'_>, now: Timestamp) -> bool {
        let path = self.place(pass);
        // Where there is no home, the state home is a place that everybody can write to.
        let own = rustix::process::geteuid().as_raw();
        let is_own = fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_file() && meta.uid() == own);
        is_own && end(&path).is_some_and(|end| now < end)
    }

    /// Lets nobody in any more who was; how many there were.
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

    fn place(&self, pass: Pass<'_>) -> Utf8PathBuf {
        self.dir.join(pass.hash().to_hex().as_str())
    }
}

/// Until when what a file stands for is good; none where it does not say.
fn end(path: &Utf8Path) -> Option<Timestamp> {
    let made: Timestamp = fs::read_to_string(path).ok()?.trim().parse().ok()?;
    made.checked_add(HOURS.hours()).ok()
}

fn is_over(path: &Utf8Path, now: Timestamp) -> bool {
    end(path).is_some_and(|end| end <= now)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Pass<'_> = Pass::Token("one");
    const TWO: Pass<'_> = Pass::Token("two");

    #[test]
    fn a_token_is_good_from_when_it_was_made_until_it_is_old_or_taken_back() {
        let dir = tempfile::tempdir().unwrap();
        let home = Utf8Path::from_path(dir.path()).unwrap();
        let (keys, made) = (Keys::new(home), Timestamp::from_second(1_000_000).unwrap());
        assert!(!keys.has(ONE, made) && keys.revoke().unwrap() == 0);
        keys.add(ONE, made).unwrap();
        keys.add(TWO, made).unwrap();
        assert!(keys.has(ONE, made) && keys.has(TWO, made) && !keys.has(Pass::Token("three"), made));
        assert!(!keys.has(Pass::Token("../one"), made) && !keys.has(Pass::Token(""), made));
        assert!(!keys.has(ONE, made + HOURS.hours()), "it is old");
        for file in fs::read_dir(home.join("serve")).unwrap().flatten() {
            let name = file.file_name().into_string().unwrap();
            assert!(name.len() == 64 && !fs::read_to_string(file.path()).unwrap().contains("one"));
            assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o600);
        }
        assert_eq!(keys.revoke().unwrap(), 2);
        assert!(!keys.has(ONE, made));
    }

    #[test]
    fn a_cookie_is_good_for_its_host_and_as_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let (keys, now) = (Keys::new(Utf8Path::from_path(dir.path()).unwrap()), Timestamp::UNIX_EPOCH);
        let cookie = |host| Pass::Cookie { host, value: "one" };
        keys.add(cookie("a.localhost:1"), now).unwrap();
        keys.add(TWO, now).unwrap();
        assert!(keys.has(cookie("a.localhost:1"), now));
        assert!(!keys.has(cookie("a.localhost:2"), now) && !keys.has(cookie("127.0.0.1:1"), now));
        assert!(!keys.has(ONE, now) && !keys.has(Pass::Token("a.localhost:1\0one"), now));
        assert!(!keys.has(Pass::Cookie { host: "a.localhost:1", value: "two" }, now));
    }

    #[test]
    fn what_is_old_is_cleared_away_when_something_is_made() {
        let dir = tempfile::tempdir().unwrap();
        let home = Utf8Path::from_path(dir.path()).unwrap();
        let (keys, made) = (Keys::new(home), Timestamp::from_second(1_000_000).unwrap());
        keys.add(ONE, made).unwrap();
        keys.add(TWO, made + HOURS.hours() - 1.hour()).unwrap();
        assert_eq!(fs::read_dir(home.join("serve")).unwrap().count(), 2);
        keys.add(Pass::Token("three"), made + HOURS.hours()).unwrap();
        assert_eq!(fs::read_dir(home.join("serve")).unwrap().count(), 2, "the first is gone");
        assert!(keys.has(TWO, made + HOURS.hours()));
    }
}
