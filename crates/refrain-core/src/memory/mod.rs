//! What is remembered of loops that are over, and told to later ones: facts, episodes and procedures. Decided here are what
//! a loop leaves behind ([`after`], [`lessons`]), what is fit to be kept ([`fit`], [`plants`]), what matters to a goal ([`rank`]), how
//! much of that is told ([`select`]) and in which words ([`section`]). Where it is kept is `store::memory`'s business.

mod after;
mod clean;
mod keywords;
pub mod lessons;
mod rank;
mod section;
mod select;
#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::squeeze;
use crate::{LoopId, Spec};

pub use after::after;
pub use clean::{fit, plants};
pub use keywords::keywords;
pub use rank::{Hit, Ranked, cosine, rank};
pub use section::section;
pub use select::select;

/// How many tokens of memories a loop is told unless configured. What is told is paid for in every iteration, and what is
/// worth it is a page or two: seed 003's 50,000 would be more than most prompts, sources and all.
pub const BUDGET: u32 = 4_000;

/// From this importance on, a fact that a person said holds for all that is done in its project, whatever the goal.
pub const STANDING: f64 = 0.85;

/// A memory's name: the same words of the same kind about the same project have the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct MemoryId(String);

/// A text that is no [`MemoryId`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no id of a memory; accepted is m- and ten of 0-9 and a-f, as refrain memory list shows them"
)]
pub struct MemoryIdError(String);

impl MemoryId {
    /// How many hexadecimal digits there are: two of ten thousand memories meet once in twenty thousand homes.
    const DIGITS: usize = 10;

    /// That of the memory of this kind about this project that `key` tells from all others.
    fn of(kind: Kind, project: &str, key: &str) -> Self {
        let hash = blake3::hash(format!("{kind}\0{project}\0{key}").as_bytes()).to_hex();
        Self(format!("m-{}", &hash[..Self::DIGITS]))
    }

    /// As text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
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

impl TryFrom<String> for MemoryId {
    type Error = MemoryIdError;

    fn try_from(text: String) -> Result<Self, MemoryIdError> {
        text.parse()
    }
}

impl From<MemoryId> for String {
    fn from(id: MemoryId) -> Self {
        id.0
    }
}

impl fmt::Display for MemoryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// What a memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Something that holds: a preference, a correction, how things are.
    Fact,
    /// What came of one loop.
    Episode,
    /// A way that was proven to work.
    Procedure,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Fact, Self::Episode, Self::Procedure];

    /// As people and files say it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fact => "fact",
            Self::Episode => "episode",
            Self::Procedure => "procedure",
        }
    }

    /// The longest text of this kind, in bytes.
    #[must_use]
    pub const fn longest(self) -> usize {
        match self {
            Self::Fact => 400,
            Self::Episode => 800,
            Self::Procedure => 1_200,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|kind| kind.as_str() == text);
        found.ok_or_else(|| "accepted are fact, episode, procedure".to_owned())
    }
}

/// Whose words a memory is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// A person's, by `memory add`.
    Person,
    /// A loop's: its events, and what was said to it.
    Loop,
    /// An agent's that was asked what there is to learn from a loop.
    Judge,
}

impl Origin {
    /// As files say it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::Loop => "loop",
            Self::Judge => "judge",
        }
    }
}

impl FromStr for Origin {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let all = [Self::Person, Self::Loop, Self::Judge];
        all.into_iter().find(|it| it.as_str() == text).ok_or_else(|| format!("{text:?} is nobody"))
    }
}

/// Something that is remembered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Memory {
    /// Its name.
    pub id: MemoryId,
    /// What it is.
    pub kind: Kind,
    /// Its words, on one line.
    pub text: String,
    /// The root of the project that it is about.
    pub project: String,
    /// Whose words these are.
    pub origin: Origin,
    /// How much it matters, from 0 to 1.
    pub importance: f64,
    /// The loop that it comes from; null where a person added it.
    pub source: Option<LoopId>,
    /// When it was first remembered.
    #[schemars(with = "String")]
    pub created_at: Timestamp,
    /// When a loop was told it last; null where none was.
    #[schemars(with = "Option<String>")]
    pub used_at: Option<Timestamp>,
    /// How many loops were told it.
    pub uses: u32,
}

