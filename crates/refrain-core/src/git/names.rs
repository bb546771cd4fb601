//! Git's names: objects and paths.

use std::fmt;
use std::str::FromStr;

use crate::newtype::checked_text;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::{DeserializeFromStr, SerializeDisplay};

/// The name of an object: 40 or 64 hexadecimal digits, in lower case.
#[derive(Clone, Debug, PartialEq, Eq, Hash, SerializeDisplay, DeserializeFromStr, JsonSchema)]
#[schemars(with = "String")]
pub struct Oid(String);

/// A text that is no [`Oid`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no name of an object")]
pub struct OidError(String);

impl Oid {
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

checked_text!(Oid);

/// A path below the worktree's root, as git knows it: any bytes. As text, those that are not UTF-8, and `%`, are written
/// `%XX`, so that it can stand in a journal and be read back.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct RepoPath(String);

impl RepoPath {
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

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RepoPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = crate::text::printable(&self.0);
        f.write_str(&line.replace('\n', "\\n").replace('\t', "\\t"))
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

    proptest! {
        #[test]
        fn a_path_of_any_bytes_comes_back(bytes: Vec<u8>) {
            let path = RepoPath::from_bytes(&bytes);
            prop_assert_eq!(path.to_bytes(), bytes);
        }
    }
}
