//! The part of a specification on memories, and the names of memories.

use std::str::FromStr;

use crate::newtype::checked_text;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::{DeserializeFromStr, SerializeDisplay};

/// A memory's name: the same words of the same kind about the same project have the same.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, SerializeDisplay, DeserializeFromStr, JsonSchema,
)]
#[schemars(with = "String")]
pub struct MemoryId(String);

/// A text that is no [`MemoryId`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no id of a memory; accepted: m- and ten of 0-9 and a-f, as refrain memory list shows them")]
pub struct MemoryIdError(String);

impl MemoryId {
    /// How many hexadecimal digits there are: two of ten thousand memories meet once in twenty thousand homes.
    const DIGITS: usize = 10;

    /// That of the memory of this kind about this project that `key` identifies.
    pub(super) fn of(kind: Kind, project: &str, key: &str) -> Self {
        let hash = blake3::hash(format!("{kind}\0{project}\0{key}").as_bytes()).to_hex();
        Self(format!("m-{}", &hash[..Self::DIGITS]))
    }
}

impl FromStr for MemoryId {
    type Err = MemoryIdError;

    fn from_str(text: &str) -> Result<Self, MemoryIdError> {
        let digits = text.strip_prefix("m-").filter(|digits| digits.len() == Self::DIGITS);
        let is_hex = |digits: &str| digits.bytes().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'));
        match digits.is_some_and(is_hex) {
            true => Ok(Self(text.to_owned())),
            false => Err(MemoryIdError(text.to_owned())),
        }
    }
}

checked_text!(MemoryId);

/// What a memory is.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
    strum::IntoStaticStr,
    strum::Display,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case", const_into_str)]
pub enum Kind {
    /// Something that holds: a preference, a correction, how things are.
    Fact,
    /// What came of one loop.
    Episode,
    /// A way that was proven to work.
    Procedure,
}

impl Kind {
    pub const ALL: [Self; 3] = [Self::Fact, Self::Episode, Self::Procedure];

    pub const fn as_str(self) -> &'static str {
        self.into_str()
    }

    /// The longest text of this kind, in bytes.
    pub const fn longest(self) -> usize {
        match self {
            Self::Fact => 400,
            Self::Episode => 800,
            Self::Procedure => 1_200,
        }
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|kind| kind.as_str() == text);
        found.ok_or_else(|| "accepted: fact, episode, procedure".to_owned())
    }
}

/// What a loop has to do with memories.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemorySpec {
    /// How many tokens of memories it may be told.
    pub budget: u32,
    /// What it was told, once, when it was started: the same in every iteration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recalled: Vec<RecalledMemory>,
}

/// A memory as it stands in the prompts of a loop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecalledMemory {
    /// Which.
    pub id: MemoryId,
    /// What it is.
    pub kind: Kind,
    /// Its words, as they were then.
    pub text: String,
    /// When it was first remembered.
    pub at: Timestamp,
    /// The folder's name of the project that it is about, where that is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elsewhere: Option<String>,
}
