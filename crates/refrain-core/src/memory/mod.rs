//! What is remembered of finished loops and given to later ones: facts, episodes and procedures. Decided here are what
//! is remembered of a loop ([`after`], [`lessons`]), what is fit to be kept ([`fit`], [`plants`]), what matters to a
//! goal ([`rank`]), how much of that is given ([`select`]) and in which words ([`section`]). refrain-store keeps it.

mod clean;
mod keywords;
pub mod lessons;
mod loop_memories;
mod rank;
mod section;
mod select;
mod spec;
#[cfg(test)]
mod tests;

use std::str::FromStr;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::squeeze;
use crate::{LoopId, Spec};

pub use clean::{fit, plants};
pub use keywords::keywords;
pub use loop_memories::after;
pub use rank::{Hit, RankedMemory, cosine, rank};
pub use section::section;
pub use select::select;
pub use spec::{Kind, MemoryId, MemoryIdError, MemorySpec, RecalledMemory};

/// How many tokens of memories a loop gets by default. They are paid for in every iteration, and the useful ones are a
/// page or two: seed 003's 50,000 would be more than most prompts, sources and all.
pub const BUDGET: u32 = 4_000;

/// From this importance on, a fact that a person stated holds for the whole project, regardless of the goal.
pub const STANDING: f64 = 0.85;

/// Whose words a memory is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case", const_into_str)]
pub enum Origin {
    /// A person's, by `memory add`.
    Person,
    /// A loop's: its events, and what was said to it.
    Loop,
    /// An agent's that was asked what there is to learn from a loop.
    Judge,
}

impl Origin {
    pub const fn as_str(self) -> &'static str {
        self.into_str()
    }
}

impl FromStr for Origin {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let all = [Self::Person, Self::Loop, Self::Judge];
        all.into_iter().find(|it| it.as_str() == text).ok_or_else(|| format!("{text:?} is not accepted"))
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
    pub created_at: Timestamp,
    /// When a loop was told it last; null where none was.
    pub used_at: Option<Timestamp>,
    /// How many loops were told it.
    pub uses: u32,
}

impl Memory {
    /// A new one of these words, which [`fit`] made fit. An episode or a procedure is identified by the `run` of its
    /// loop, or by its words if there is none; a fact always by its words.
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

    /// The same, of a loop; the only one of its kind of that loop if `alone`, regardless of its words.
    #[must_use]
    pub fn of_loop(self, id: &LoopId, started_at: Timestamp, alone: bool) -> Self {
        let key = format!("{id} {}", started_at.as_millisecond());
        let id = id.clone();
        let own = if alone { MemoryId::of(self.kind, &self.project, &key) } else { self.id.clone() };
        Self { id: own, source: Some(id), ..self }
    }

    /// The result of remembering the same once more. What is said twice matters more; but what one loop says when it
    /// ends for the second time replaces what it said before.
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

    /// Whether it is given to every loop in its project.
    pub fn is_standing(&self) -> bool {
        self.kind == Kind::Fact && self.origin == Origin::Person && self.importance >= STANDING
    }
}

/// The part of the gap to full importance that a fact gains when it is said again.
const STRENGTHENS: f64 = 0.25;

/// The words by which two texts are the same.
fn plain(text: &str) -> String {
    squeeze(&text.to_lowercase()).trim_end_matches(['.', '!', ' ']).to_owned()
}

/// What a loop is about, in the fewest words: a task is called by its title, as its prompt says much else; the
/// sentences of a prompt that say how to claim are omitted, as every other prompt may have them.
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
