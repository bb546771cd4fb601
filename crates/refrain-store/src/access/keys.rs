//! The credentials for HTTP: the hashes of the tokens and cookies that were given out, one small file each in the
//! user's state home, named after the hash. The credentials themselves are not kept.

use std::fs;
use std::os::unix::fs::MetadataExt;

use camino::{Utf8Path, Utf8PathBuf};
use jiff::{Timestamp, ToSpan};
use refrain_files::IfThere;
use schemars::JsonSchema;
use serde::Serialize;

use crate::disk::atomic::make_dir;
use crate::{DiskError, OnPath, write_atomic};

/// How long each is good for, in hours: 30 days, and then another is made.
const HOURS: i64 = 24 * 30;
/// What the file of a cookie has after its time.
const BROWSER: &str = "browser";
/// How much of a hash is an id: enough to tell tokens apart, and nothing to guess a token by.
const ID: usize = 12;
/// Distinguishes the hash of a cookie from that of a token.
const COOKIE: &str = "refrain serve 2026-11-22 the cookie of a browser";

/// The credential of a client; a token is never accepted as a cookie, nor the reverse.
#[derive(Clone, Copy)]
pub enum Pass<'a> {
    /// A program's, or one that a person types.
    Token(&'a str),
    /// A browser's, which it sends to one host alone.
    Cookie { host: &'a str, value: &'a str },
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

/// A token or cookie that lets its holder in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Key {
    /// The beginning of its hash, by which it can be revoked.
    pub id: String,
    /// Whether it is a browser's cookie, and not a token.
    pub browser: bool,
    /// When it was made.
    pub made_at: Timestamp,
    /// When it ends.
    pub ends_at: Timestamp,
}

#[derive(Clone, Debug)]
pub struct Keys {
    dir: Utf8PathBuf,
}

impl Keys {
    pub fn new(state_home: &Utf8Path) -> Self {
        Self { dir: state_home.join("serve") }
    }

    /// Accepts this credential from now on, and clears away what is old. After a crash it is good or it is not, never
    /// half.
    pub fn add(&self, pass: Pass<'_>, at: Timestamp) -> Result<(), DiskError> {
        make_dir(&self.dir)?;
        let all = self.dir.read_dir_utf8().into_iter().flatten().flatten();
        for old in all.filter(|entry| is_over(entry.path(), at)) {
            // An expired key that stays is not accepted either.
            let _ = fs::remove_file(old.path());
        }
        let text = match pass {
            Pass::Token(_) => at.to_string(),
            Pass::Cookie { .. } => format!("{at} {BROWSER}"),
        };
        write_atomic(&self.place(pass), text.as_bytes())
    }

    /// The keys that are accepted now, oldest first.
    pub fn list(&self, now: Timestamp) -> Vec<Key> {
        let all = self.dir.read_dir_utf8().into_iter().flatten().flatten();
        let mut keys: Vec<_> =
            all.filter_map(|entry| key(entry.path())).filter(|key| now < key.ends_at).collect();
        keys.sort_by(|a, b| (a.made_at, &a.id).cmp(&(b.made_at, &b.id)));
        keys
    }

    /// Lets the holder of the key with this id in no more; whether there was one.
    pub fn revoke_one(&self, id: &str) -> Result<bool, DiskError> {
        let mut all = self.dir.read_dir_utf8().into_iter().flatten().flatten();
        let Some(found) = all.find(|entry| key(entry.path()).is_some_and(|key| key.id == id)) else {
            return Ok(false);
        };
        fs::remove_file(found.path()).on("remove", found.path())?;
        Ok(true)
    }

    /// Whether this was given out, and is still good. A key that cannot be read is not accepted.
    pub fn has(&self, pass: Pass<'_>, now: Timestamp) -> bool {
        key(&self.place(pass)).is_some_and(|key| now < key.ends_at)
    }

    /// Revokes all keys, and says how many there were.
    pub fn revoke(&self) -> Result<usize, DiskError> {
        let mut count = 0;
        for entry in self.dir.read_dir_utf8().into_iter().flatten().flatten() {
            fs::remove_file(entry.path()).if_there().on("remove", entry.path())?;
            count += 1;
        }
        Ok(count)
    }

    fn place(&self, pass: Pass<'_>) -> Utf8PathBuf {
        self.dir.join(pass.hash().to_hex().as_str())
    }
}

/// The key in a file; none if it does not name one.
fn key(path: &Utf8Path) -> Option<Key> {
    let own = rustix::process::geteuid().as_raw();
    // Where there is no home, the state home is a place that all users can write to.
    fs::symlink_metadata(path).ok().filter(|meta| meta.is_file() && meta.uid() == own)?;
    let text = fs::read_to_string(path).ok()?;
    let (made, kind) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
    let made_at: Timestamp = made.parse().ok()?;
    let ends_at = made_at.checked_add(HOURS.hours()).ok()?;
    Some(Key { id: path.file_name()?.get(..ID)?.to_owned(), browser: kind == BROWSER, made_at, ends_at })
}

fn is_over(path: &Utf8Path, now: Timestamp) -> bool {
    key(path).is_some_and(|key| key.ends_at <= now)
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
    fn keys_are_listed_and_revoked_one_by_one() {
        let dir = tempfile::tempdir().unwrap();
        let home = Utf8Path::from_path(dir.path()).unwrap();
        let (keys, made) = (Keys::new(home), Timestamp::from_second(1_000_000).unwrap());
        assert_eq!(keys.list(made), []);
        keys.add(ONE, made).unwrap();
        keys.add(Pass::Cookie { host: "h", value: "v" }, made + 1.hour()).unwrap();
        crate::write_atomic(&home.join("serve/foreign"), b"x").unwrap();
        let listed = keys.list(made + 2.hours());
        let kinds: Vec<_> = listed.iter().map(|key| (key.browser, key.ends_at - key.made_at)).collect();
        assert_eq!(kinds.len(), 2);
        assert!(!kinds[0].0 && kinds[1].0);
        assert_eq!(keys.list(made + HOURS.hours()).len(), 1, "a token ends after 30 days");
        assert!(keys.revoke_one(&listed[0].id).unwrap() && !keys.revoke_one(&listed[0].id).unwrap());
        assert!(!keys.has(ONE, made) && keys.list(made).len() == 1);
        assert!(!keys.revoke_one("../serve/for").unwrap());
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
    fn expired_keys_are_removed_when_a_key_is_added() {
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
