//! Hashes as text: a fixed number of hexadecimal digits in lower case. Stored in journals.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde_with::{DeserializeFromStr, SerializeDisplay};

/// The first `N` hexadecimal digits of a hash, in lower case; at most 64.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, SerializeDisplay, DeserializeFromStr, JsonSchema,
)]
#[schemars(with = "String")]
pub struct Hex<const N: usize>(String);

/// A text that is no [`Hex`] of this length.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no hash; accepted: {digits} hexadecimal digits in lower case")]
pub struct HexError {
    text: String,
    digits: usize,
}

impl<const N: usize> Hex<N> {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<const N: usize> From<blake3::Hash> for Hex<N> {
    fn from(hash: blake3::Hash) -> Self {
        const { assert!(N <= 64, "a BLAKE3 hash has 64 digits") };
        Self(hash.to_hex()[..N].to_owned())
    }
}

impl<const N: usize> FromStr for Hex<N> {
    type Err = HexError;

    fn from_str(text: &str) -> Result<Self, HexError> {
        let is_one = text.len() == N && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if is_one { Ok(Self(text.to_owned())) } else { Err(HexError { text: text.to_owned(), digits: N }) }
    }
}

impl<const N: usize> fmt::Display for Hex<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}
