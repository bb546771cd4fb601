//! What git names: objects and paths.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::str::FromStr;

use globset::{Glob, GlobBuilder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The name of an object: 40 or 64 hexadecimal digits, in lower case.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Oid(String);

/// A text that is no [`Oid`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no name of an object")]
pub struct OidError(String);

impl Oid {
    /// As text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// As people say it.
    #[must_use]
    pub fn short(&self) -> &str {
        &self.0[..10]
    }
}

impl FromStr for Oid {
    type Err = OidError;

    fn from_str(text: &str) -> Result<Self, OidError> {
        let is_hex = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        match text.len() {
            40 | 64 if is_hex => Ok(Self(text.to_owned())),
            _ => Err(OidError(text.to_owned())),
        }
    }
}

impl TryFrom<String> for Oid {
    type Error = OidError;

    fn try_from(text: String) -> Result<Self, OidError> {
        text.parse()
    }
}

impl From<Oid> for String {
    fn from(oid: Oid) -> Self {
        oid.0
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A path below the worktree's root, as git knows it: any bytes. As text, those that are not UTF-8, and `%`, are written
/// `%XX`, so that it can stand in a journal and be read back.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct RepoPath(String);

impl RepoPath {
    /// The path of these bytes.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut text = String::with_capacity(bytes.len());
        for chunk in bytes.utf8_chunks() {
            for c in chunk.valid().chars() {
                match c {
                    '%' => text.push_str("%25"),
                    c => text.push(c),
                }
            }
            for byte in chunk.invalid() {
                text.push_str(&format!("%{byte:02X}"));
            }
        }
        Self(text)
    }

    /// The bytes of the path.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.0.len());
        let mut rest = self.0.as_bytes();
        while let Some((&first, after)) = rest.split_first() {
            let escaped = (first == b'%').then(|| after.get(..2)).flatten();
            let escaped =
                escaped.and_then(|digits| u8::from_str_radix(str::from_utf8(digits).ok()?, 16).ok());
            bytes.push(escaped.unwrap_or(first));
            rest = if escaped.is_some() { &after[2..] } else { after };
        }
        bytes
    }

    /// As text, with the escapes.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RepoPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&crate::text::printable(&self.0))
    }
}

/// A pattern for paths below the worktree's root, as in `.gitignore`: without a slash in it, it is for a name in any folder;
/// with one, it begins at the root; one that ends in a slash is for all that lies in the folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct PathGlob(String);

/// A text that is no [`PathGlob`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no pattern for paths: {why}")]
pub struct PathGlobError {
    text: String,
    why: String,
}

impl PathGlob {
    /// Whether the path, in git's bytes, is one of those that it stands for.
    #[must_use]
    pub fn matches(&self, path: &[u8]) -> bool {
        let path = Path::new(OsStr::from_bytes(path));
        // It was read once. Compiled at each use: it is used where something was found, which is seldom.
        self.glob().is_ok_and(|glob| glob.compile_matcher().is_match(path))
    }

    fn glob(&self) -> Result<Glob, globset::Error> {
        let (rooted, below) = (self.0.strip_prefix('/'), self.0.ends_with('/'));
        let text = rooted.unwrap_or(&self.0);
        let is_name = rooted.is_none() && !text.trim_end_matches('/').contains('/');
        let (before, behind) = (if is_name { "**/" } else { "" }, if below { "**" } else { "" });
        GlobBuilder::new(&format!("{before}{text}{behind}")).literal_separator(true).build()
    }
}

impl FromStr for PathGlob {
    type Err = PathGlobError;

    fn from_str(text: &str) -> Result<Self, PathGlobError> {
        let error = |why: String| PathGlobError { text: text.to_owned(), why };
        if text.trim_matches('/').is_empty() {
            return Err(error("it names nothing".to_owned()));
        }
        let glob = Self(text.to_owned());
        glob.glob().map_err(|why| error(why.kind().to_string()))?;
        Ok(glob)
    }
}

impl TryFrom<String> for PathGlob {
    type Error = PathGlobError;

    fn try_from(text: String) -> Result<Self, PathGlobError> {
        text.parse()
    }
}

impl From<PathGlob> for String {
    fn from(glob: PathGlob) -> Self {
        glob.0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn object_names_are_hexadecimal() {
        let sha1 = "0123456789abcdef0123456789abcdef01234567";
        assert_eq!(sha1.parse::<Oid>().unwrap().short(), "0123456789");
        for bad in ["", "HEAD", &sha1[1..], &sha1.to_uppercase(), &sha1.replace('0', "-")] {
            assert!(bad.parse::<Oid>().is_err(), "{bad}");
        }
    }

    #[test]
    fn patterns_are_read_as_in_a_gitignore() {
        for (glob, path, is) in [
            ("*.pem", "a.pem", true),
            ("*.pem", "tests/keys/a.pem", true),
            ("/*.pem", "tests/a.pem", false),
            ("tests/*.pem", "tests/a.pem", true),
            ("tests/*.pem", "tests/keys/a.pem", false),
            ("tests/**", "tests/keys/a.pem", true),
            ("tests/**/*.pem", "tests/a.pem", true),
            ("fixtures/", "tests/fixtures/deep/a.pem", true),
            ("/fixtures/", "tests/fixtures/a.pem", false),
            ("tests/fixtures/", "tests/fixtures/a.pem", true),
            ("fixtures", "fixtures/a.pem", false),
            ("{a,b}.toml", "x/b.toml", true),
        ] {
            assert_eq!(glob.parse::<PathGlob>().unwrap().matches(path.as_bytes()), is, "{glob} {path}");
        }
        assert!("*".parse::<PathGlob>().unwrap().matches(b"caf\xe9"));
        for (bad, why) in
            [("", "it names nothing"), ("/", "it names nothing"), ("[a", "unclosed character class")]
        {
            let error = bad.parse::<PathGlob>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("{bad:?} is no pattern for paths: {why}")), "{error}");
        }
    }

    proptest! {
        #[test]
        fn a_path_of_any_bytes_comes_back(bytes: Vec<u8>) {
            let path = RepoPath::from_bytes(&bytes);
            prop_assert_eq!(path.to_bytes(), bytes);
        }
    }
}