impl Memory {
    /// A new one of these words, which [`fit`] made fit. An episode or a procedure is told from others by the `run` of the loop
    /// that it is of, and by its words where there is none; a fact is always told by its words.
    #[must_use]
    pub fn new(
        kind: Kind,
        text: String,
        project: &str,
        origin: Origin,
        importance: f64,
        at: Timestamp,
    ) -> Self {
        let id = MemoryId::of(kind, project, &plain(&text));
        let importance = importance.clamp(0.0, 1.0);
        let project = project.to_owned();
        Self {
            id,
            kind,
            text,
            project,
            origin,
            importance,
            source: None,
            created_at: at,
            used_at: None,
            uses: 0,
        }
    }

    /// The same, of a loop; the only one of its kind of that loop where `alone`, whatever it says.
    #[must_use]
    pub fn of_loop(self, id: &LoopId, started_at: Timestamp, alone: bool) -> Self {
        let key = format!("{id} {}", started_at.as_millisecond());
        let id = id.clone();
        let own = if alone { MemoryId::of(self.kind, &self.project, &key) } else { self.id.clone() };
        Self { id: own, source: Some(id), ..self }
    }

    /// What becomes of it where the same is remembered once more. What is said twice matters more; but not what one loop says
    /// when it ends for the second time: that takes the place of what it said before.
    #[must_use]
    pub fn again(self, new: Self) -> Self {
        let is_same_loop = new.source.is_some() && new.source == self.source;
        let importance = match (self.kind, is_same_loop) {
            (Kind::Fact, false) => {
                let most = self.importance.max(new.importance);
                most + (1.0 - most) * STRENGTHENS
            }
            (Kind::Fact, true) => self.importance.max(new.importance),
            (Kind::Episode | Kind::Procedure, _) => new.importance,
        };
        let origin = match (self.origin, new.origin) {
            (Origin::Person, _) | (_, Origin::Person) => Origin::Person,
            (Origin::Loop | Origin::Judge, origin) => origin,
        };
        Self { text: new.text, importance, origin, source: new.source.or(self.source), ..self }
    }

    /// Whether it is told for any goal in its project.
    #[must_use]
    pub fn is_standing(&self) -> bool {
        self.kind == Kind::Fact && self.origin == Origin::Person && self.importance >= STANDING
    }
}

/// How much of what is missing to the full importance a fact gains when it is said again.
const STRENGTHENS: f64 = 0.25;

/// The words by which two texts are the same.
fn plain(text: &str) -> String {
    squeeze(&text.to_lowercase()).trim_end_matches(['.', '!', ' ']).to_owned()
}

/// What a loop is about, in the fewest words that say it: a task is called by its title, as what its agent is told says much else;
/// and of a prompt the sentences that say how to claim are left out, as every other prompt may have them.
#[must_use]
pub fn goal(spec: &Spec) -> String {
    match &spec.task {
        Some(task) => task.title.clone(),
        None => asked_for(&spec.prompt),
    }
}

fn asked_for(prompt: &str) -> String {
    prompt.lines().map(without_claims).collect::<Vec<_>>().join("\n").trim().to_owned()
}

/// The line without the sentences that have the tag of a promise in them.
fn without_claims(line: &str) -> String {
    const TAG: &str = "<promise>";
    if !line.contains(TAG) {
        return line.to_owned();
    }
    let ends = line.match_indices(['.', '!', '?']).map(|(at, mark)| at + mark.len());
    let ends = ends.filter(|end| line[*end..].starts_with(char::is_whitespace)).chain([line.len()]);
    let mut from = 0;
    let sentences: Vec<&str> = ends.map(|end| &line[std::mem::replace(&mut from, end)..end]).collect();
    sentences.into_iter().filter(|sentence| !sentence.contains(TAG)).collect::<String>().trim().to_owned()
}

/// What a loop has to do with memories.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemorySpec {
    /// How many tokens of memories it may be told.
    pub budget: u32,
    /// What it was told, once, when it was started: the same in every iteration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recalled: Vec<Recalled>,
}

/// A memory as a loop is told it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Recalled {
    /// Which.
    pub id: MemoryId,
    /// What it is.
    pub kind: Kind,
    /// Its words, as they were then.
    pub text: String,
    /// When it was first remembered.
    #[schemars(with = "String")]
    pub at: Timestamp,
    /// The folder's name of the project that it is about, where that is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elsewhere: Option<String>,
}
